export function openApiDocument(version: string): object { return { openapi: '3.1.0', info: { title: 'Core Banking', version }, paths: {} }; }
