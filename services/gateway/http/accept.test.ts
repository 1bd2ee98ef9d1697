import { expect, it } from 'vitest';
import { prefersCsv } from './accept.ts';

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
