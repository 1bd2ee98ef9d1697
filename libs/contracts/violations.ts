import type { z } from 'zod';
import { type ErrorCode, errorCodeSchema, type Violation } from './errors.ts';
import { NumberText } from './money.ts';

/** Names the violations of a request, in the words of the API. */

type Issue = z.core.$ZodIssue;

/**
 * Returns each field once, with the first rule that it violates. Later rules would report consequences of the
 * first.
 */
export function listViolations(
  { issues }: z.ZodError,
  input: unknown,
  unknownCode: 'unknown_field' | 'unknown_parameter',
): Violation[] {
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
      return [violated(path, 'validation_failed', `must be ${kinds['object']}`)];
    const what = unknownCode === 'unknown_field' ? 'a known field' : 'a known parameter';
    return issue.keys.slice(0, 100).map((key) => violated([...path, key], unknownCode, `is not ${what}`));
  }
  const given = issue.code === 'custom' ? errorCodeSchema.safeParse(issue.params?.['code']) : undefined;
  return [violated(path, given?.success ? given.data : 'validation_failed', rule(issue, valueAt(input, issue.path)))];
}

/** A field is a dotted path; an item of a batch is in brackets (contract: batches-4). */
export function violated(path: string[], code: ErrorCode, words: string): Violation {
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
