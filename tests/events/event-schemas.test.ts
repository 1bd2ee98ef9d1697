import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import asyncApi3 from '@asyncapi/specs/schemas/3.0.0-without-$id.json' with { type: 'json' };
import { Ajv } from 'ajv';
import formats from 'ajv-formats';
import { describe, expect, it, test } from 'vitest';
import { errorCodes } from '#libs/contracts/errors.ts';
import { failureCodes } from '#libs/contracts/event-fields.ts';
import { type EventType, eventHeadersSchema, events } from '#libs/contracts/events.ts';
import { eventTopics, isEventTopic, type TopicDefinition, topics } from '#libs/contracts/topics.ts';
import { eventExample, eventSchemaFiles } from '../../tools/generate/events/event-schemas.ts';
import { changes } from '../support/schema-changes.ts';

/** Tests that the documents for consumers in docs/ are correct and stay compatible with released versions. */
const root = join(import.meta.dirname, '..', '..');
const read = (file: string) => JSON.parse(readFileSync(join(root, file), 'utf8'));
/** One instance per schema, because some are compared with earlier versions under the same name. */
function compile(schema: object) {
  const ajv = new Ajv({ strict: true, allowUnionTypes: true });
  formats.default(ajv);
  return ajv.compile(schema);
}
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

  it('lists every event in its topic, and nothing internal', () => {
    const published = types.filter((type) => isEventTopic(events[type].topic));
    for (const type of published) expect(document.channels[events[type].topic].messages[type], type).toBeDefined();
    expect(Object.keys(document.components.messages).sort()).toEqual(published.sort());
    expect(Object.keys(document.channels).filter((topic) => !isEventTopic(topic))).toEqual([]);
    expect(document.channels.balances.bindings.kafka).toMatchObject({
      partitions: topics.balances.partitions,
      topicConfiguration: { 'cleanup.policy': ['compact'] },
    });
    expect(document.channels.transactions.bindings.kafka.topicConfiguration['retention.ms']).toBe(400 * 24 * 3_600_000);
  });

  it('names every part, so that generated classes have names', () => {
    const { schemas, messages } = document.components as {
      schemas: Record<string, { properties?: Record<string, { type?: string; format?: string }> }>;
      messages: Record<string, { payload: { $ref: string } }>;
    };
    expect(Object.keys(schemas)).toEqual(
      expect.arrayContaining(['Transaction', 'Entry', 'Transfer', 'Hold', 'Account', 'Batch', 'RequestChannel']),
    );
    expect(messages['corebanking.transaction.completed.v1']?.payload).toEqual({
      $ref: '#/components/schemas/TransactionCompletedEvent',
    });
    expect(schemas['TransactionCompletedEvent']?.properties).toMatchObject({
      transaction: { $ref: '#/components/schemas/Transaction' },
      entries: { items: { $ref: '#/components/schemas/Entry' } },
      sequence: { type: 'integer', format: 'int64' },
    });
    expect(schemas['Entry']?.properties?.['sequence']).toMatchObject({ type: 'integer', format: 'int64' });
    const nameless: string[] = [];
    const seek = (node: unknown, path: string): void => {
      if (typeof node !== 'object' || node === null) return;
      const { properties, enum: values } = node as { properties?: object; enum?: unknown };
      if (path.includes('.') && (Array.isArray(values) || (properties && 'type' in node))) nameless.push(path);
      for (const [name, item] of Object.entries(node)) seek(item, `${path}.${name}`);
    };
    for (const [name, schema] of Object.entries(schemas)) if (name !== 'EventHeaders') seek(schema, name);
    expect(nameless).toEqual([]);
    expect(Object.keys(schemas).filter((name) => /AnyOf|Items|\d$/.test(name))).toEqual([]);
  });

  it.each(types.filter((type) => isEventTopic(events[type].topic)))(
    'describes the data of %s as its schema does',
    (type) => {
      const lenient = new Ajv({ strict: false });
      formats.default(lenient);
      const { $ref } = document.components.messages[type].payload as { $ref: string };
      const isValid = lenient.compile({ $ref, components: document.components });
      isValid(eventExample(type));
      expect(isValid.errors).toBeNull();
      for (const [what, of, path, value] of broken)
        if (of === type) expect([what, isValid(changed(eventExample(type), path, value))]).toEqual([what, false]);
      expect(isValid({ ...eventExample(type), event_type: 'corebanking.x.v1' })).toBe(false);
    },
  );

  it('every reference resolves', () => {
    for (const [, reference = ''] of JSON.stringify(document).matchAll(/"\$ref":"#\/([^"]+)"/g)) {
      expect(
        reference.split('/').reduce((value, key) => value?.[key], document),
        reference,
      ).toBeDefined();
    }
  });
});

describe('docs/events', () => {
  it('has exactly one schema per type', () => {
    expect(readdirSync(join(root, 'docs/events')).sort()).toEqual(Object.keys(files).sort());
  });

  it.each(types)('%s has a description, allows additional properties, and has a valid example', (type) => {
    const schema = files[`${type}.schema.json`] ?? {};
    const validate = compile(schema);
    validate(eventExample(type));
    expect(validate.errors).toBeNull();
    expect(validate({ ...eventExample(type), an_addition: 1 })).toBe(true);
    expect(validate({})).toBe(false);
    expect(events[type].data.parse(eventExample(type))).toEqual(eventExample(type));
    const bare = JSON.stringify(schema, (name, value: unknown) =>
      name === 'properties'
        ? Object.entries(value as Record<string, object>).map(([field, property]) =>
            'description' in property ? property : { undescribed: field },
          )
        : value,
    );
    expect([...bare.matchAll(/"undescribed":"(\w+)"/g)].map(([, field]) => field)).toEqual([]);
  });

  it('money is a decimal string', () => {
    // contract: money-2
    expect(files['corebanking.balance.v1.schema.json']).toMatchObject({
      properties: { balance: { type: 'string', pattern: '^-?[0-9]+(\\.[0-9]+)?$' } },
    });
  });
});

describe('docs/events.md', () => {
  const page = readFileSync(join(root, 'docs/events.md'), 'utf8');

  it('links the schema of each type, and shows only examples that the schemas have', () => {
    const consumers = types.filter((type) => isEventTopic(events[type].topic));
    const linked = [...page.matchAll(/\[`([\w.]+)`\]\(events\/([\w.]+)\.schema\.json\)/g)];
    for (const [, name, file] of linked) expect(file).toBe(name);
    expect(linked.map(([, name]) => name).sort()).toEqual(consumers.toSorted());
    const shown = [...page.matchAll(/```json\n([\s\S]*?)```/g)].map(([, text = '']) =>
      JSON.stringify(JSON.parse(text)),
    );
    const examples = consumers.map((type) => JSON.stringify(eventExample(type)));
    expect(shown).not.toEqual([]);
    expect(shown.filter((one) => !examples.includes(one))).toEqual([]);
  });

  it('lists topics, partitions, and retention correctly', () => {
    const rows = [...page.matchAll(/^\| `([\w.-]+)` \| \w+ \| (\d+) \| ([\w ]+) \|/gm)].map(
      ([, topic, partitions, kept]) => [topic, Number(partitions), kept],
    );
    const kept = ({ config }: TopicDefinition) =>
      config['cleanup.policy'] === 'compact' ? 'latest of each' : `${Number(config['retention.ms']) / 86_400_000} days`;
    const defined = eventTopics.map((topic) => [topic, topics[topic].partitions, kept(topics[topic])]);
    expect(rows.sort()).toEqual(defined.sort());
    for (const header of Object.keys(eventHeadersSchema.shape)) expect(page).toContain(`| \`${header}\` |`);
  });
});

/** Each violates the schema of its field and nothing else. */
const broken: [what: string, type: EventType, path: string, value: unknown][] = [
  ['a status that is another', 'corebanking.transaction.completed.v1', 'transaction.status', 'Failed'],
  ['a status that is not final', 'corebanking.transaction.failed.v1', 'transaction.status', 'Pending'],
  ['a failure code that there is not', 'corebanking.transaction.failed.v1', 'transaction.failure_code', 'no_luck'],
  ['a failure without its code', 'corebanking.transaction.failed.v1', 'transaction.failure_code', undefined],
  ['an id of another kind', 'corebanking.transaction.completed.v1', 'transaction.account_id', `cli_${'0'.repeat(32)}`],
  ['an id that is cut off', 'corebanking.transaction.completed.v1', 'transaction.transaction_id', 'txn_0195f0'],
  ['an id in capitals', 'corebanking.transaction.completed.v1', 'operation_id', `opr_${'A'.repeat(32)}`],
  ['an amount of nothing', 'corebanking.transaction.completed.v1', 'transaction.amount', '0.00'],
  ['an amount below nothing', 'corebanking.transfer.completed.v1', 'transfer.amount', '-1.00'],
  ['an amount that is a number', 'corebanking.transaction.completed.v1', 'transaction.amount', 25],
  ['a balance that is no decimal', 'corebanking.balance.v1', 'balance', '1e3'],
  [
    'a time without its zone',
    'corebanking.transaction.completed.v1',
    'transaction.created_at',
    '2026-01-02T03:04:05.678',
  ],
  ['a time that there is not', 'corebanking.account.opened.v1', 'account.created_at', '2026-13-02T03:04:05.678Z'],
  ['a sequence of nothing', 'corebanking.transaction.completed.v1', 'sequence', 0],
  ['a sequence below nothing', 'corebanking.balance.v1', 'sequence', -1],
  ['an operation without entries', 'corebanking.transaction.completed.v1', 'entries', []],
  ['a currency in small letters', 'corebanking.transaction.completed.v1', 'transaction.currency', 'usd'],
  ['no client', 'corebanking.transaction.completed.v1', 'client_id', undefined],
  ['an empty actor', 'corebanking.transfer.failed.v1', 'actor', ''],
  ['the type of another event', 'corebanking.transfer.failed.v1', 'event_type', 'corebanking.transfer.completed.v1'],
  ['no id', 'corebanking.transfer.failed.v1', 'event_id', undefined],
  ['an entry without its class', 'corebanking.transaction.completed.v1', 'entries.0.account_class', undefined],
  ['a way that there is not', 'corebanking.transaction.completed.v1', 'request_channel', 'pigeon'],
  ['an account number without its prefix', 'corebanking.balance.v1', 'account_number', '1234567897'],
  ['an unknown type of account', 'corebanking.balance.v1', 'account_type', 'Shoebox'],
  ['a reversal of nothing', 'corebanking.transfer.reversed.v1', 'transfer.reverses_transfer_id', undefined],
  ['a placed hold that is over', 'corebanking.hold.placed.v1', 'hold.status', 'Expired'],
  ['a hash that is cut off', 'corebanking.audit.head.v1', 'heads.0.hash', 'abab'],
];

/** Returns a copy with another value at that path; undefined removes it. */
function changed(example: unknown, path: string, value: unknown): unknown {
  const copy = structuredClone(example) as Record<string, unknown>;
  const names = path.split('.');
  const last = names.pop() ?? '';
  const parent = names.reduce((node, name) => node[name] as Record<string, unknown>, copy);
  if (value === undefined) delete parent[last];
  else parent[last] = value;
  return copy;
}

describe('an invalid event is rejected', () => {
  it.each(broken)('%s', (_what, type, path, value) => {
    const validate = compile(files[`${type}.schema.json`] ?? {});
    expect(validate(eventExample(type))).toBe(true);
    expect(validate(changed(eventExample(type), path, value))).toBe(false);
  });

  it('an unknown transaction_type is valid', () => {
    const type = 'corebanking.transaction.completed.v1';
    const fee = changed(eventExample(type), 'transaction.transaction_type', 'Account Fee');
    expect(compile(files[`${type}.schema.json`] ?? {})(fee)).toBe(true);
    expect(events[type].data.safeParse(fee).success).toBe(true);
  });

  it('a failure_code newer than the consumer is valid for the consumer', () => {
    const type = 'corebanking.transaction.failed.v1';
    expect(
      events[type].data.safeParse(changed(eventExample(type), 'transaction.failure_code', 'no_luck')).success,
    ).toBe(true);
  });
});

it('each failure code is an error code', () => {
  expect(failureCodes.filter((code) => !Object.hasOwn(errorCodes, code))).toEqual([]);
});

/**
 * tests/events/released/<version> has the schemas of a release and sample events from it, written by `npm run record`. The
 * files never change; each release adds a folder.
 */
const releases = readdirSync(join(root, 'tests/events/released')).sort((a, b) =>
  a.localeCompare(b, 'en', { numeric: true }),
);
const last = releases.at(-1) ?? '';
const released = (release: string) =>
  readdirSync(join(root, 'tests/events/released', release)).filter((file) => file.endsWith('.schema.json'));

it(`this version only adds to the schemas of ${last}`, () => {
  const found = released(last).flatMap((file) =>
    changes(read(`tests/events/released/${last}/${file}`), read(`docs/events/${file}`)).map(
      (change) => `${file}: ${change}`,
    ),
  );
  expect(found).toEqual([]);
});

describe.each(releases)('events of release %s', (release) => {
  const folder = `tests/events/released/${release}`;

  it.each(released(release).map((file) => file.replace('.schema.json', '') as EventType))(
    '%s: old events can be read today and match today’s schema without newer properties',
    (type) => {
      const samples = read(`${folder}/${type}.samples.json`) as unknown[];
      expect(samples.length).toBeGreaterThan(0);
      const today = JSON.parse(JSON.stringify(read(`docs/events/${type}.schema.json`), withoutNewer)) as object;
      const schemas = { then: compile(read(`${folder}/${type}.schema.json`)), today: compile(today) };
      for (const sample of samples) {
        expect(events[type].data.parse(sample)).toBeDefined();
        for (const [name, validate] of Object.entries(schemas))
          expect([name, validate(sample), validate.errors]).toEqual([name, true, null]);
      }
    },
  );
});

/** Removes properties that a later release added from a schema's `required`. */
function withoutNewer(_name: string, node: unknown): unknown {
  const { properties, required } = (node ?? {}) as {
    properties?: Record<string, { $comment?: string }>;
    required?: string[];
  };
  if (!properties || !Array.isArray(required)) return node;
  const isNewer = (name: string) => properties[name]?.$comment?.startsWith('since ');
  return { ...(node as object), required: required.filter((name) => !isNewer(name)) };
}

describe('changes between two schemas', () => {
  const released = {
    type: 'object',
    required: ['id', 'kind', 'parts'],
    properties: {
      id: { type: 'string', pattern: '^a' },
      kind: { enum: ['x', 'y'] },
      note: { type: ['string', 'null'] },
      parts: { type: 'array', items: { type: 'object', properties: { n: { type: 'integer' } }, required: ['n'] } },
      reason: { anyOf: [{ type: 'string' }, { type: 'null' }] },
    },
  };
  const { properties } = released;
  const withProperty = (change: object) => ({ ...released, properties: { ...properties, ...change } });
  const part = properties.parts.items;

  test.each([
    ['nothing', released],
    ['a further optional property', withProperty({ more: { type: 'string' } })],
    [
      'an additional optional property of a part',
      withProperty({ parts: { ...properties.parts, items: { ...part, properties: { ...part.properties, m: {} } } } }),
    ],
    [
      'an additional property that all have',
      { ...withProperty({ more: { type: 'string' } }), required: [...released.required, 'more'] },
    ],
    [
      'an additional value of an open list',
      withProperty({ kind: { enum: ['x', 'y', 'z'], $comment: 'open: accept unknown values' } }),
    ],
    [
      'another description and order',
      {
        ...withProperty({ kind: { enum: ['y', 'x'], description: 'x or y' } }),
        title: 'A thing',
        required: ['parts', 'id', 'kind'],
      },
    ],
  ])('%s is compatible', (_what, today) => {
    expect(changes(released, today)).toEqual([]);
  });

  test.each<[string, object, string]>([
    [
      'a removed property',
      { ...released, properties: { ...properties, note: undefined } as object },
      '$.note has changed',
    ],
    [
      'a renamed property',
      {
        ...released,
        properties: Object.fromEntries(
          Object.entries(properties).map(([name, value]) => [name === 'note' ? 'notes' : name, value]),
        ),
      },
      '$.note is gone',
    ],
    ['a property newly required', { ...released, required: [...released.required, 'note'] }, '$.required has changed'],
    ['a property that is no longer required', { ...released, required: ['id', 'kind'] }, '$.required has changed'],
    ['a narrower type', withProperty({ note: { type: 'string' } }), '$.note.type has changed'],
    ['another type', withProperty({ id: { type: 'integer', pattern: '^a' } }), '$.id.type has changed'],
    ['a value less', withProperty({ kind: { enum: ['x'] } }), '$.kind.enum has changed'],
    ['a value more', withProperty({ kind: { enum: ['x', 'y', 'z'] } }), '$.kind.enum has changed'],
    ['another pattern', withProperty({ id: { type: 'string', pattern: '^b' } }), '$.id.pattern has changed'],
    ['a new rule', withProperty({ id: { ...properties.id, maxLength: 3 } }), '$.id.maxLength has changed'],
    [
      'a removed value of an open list',
      withProperty({ kind: { enum: ['x'], $comment: 'open: accept unknown values' } }),
      '$.kind.enum has changed',
    ],
    ['no additions any more', { ...released, additionalProperties: false }, '$.additionalProperties has changed'],
    [
      'a change within a part',
      withProperty({ parts: { ...properties.parts, items: { ...part, properties: { n: { type: 'string' } } } } }),
      '$.parts.items.n.type has changed',
    ],
    ['one alternative less', withProperty({ reason: { anyOf: [{ type: 'string' }] } }), '$.reason.anyOf has changed'],
    [
      'another alternative',
      withProperty({ reason: { anyOf: [{ type: 'string' }, { type: 'integer' }] } }),
      '$.reason.anyOf[1].type has changed',
    ],
  ])('%s is incompatible', (_what, today, change) => {
    expect(changes(released, today)).toEqual([change]);
  });
});
