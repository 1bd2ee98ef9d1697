import { expect, it } from 'vitest';
import { preferredType, prefersCsv } from './accept.ts';

it.each([
  [undefined, false],
  ['', false],
  ['*/*', false],
  ['application/x-ndjson', false],
  ['application/x-ndjson, text/csv;q=0', false],
  ['text/csv;q=0', false],
  ['text/csv; q=0.0, */*', false],
  ['text/csv;q=0.5, application/x-ndjson', false],
  ['text/csv;q=0.5, */*;q=0.8', false],
  ['text/csvx', false],
  ['application/json;note="text/csv"', false],
  ['text/csv', true],
  ['TEXT/CSV', true],
  ['Text/Csv; header=present', true],
  ['text/csv, */*;q=0.1', true],
  ['text/csv, */*', true],
  ['text/csv, application/x-ndjson', true],
  ['application/x-ndjson;q=0.5, text/csv;q=0.9', true],
  ['application/x-ndjson;q=0, text/csv;q=0.1', true],
  ['text/*', true],
] as const)('Accept: %s prefers CSV: %s', (accept, expected) => {
  expect(prefersCsv(accept)).toBe(expected);
});

it.each([
  [undefined, undefined],
  ['*/*', undefined],
  ['application/json', undefined],
  ['text/html', 'text/html'],
  ['Text/HTML; q=0.9', 'text/html'],
  ['text/html, */*', 'text/html'],
  ['text/html;q=0.5, */*', undefined],
  ['text/html, application/json;q=0.9', 'text/html'],
  ['application/json, text/html', undefined],
  ['text/html;q=0', undefined],
  ['text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8', 'text/html'],
  ['application/xml', 'application/xml'],
  ['text/html;q=0.8, application/xml', 'application/xml'],
  ['application/xml, text/html', 'text/html'],
  ['application/xml, text/xml', 'application/xml'],
  ['text/xml, application/xml;q=0.9', 'text/xml'],
  ['application/xml, application/json', undefined],
  ['application/xml;q=0.5, application/*', undefined],
] as const)('of HTML and XML, Accept: %s prefers %s to JSON', (accept, expected) => {
  expect(preferredType(accept, ['text/html', 'application/xml', 'text/xml'])).toBe(expected);
});
