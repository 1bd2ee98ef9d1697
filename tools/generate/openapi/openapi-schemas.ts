import { z } from 'zod';

export type Json = Record<string, unknown>;

/** What contracts say of their schemas, without the names, so that every part is in its place. */
export const unnamed = {
  get(schema: z.ZodType) {
    const { id: _name, ...said } = z.globalRegistry.get(schema) ?? {};
    return said;
  },
} as typeof z.globalRegistry;

/** Returns the JSON Schema of an input (`input`: before normalization) or output, without references. */
export function jsonSchema(schema: z.ZodType, io: 'input' | 'output'): Json {
  const { $schema: _dialect, ...rest } = z.toJSONSchema(schema, {
    io,
    metadata: unnamed,
    unrepresentable: 'any',
    override: ({ jsonSchema: made }) => adjust(made as Json, io),
  }) as Json;
  return rest;
}

/**
 * Properties that zod cannot express: money is a number in REST, defaults are optional, and responses can gain fields and
 * values of enumerations.
 */
export function adjust(made: Json, io: 'input' | 'output'): void {
  for (const name of ['default', 'examples']) {
    const given = made[`input_${name}`];
    if (given !== undefined) made[name] = given;
    delete made[`input_${name}`];
  }
  if (made['money'] === true) {
    Object.assign(made, { type: 'number', format: 'decimal' });
    delete made['money'];
    delete made['pattern'];
  }
  // zod adds these limits to every integer, but they are not ours.
  if (made['minimum'] === Number.MIN_SAFE_INTEGER) delete made['minimum'];
  if (made['maximum'] === Number.MAX_SAFE_INTEGER) delete made['maximum'];
  if (made['format'] === 'date-time' || made['format'] === 'date') delete made['pattern'];
  if (made['type'] === 'integer' && typeof made['default'] === 'string') made['default'] = Number(made['default']);
  if (made['const'] !== undefined) {
    made['enum'] = [made['const']];
    delete made['const'];
  }
  // Any text may be the name of a property.
  if (JSON.stringify(made['propertyNames']) === '{"type":"string"}') delete made['propertyNames'];
  if (io === 'output') {
    if (made['additionalProperties'] === false) delete made['additionalProperties'];
    if (made['enum'] !== undefined)
      made['x-extensible-enum'] = (made['enum'] as unknown[]).filter((one) => one !== null);
    delete made['enum'];
  }
  const { properties, required } = made as { properties?: Record<string, Json>; required?: string[] };
  if (io === 'input' && properties && required)
    made['required'] = required.filter((name) => properties[name]?.['default'] === undefined);
}
