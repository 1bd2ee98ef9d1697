import { isDeepStrictEqual } from 'node:util';
import { z } from 'zod';
import { type MessageName, messages } from '#libs/contracts/messages.ts';

/** Whether a release understands what this version sends: requests of a new gateway, and replies of a new service. */

export type Schema = { [keyword: string]: unknown };
export type MessageSchemas = Record<string, { data: Schema; result: Schema }>;

const toSchema = (schema: z.ZodType): Schema =>
  z.toJSONSchema(schema, { io: 'input', unrepresentable: 'any', cycles: 'ref' }) as Schema;

/** Returns the schemas of what this version reads. Pure. */
export function messageSchemas(): MessageSchemas {
  const names = Object.keys(messages) as MessageName[];
  return Object.fromEntries(
    names.map((name) => [name, { data: toSchema(messages[name].data), result: toSchema(messages[name].result) }]),
  );
}

/** The parts of a schema that are compared one by one. All other keywords must be equal. */
const choices = ['anyOf', 'oneOf', 'allOf', 'prefixItems'];
const parts = ['properties', 'required', 'items', 'enum', 'additionalProperties', '$ref', ...choices];
const words = ['description', '$defs', '$schema', 'id', 'title'];
const rulesOf = (schema: Schema) =>
  Object.fromEntries(Object.entries(schema).filter(([keyword]) => ![...parts, ...words].includes(keyword)));
const list = (schema: Schema, keyword: string) => (schema[keyword] ?? []) as unknown[];
const properties = (schema: Schema) => (schema['properties'] ?? {}) as Record<string, Schema>;

/**
 * Returns what `now` may send that a reader of `then` refuses, or ignores because it does not know it: one line each, with the path.
 * Any other change of a rule is reported too, because only people can say whether it is harmless. Pure.
 */
export function unread(then: Schema, now: Schema, path: string): string[] {
  const seen = new Set<string>();

  /** Follows a reference to a part of the whole schema. */
  const resolve = (schema: Schema, whole: Schema): Schema => {
    const { $ref, ...own } = schema;
    if (typeof $ref !== 'string') return schema;
    const target = $ref
      .split('/')
      .slice(1)
      .reduce((part, name) => part[name] as Schema, whole);
    return { ...resolve(target, whole), ...own };
  };

  function compare(before: Schema, after: Schema, at: string): string[] {
    // A schema that refers to itself is compared once.
    const pair = `${String(before['$ref'])} ${String(after['$ref'])}`;
    if ('$ref' in before && '$ref' in after) {
      if (seen.has(pair)) return [];
      seen.add(pair);
    }
    return compareRules(resolve(before, then), resolve(after, now), at);
  }

  function compareRules(before: Schema, after: Schema, at: string): string[] {
    const known = properties(before);
    const inside = Object.entries(properties(after)).flatMap(([name, field]) =>
      known[name] ? compare(known[name], field, `${at}.${name}`) : [`${at}.${name}: it does not know this field`],
    );
    const needed = list(before, 'required').filter((name) => !list(after, 'required').includes(name));
    const values = list(before, 'enum');
    const newValues = values.length > 0 ? list(after, 'enum').filter((value) => !values.includes(value)) : [];
    const isSameKind =
      isDeepStrictEqual(rulesOf(before), rulesOf(after)) &&
      values.length > 0 === list(after, 'enum').length > 0 &&
      choices.every((name) => list(before, name).length === list(after, name).length) &&
      ['items', 'additionalProperties'].every((name) => typeof before[name] === typeof after[name]);
    const nested = ['items', 'additionalProperties'].filter((name) => typeof after[name] === 'object' && isSameKind);
    const alternatives = () =>
      choices.flatMap((name) =>
        list(after, name).flatMap((choice, i) => compare(list(before, name)[i] as Schema, choice as Schema, at)),
      );
    return [
      ...inside,
      ...needed.map((name) => `${at}.${String(name)}: it requires this field`),
      ...newValues.map((value) => `${at}: it does not know the value ${String(value)}`),
      ...nested.flatMap((name) => compare(before[name] as Schema, after[name] as Schema, `${at}[]`)),
      ...(isSameKind ? alternatives() : [`${at}: its rule is another one`]),
    ];
  }

  return compare(then, now, path);
}
