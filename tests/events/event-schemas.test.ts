import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import asyncApi3 from '@asyncapi/specs/schemas/3.0.0-without-$id.json' with { type: 'json' };
import { Ajv } from 'ajv';
import formats from 'ajv-formats';
import { describe, expect, it, test } from 'vitest';
import { eventExamples } from '#libs/contracts/event-examples.ts';
import { eventSchemaFiles } from '#libs/contracts/event-schemas.ts';
import { eventHeadersSchema, events, type EventType } from '#libs/contracts/events.ts';
import { messages } from '#libs/contracts/messages.ts';
import { eventTopics, isEventTopic, type TopicDefinition, topics } from '#libs/contracts/topics.ts';
import { changes } from '../support/schema-changes.ts';

/** What consumers are given in docs/ is right, and stays compatible with what was released. */
const root = join(import.meta.dirname, '..', '..');
const read = (file: string) => JSON.parse(readFileSync(join(root, file), 'utf8'));
const ajv = new Ajv({ strict: true, allowUnionTypes: true });
formats.default(ajv);
const types = Object.keys(events) as EventType[];
const files = eventSchemaFiles();
const document = read('docs/asyncapi.json');

describe('docs/asyncapi.json', () => {
  it('is AsyncAPI 3', () => {
    const lenient = new Ajv({ strict: false, logger: false });
    formats.default(lenient);
    const isValid = lenient.compile(asyncApi3);
    isValid(document);
    expect(isValid.errors).toBeNull();
    expect(lenient.validate(asyncApi3, { ...document, operations: { x: { action: 'shout' } } })).toBe(false);
  });

  it('has every event in its topic, and every command and query with its reply', () => {
    for (const type of types) expect(document.channels[events[type].topic].messages[type], type).toBeDefined();
    for (const name of Object.keys(messages)) expect(document.operations[name].reply.messages).toEqual([{ $ref: `#/channels/replies/messages/${name}.reply` }]);
    expect(document.channels.balances.bindings.kafka).toMatchObject({ partitions: topics.balances.partitions, topicConfiguration: { 'cleanup.policy': ['compact'] } });
    expect(document.channels.transactions.bindings.kafka.topicConfiguration['retention.ms']).toBe(400 * 24 * 3_600_000);
  });

  it('every reference leads somewhere', () => {
    for (const [, reference = ''] of JSON.stringify(document).matchAll(/"\$ref":"#\/([^"]+)"/g)) {
      expect(reference.split('/').reduce((value, key) => value?.[key], document), reference).toBeDefined();
    }
  });
});

describe('docs/events', () => {
  it('has the schema of each type, and nothing else', () => {
    expect(readdirSync(join(root, 'docs/events')).sort()).toEqual(Object.keys(files).sort());
  });

  it.each(types)('%s: described, open to additions, with an example that is one', (type) => {
    const schema = files[`${type}.schema.json`] ?? {};
    const validate = ajv.compile(schema);
    validate(eventExamples[type]);
    expect(validate.errors).toBeNull();
    expect(validate({ ...eventExamples[type], an_addition: 1 })).toBe(true);
    expect(validate({})).toBe(false);
    expect(events[type].data.parse(eventExamples[type])).toEqual(eventExamples[type]);
    const bare = JSON.stringify(schema, (name, value: unknown) => (name === 'properties' ? Object.entries(value as Record<string, object>).map(([field, property]) => ('description' in property ? property : { undescribed: field })) : value));
    expect([...bare.matchAll(/"undescribed":"(\w+)"/g)].map(([, field]) => field)).toEqual([]);
  });

  it('money is a decimal string', () => {
    expect(files['corebanking.balance.v1.schema.json']).toMatchObject({ properties: { balance: { type: 'string', pattern: '^-?\\d+(\\.\\d+)?$' } } });
  });
});

describe('docs/events.md', () => {
  const page = readFileSync(join(root, 'docs/events.md'), 'utf8');

  it('shows an example of each type, and no other', () => {
    const shown = [...page.matchAll(/```json\n([\s\S]*?)```/g)].map(([, text = '']) => JSON.stringify(JSON.parse(text)));
    const consumers = types.filter((type) => isEventTopic(events[type].topic));
    expect(shown.sort()).toEqual(consumers.map((type) => JSON.stringify(eventExamples[type])).sort());
    for (const type of consumers) expect(page).toContain(type);
  });

  it('has topics, partitions and retention as they are', () => {
    const rows = [...page.matchAll(/^\| `([\w.-]+)` \| \w+ \| (\d+) \| ([\w ]+) \|/gm)].map(([, topic, partitions, kept]) => [topic, Number(partitions), kept]);
    const kept = ({ config }: TopicDefinition) => (config['cleanup.policy'] === 'compact' ? 'latest of each' : `${Number(config['retention.ms']) / 86_400_000} days`);
    const defined = eventTopics.map((topic) => [topic, topics[topic].partitions, kept(topics[topic])]);
    expect(rows.sort()).toEqual(defined.sort());
    for (const header of Object.keys(eventHeadersSchema.shape)) expect(page).toContain(`| \`${header}\` |`);
  });
});

/** tests/events/released/<version>: schemas as they were released, and events of then. Never changed; a release adds a folder. */
const releases = readdirSync(join(root, 'tests/events/released'));

describe.each(releases)('what was released with %s', (release) => {
  const folder = `tests/events/released/${release}`;
  const schemas = readdirSync(join(root, folder)).filter((file) => file.endsWith('.schema.json'));

  it.each(schemas)('%s has at most been added to', (file) => {
    expect(changes(read(`${folder}/${file}`), read(`docs/events/${file}`))).toEqual([]);
  });

  it.each(schemas.map((file) => file.replace('.schema.json', '') as EventType))('%s: events of then have the form of today, and had that of then', (type) => {
    const samples = read(`${folder}/${type}.samples.json`) as unknown[];
    expect(samples.length).toBeGreaterThan(0);
    for (const sample of samples) {
      expect(events[type].data.parse(sample)).toBeDefined();
      for (const file of [`${folder}/${type}.schema.json`, `docs/events/${type}.schema.json`]) expect([file, ajv.validate(read(file), sample), ajv.errors]).toEqual([file, true, null]);
    }
  });
});

describe('changes between two schemas', () => {
  const released = {
    type: 'object', required: ['id', 'kind', 'parts'],
    properties: { id: { type: 'string', pattern: '^a' }, kind: { enum: ['x', 'y'] }, note: { type: ['string', 'null'] }, parts: { type: 'array', items: { type: 'object', properties: { n: { type: 'integer' } }, required: ['n'] } }, reason: { anyOf: [{ type: 'string' }, { type: 'null' }] } },
  };
  const { properties } = released;
  const withProperty = (change: object) => ({ ...released, properties: { ...properties, ...change } });
  const part = properties.parts.items;

  test.each([
    ['nothing', released],
    ['a further optional property', withProperty({ more: { type: 'string' } })],
    ['a further optional property of a part', withProperty({ parts: { ...properties.parts, items: { ...part, properties: { ...part.properties, m: {} } } } })],
    ['other words, another order', { ...withProperty({ kind: { enum: ['y', 'x'], description: 'x or y' } }), title: 'A thing', required: ['parts', 'id', 'kind'] }],
  ])('%s is compatible', (_what, today) => {
    expect(changes(released, today)).toEqual([]);
  });

  test.each<[string, object, string]>([
    ['a property that is gone', { ...released, properties: { ...properties, note: undefined } as object }, '$.note has changed'],
    ['a property that was renamed', { ...released, properties: Object.fromEntries(Object.entries(properties).map(([name, value]) => [name === 'note' ? 'notes' : name, value])) }, '$.note is gone'],
    ['a property newly required', { ...released, required: [...released.required, 'note'] }, '$.required has changed'],
    ['a property that is not sure to come any more', { ...released, required: ['id', 'kind'] }, '$.required has changed'],
    ['a narrower type', withProperty({ note: { type: 'string' } }), '$.note.type has changed'],
    ['another type', withProperty({ id: { type: 'integer', pattern: '^a' } }), '$.id.type has changed'],
    ['a value less', withProperty({ kind: { enum: ['x'] } }), '$.kind.enum has changed'],
    ['a value more', withProperty({ kind: { enum: ['x', 'y', 'z'] } }), '$.kind.enum has changed'],
    ['another pattern', withProperty({ id: { type: 'string', pattern: '^b' } }), '$.id.pattern has changed'],
    ['a new rule', withProperty({ id: { ...properties.id, maxLength: 3 } }), '$.id.maxLength has changed'],
    ['no additions any more', { ...released, additionalProperties: false }, '$.additionalProperties has changed'],
    ['a change within a part', withProperty({ parts: { ...properties.parts, items: { ...part, properties: { n: { type: 'string' } } } } }), '$.parts.items.n.type has changed'],
    ['one alternative less', withProperty({ reason: { anyOf: [{ type: 'string' }] } }), '$.reason.anyOf has changed'],
    ['another alternative', withProperty({ reason: { anyOf: [{ type: 'string' }, { type: 'integer' }] } }), '$.reason.anyOf[1].type has changed'],
  ])('%s is not', (_what, today, change) => {
    expect(changes(released, today)).toEqual([change]);
  });
});
