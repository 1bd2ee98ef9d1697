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

const children = (schema: Schema, keyword: string) => (schema[keyword] ?? {}) as Record<string, Schema>;
const list = (schema: Schema, keyword: string) => (schema[keyword] ?? []) as unknown[];
const nested = ['properties', 'required', 'items', 'enum', 'description', '$defs'];
const leaf = (schema: Schema) =>
  Object.fromEntries(Object.entries(schema).filter(([keyword]) => !nested.includes(keyword)));

/**
 * Returns what `now` may send that a reader of `then` refuses, or ignores because it does not know it: one line each, with the path.
 * Any other change of a rule is reported too, because only people can say whether it is harmless. Pure.
 */
export function unread(then: Schema, now: Schema, path: string): string[] {
  const [known, sent] = [children(then, 'properties'), children(now, 'properties')];
  const inside = Object.keys(sent).flatMap((name) => {
    const [before, after] = [known[name], sent[name]];
    if (before === undefined || after === undefined) return [`${path}.${name}: it does not know this field`];
    return unread(before, after, `${path}.${name}`);
  });
  const needed = list(then, 'required').filter((name) => !list(now, 'required').includes(name));
  const values = list(then, 'enum');
  return [
    ...inside,
    ...needed.map((name) => `${path}.${String(name)}: it requires this field`),
    ...(values.length > 0 ? list(now, 'enum').filter((value) => !values.includes(value)) : []).map(
      (value) => `${path}: it does not know the value ${String(value)}`,
    ),
    ...('items' in now && 'items' in then ? unread(then['items'] as Schema, now['items'] as Schema, `${path}[]`) : []),
    ...(isDeepStrictEqual(leaf(then), leaf(now)) && values.length > 0 === list(now, 'enum').length > 0
      ? []
      : [`${path}: its rule is another one`]),
  ];
}
