import type { z } from 'zod';
import { type ErrorCode, errorCodeSchema, type Violation } from '#libs/contracts/errors.ts';
import { NumberText } from '#libs/contracts/money.ts';
import { type HomeCountry, hasLostPlus, phoneFields, withHomeCountry } from '#libs/contracts/phones.ts';
import { refuseViolations } from '../http/errors.ts';

type Issue = z.core.$ZodIssue;

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
  throw refuseViolations(allViolations(parsed.error, body, 'unknown_field'));
}

/** Returns the validated query parameters. Refuses unknown and repeated parameters and values with NUL, by name. */
export function parseQuery<S extends z.ZodType>(schema: S, query: Record<string, unknown>): z.output<S> {
  const bad: Violation[] = [];
  for (const name in query) {
    const value = query[name];
    if (Array.isArray(value)) bad.push(violation([name], 'validation_failed', 'is given more than once'));
    else if (typeof value === 'string' && value.includes('\u0000'))
      bad.push(violation([name], 'validation_failed', 'must not contain NUL'));
  }
  const parsed = schema.safeParse(query);
  if (parsed.success && bad.length === 0) return parsed.data;
  const named = new Set(bad.map(({ field }) => field));
  const issues = parsed.error ? allViolations(parsed.error, query, 'unknown_parameter') : [];
  throw refuseViolations([...bad, ...issues.filter(({ field }) => !named.has(field))]);
}

/**
 * Returns each field once, with the first rule that it violates. Later rules would report consequences of the
 * first.
 */
function allViolations({ issues }: z.ZodError, input: unknown, unknownCode: ErrorCode): Violation[] {
  const named = new Set<string>();
  return issues.flatMap((issue) => {
    const field = issue.path.join('.');
    if (issue.path.length > 0 && named.has(field)) return [];
    named.add(field);
    return violations(issue, input, unknownCode);
  });
}

function violations(issue: Issue, input: unknown, unknownCode: ErrorCode): Violation[] {
  const path = issue.path.map(String);
  if (issue.code === 'unrecognized_keys') {
    if (valueAt(input, issue.path) instanceof NumberText)
      return [violation(path, 'validation_failed', `must be ${kinds['object']}`)];
    const what = unknownCode === 'unknown_field' ? 'a known field' : 'a known parameter';
    return issue.keys.slice(0, 100).map((key) => violation([...path, key], unknownCode, `is not ${what}`));
  }
  const given = issue.code === 'custom' ? errorCodeSchema.safeParse(issue.params?.['code']) : undefined;
  return [violation(path, given?.success ? given.data : 'validation_failed', rule(issue, valueAt(input, issue.path)))];
}

/** A field is a dotted path; an item of a batch is in brackets (contract: batches-4). */
function violation(path: string[], code: ErrorCode, words: string): Violation {
  const field = path
    .join('.')
    .replace(/^items\.(\d+)/, 'items[$1]')
    .slice(0, 200)
    .toWellFormed();
  const subject = path.length === 0 ? 'the body' : field === '' ? '""' : field;
  return { field, code, message: `${subject} ${words}` };
}

function valueAt(input: unknown, path: PropertyKey[]): unknown {
  return path.reduce<unknown>(
    (value, key) => (typeof value === 'object' && value !== null ? Reflect.get(value, key) : undefined),
    input,
  );
}

const kinds: Record<string, string> = {
  object: 'a JSON object',
  record: 'a JSON object',
  array: 'an array',
  string: 'a string',
  boolean: 'true or false',
  number: 'a number',
};

/** Describes the violated rule, to follow the field's name. */
function rule(issue: Issue, value: unknown): string {
  if (issue.code === 'custom') return issue.message;
  if (value === undefined && issue.path.length > 0) return 'is required';
  if (value === null && issue.path.length > 0) return 'must not be null';
  switch (issue.code) {
    case 'invalid_type':
      return `must be ${kinds[issue.expected] ?? issue.expected}`;
    case 'invalid_value':
      return oneOf(issue.values);
    case 'invalid_union':
      return 'options' in issue && Array.isArray(issue.options) ? oneOf(issue.options) : 'is not valid';
    case 'too_big':
      return issue.message.startsWith('Too')
        ? `must have at most ${issue.maximum} ${issue.origin === 'array' ? 'items' : 'characters'}`
        : issue.message;
    default:
      return issue.message;
  }
}

function oneOf(values: readonly unknown[]): string {
  return `must be ${values.length > 1 ? 'one of ' : ''}${values.map(String).join(', ')}`;
}
