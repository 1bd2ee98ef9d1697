import { z } from 'zod';
import type { Violation } from '#libs/contracts/errors.ts';
import { NumberText } from '#libs/contracts/money.ts';
import { type HomeCountry, hasLostPlus, phoneFields, withHomeCountry } from '#libs/contracts/phones.ts';
import { listViolations, violated } from '#libs/contracts/violations.ts';
import { refuseViolations } from '../http/errors.ts';

/** Converts national phone numbers in fields or parameters to international ones. `home`: DEFAULT_COUNTRY, if configured. */
export function internationalPhones<T>(fields: T, home: HomeCountry | undefined): T {
  if (home === undefined || typeof fields !== 'object' || fields === null) return fields;
  const phones = phoneFields.flatMap((name) => {
    const value: unknown = Reflect.get(fields, name);
    if (typeof value !== 'string' || (name === 'ussd_phone' && hasLostPlus(value))) return [];
    return [[name, withHomeCountry(value, home)]];
  });
  return phones.length === 0 ? fields : { ...fields, ...Object.fromEntries(phones) };
}

/** Returns the validated, normalized body. Throws a Refused that names every violation. */
export function parseFields<S extends z.ZodType>(schema: S, body: unknown): z.output<S> {
  // Numbers are objects here, so that no digit is lost. A number as the whole body is treated like a string.
  const parsed = schema.safeParse(body instanceof NumberText ? body.text : body);
  if (parsed.success) return parsed.data;
  throw refuseViolations(listViolations(parsed.error, body, 'unknown_field'));
}

/**
 * Returns the filters `metadata.<key>` as one field, if the list has them. `__proto__` cannot be a key of metadata, so it
 * remains an unknown parameter.
 */
function gatherMetadata(schema: z.ZodType, query: Record<string, unknown>): Record<string, unknown> {
  const isFilter = (name: string) => name.startsWith('metadata.') && name !== 'metadata.__proto__';
  const names = Object.keys(query).filter(isFilter).sort();
  if (names.length === 0 || !(schema instanceof z.ZodObject && 'metadata' in schema.shape)) return query;
  const others = Object.entries(query).filter(([name]) => !isFilter(name));
  const metadata = Object.fromEntries(names.map((name) => [name.slice('metadata.'.length), query[name]]));
  return { ...Object.fromEntries(others), metadata };
}

/** Returns the validated query parameters. Refuses unknown and repeated parameters and values with NUL, by name. */
export function parseQuery<S extends z.ZodType>(schema: S, given: Record<string, unknown>): z.output<S> {
  const bad: Violation[] = [];
  for (const name in given) {
    const value = given[name];
    if (Array.isArray(value)) bad.push(violated([name], 'validation_failed', 'is given more than once'));
    else if (typeof value === 'string' && value.includes('\u0000'))
      bad.push(violated([name], 'validation_failed', 'must not contain NUL'));
    else if (name === 'metadata') bad.push(violated([name], 'unknown_parameter', 'is not a known parameter'));
  }
  const query = gatherMetadata(schema, given);
  const parsed = schema.safeParse(query);
  if (parsed.success && bad.length === 0) return parsed.data;
  const named = new Set(bad.map(({ field }) => field));
  const issues = parsed.error ? listViolations(parsed.error, query, 'unknown_parameter') : [];
  throw refuseViolations([...bad, ...issues.filter(({ field }) => !named.has(field))]);
}
