import { mkdirSync, writeFileSync } from 'node:fs';
import packageJson from '../../../package.json' with { type: 'json' };
import { openApiDocument } from './openapi.ts';

/**
 * Writes docs/openapi.json; `npm run generate` calls it, and a test fails if this was forgotten.
 */
const docs = new URL('../../../docs/', import.meta.url);
mkdirSync(docs, { recursive: true });
writeFileSync(new URL('openapi.json', docs), `${JSON.stringify(openApiDocument(packageJson.version), null, 2)}\n`);
