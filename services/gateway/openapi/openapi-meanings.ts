import { fieldMeanings } from '#libs/contracts/field-meanings.ts';
import type { Json } from './openapi-schemas.ts';
import { componentSchemas } from './openapi-schemas.ts';

/** Named resources by their schema. */
const names = new Map(Object.entries(componentSchemas()).map(([name, schema]) => [JSON.stringify(schema), name]));

/**
 * The schema with what each of its properties means, and a reference in the place of every resource
 * that has a name. `owner`: the resource or operation that it is of.
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
      const said = meaningOf(name, owner, property['description'] ?? description);
      return [name, said === undefined ? rest : { ...rest, description: said }];
    }),
  );
}

/** What a parameter of that name means there; `said`: by its schema. */
export function meaningOf(name: string, owner: string, said?: unknown): unknown {
  return ownMeaning(name, owner) ?? said ?? fieldMeanings[name];
}

/** What a name means there alone. Versions of a resource with something more share what is said of it. */
function ownMeaning(name: string, owner: string): string | undefined {
  return fieldMeanings[`${owner.replace(/With\w+$|Content$/, '')}.${name}`];
}
