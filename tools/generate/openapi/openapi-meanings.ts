import { fieldMeanings } from '../meanings.ts';
import type { Json } from './openapi-schemas.ts';

/**
 * Returns the document with descriptions of the properties of its named schemas, with the known values of those that may
 * gain values, and with the one value of a property that tells the options of a union apart.
 */
export function explained(document: Json): Json {
  const { components, ...rest } = document as { components: { schemas: Record<string, Json> } };
  const { schemas } = components;
  for (const { discriminator } of Object.values(schemas)) {
    const { propertyName, mapping } = (discriminator ?? { mapping: {} }) as Discriminator;
    for (const [value, reference] of Object.entries(mapping)) {
      const { properties } = schemas[reference.replace(/^.*\//, '')] as { properties: Record<string, Json> };
      properties[propertyName] = { type: 'string', enum: [value] };
    }
  }
  const made = Object.entries(schemas).map(([name, schema]) => [name, explain(schema, name)]);
  return { ...rest, components: { ...components, schemas: Object.fromEntries(made) } };
}

interface Discriminator {
  propertyName: string;
  mapping: Record<string, string>;
}

const decimal = 'An exact decimal: decode it as one, never as floating point';

/** `type: [string, null]` instead of a union, for which generators would make a type. */
function withNull(schema: Json): Json {
  const { anyOf = [], ...rest } = schema as { anyOf?: Json[] };
  const [one, other, ...more] = anyOf;
  if (other?.['type'] !== 'null' || more.length > 0 || typeof one?.['type'] !== 'string') return schema;
  const values = Array.isArray(one['enum']) ? { enum: [...one['enum'], null] } : {};
  return { ...one, ...rest, ...values, type: [one['type'], 'null'] };
}

/** `owner`: the resource or operation to which the schema belongs. */
function explain(given: Json, owner: string): Json {
  const schema = withNull(given);
  const made = Object.entries(schema).map(([key, value]): [string, unknown] => {
    if (key === 'properties') return [key, properties(value as Record<string, Json>, owner)];
    if (Array.isArray(value) && ['oneOf', 'anyOf', 'allOf'].includes(key))
      return [key, value.map((option: Json) => explain(option, owner))];
    return [
      key,
      typeof value === 'object' && ['items', 'additionalProperties'].includes(key)
        ? explain(value as Json, owner)
        : value,
    ];
  });
  const known = schema['x-extensible-enum'] as unknown[] | undefined;
  const said = [
    schema['description'],
    ...(schema['format'] === 'decimal' ? [decimal] : []),
    ...(known === undefined || known.length === 1
      ? []
      : [`Known values: ${known.map((value) => `\`${value}\``).join(', ')}; more may come`]),
  ].filter((part) => part !== undefined);
  return { ...Object.fromEntries(made), ...(said.length > 0 && { description: said.join('. ') }) };
}

function properties(given: Record<string, Json>, owner: string): Json {
  return Object.fromEntries(
    Object.entries(given).map(([name, property]) => {
      const { description, ...rest } = property;
      const said = findMeaning(name, owner, description);
      return [name, explain(said === undefined ? rest : { ...rest, description: said }, name)];
    }),
  );
}

/** Returns the description of a parameter with that name. `said`: the description in its schema. */
export function findMeaning(name: string, owner: string, said?: unknown): unknown {
  return ownMeaning(name, owner) ?? said ?? fieldMeanings[name];
}

/** Descriptions of a name in one resource or operation only. Extended versions of a resource share them. */
function ownMeaning(name: string, owner: string): string | undefined {
  const operation = owner
    .replace(/Request$/, '')
    .replace(/\B[A-Z]/g, '_$&')
    .toLowerCase();
  const owners = [owner, owner.replace(/With\w+$|Content$/, ''), ...(owner.endsWith('Request') ? [operation] : [])];
  return owners.map((one) => fieldMeanings[`${one}.${name}`]).find((said) => said !== undefined);
}
