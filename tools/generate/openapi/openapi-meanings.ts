import { fieldMeanings } from '../meanings.ts';
import type { Json } from './openapi-schemas.ts';
import { componentSchemas } from './openapi-schemas.ts';

/** Named resources by their schema. */
const names = new Map(Object.entries(componentSchemas()).map(([name, schema]) => [JSON.stringify(schema), name]));

/**
 * Returns the schema with descriptions of its properties, and with references to named resources. `owner`: the resource
 * or operation to which it belongs.
 */
export function explained(schema: Json, owner: string): Json {
  const made = Object.entries(schema).map(([key, value]): [string, unknown] => {
    if (key === 'properties') return [key, properties(value as Record<string, Json>, owner)];
    if (Array.isArray(value) && ['oneOf', 'anyOf', 'allOf'].includes(key))
      return [key, value.map((option: Json) => inside(option, owner))];
    return [key, key === 'items' ? inside(value as Json, owner) : value];
  });
  return Object.fromEntries(made);
}

function inside(schema: Json, owner: string): Json {
  const name = names.get(JSON.stringify(schema));
  return name === undefined ? explained(schema, owner) : { $ref: `#/components/schemas/${name}` };
}

function properties(given: Record<string, Json>, owner: string): Json {
  return Object.fromEntries(
    Object.entries(given).map(([name, property]) => {
      const { description, ...rest } = inside(property, name);
      const said = findMeaning(name, owner, property['description'] ?? description);
      return [name, said === undefined ? rest : { ...rest, description: said }];
    }),
  );
}

/** Returns the description of a parameter with that name. `said`: the description in its schema. */
export function findMeaning(name: string, owner: string, said?: unknown): unknown {
  return ownMeaning(name, owner) ?? said ?? fieldMeanings[name];
}

/** Descriptions of a name in one resource only. Extended versions of a resource share them. */
function ownMeaning(name: string, owner: string): string | undefined {
  return fieldMeanings[`${owner.replace(/With\w+$|Content$/, '')}.${name}`];
}
