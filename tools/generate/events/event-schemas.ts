import { z } from 'zod';
import { type EventType, events, schemaId } from '#libs/contracts/events.ts';
import { eventFieldMeanings } from '../meanings.ts';
import { unnamed } from '../openapi/openapi-schemas.ts';
import { withPortablePatterns } from '../patterns.ts';
import { sample } from '../samples.ts';

/** Generates the JSON Schemas (draft-07) of events: docs/events/<type>.schema.json, and the payloads in AsyncAPI. */

export type JsonSchema = { [keyword: string]: unknown };

/**
 * Converts a zod schema to draft-07. Output schemas allow additional fields, because events may gain fields
 * within a version.
 */
export function wireSchema(schema: z.ZodType, io: 'input' | 'output' = 'output'): JsonSchema {
  const { $schema: _dialect, ...rest } = z.toJSONSchema(schema, {
    io,
    metadata: unnamed,
    target: 'draft-7',
    unrepresentable: 'any',
  }) as JsonSchema;
  return withPortablePatterns(adjusted(rest) as JsonSchema);
}

/** Removes properties that only REST or zod need, and adds field descriptions. */
function adjusted(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(adjusted);
  if (typeof value !== 'object' || value === null) return value;
  const entries = Object.entries(value).filter(
    ([name, item]) =>
      !['money', 'input_default', 'input_examples'].includes(name) &&
      !(name === 'additionalProperties' && item === false) &&
      Math.abs(Number(item)) !== Number.MAX_SAFE_INTEGER,
  );
  const schema: JsonSchema = Object.fromEntries(
    entries.map(([name, item]) => [
      name,
      name === 'properties' ? described(item as Record<string, JsonSchema>) : adjusted(item),
    ]),
  );
  // Sequences and positions may exceed 32 bits.
  const isLong = schema['type'] === 'integer' && schema['maximum'] === undefined;
  return withSince(isLong ? { ...schema, format: 'int64' } : schema);
}

/**
 * Marks fields with `since` as required in published events. Readers must treat them as optional, because older
 * events lack them.
 */
function withSince(schema: JsonSchema): JsonSchema {
  if (typeof schema['properties'] !== 'object' || schema['type'] !== 'object') return schema;
  const names = Object.entries(schema['properties'] as Record<string, JsonSchema>).flatMap(([name, property]) =>
    String(property['$comment'] ?? '').startsWith('since ') ? [name] : [],
  );
  return names.length === 0 ? schema : { ...schema, required: [...((schema['required'] ?? []) as string[]), ...names] };
}

function described(properties: Record<string, JsonSchema>): Record<string, JsonSchema> {
  return Object.fromEntries(
    Object.entries(properties).map(([name, property]) => {
      const made = adjusted(property) as JsonSchema;
      return [name, eventFieldMeanings[name] === undefined ? made : { description: eventFieldMeanings[name], ...made }];
    }),
  );
}

/** Returns the schema of the data of an event type. */
function dataSchema(type: EventType): JsonSchema {
  const schema = wireSchema(events[type].data);
  const properties = schema['properties'] as Record<string, JsonSchema>;
  const { pattern: _, ...event_type } = properties['event_type'] ?? {};
  return { ...schema, properties: { ...properties, event_type: { ...event_type, const: type } } };
}

/** Returns the schema file of an event type: the schema of the message value, with an example. */
export function eventSchema(type: EventType): JsonSchema {
  return {
    $schema: 'http://json-schema.org/draft-07/schema#',
    $id: schemaId(type),
    title: type,
    description: events[type].summary,
    ...dataSchema(type),
    examples: [eventExample(type)],
  };
}

export function eventExample(type: EventType): JsonSchema {
  const { example }: { example?: object } = events[type];
  return sample(dataSchema(type), example) as JsonSchema;
}

/** Returns all schema files by name in docs/events. */
export function eventSchemaFiles(): Record<string, JsonSchema> {
  const types = Object.keys(events) as EventType[];
  return Object.fromEntries(types.map((type) => [`${type}.schema.json`, eventSchema(type)]));
}
