import { describe, expect, it } from 'vitest';
import { type EventType, events } from '#libs/contracts/events.ts';
import { type MessageName, messages, messageType, notYetSent } from '#libs/contracts/messages.ts';
import { topics } from '#libs/contracts/topics.ts';
import { type MessageSchemas, messageSchemas, type Schema, unread } from './readable.ts';
import { decode, readRecording, readText, releases } from './recording.ts';

/** Messages of each release mean the same today, so that a new version can read what an old one has left in the topics. */
const names = Object.keys(messages) as MessageName[];

/** Messages and events that the last release does not have. */
const addedSince: (MessageName | EventType)[] = [];

/** What the last release does not know, and may ignore without harm, as `unread` says it. */
const harmless: string[] = [];

describe.each(releases)('release %s', (release) => {
  const { messages: recorded, ...reader } = readRecording(release);

  it('has messages that are authentic, and mean today what they meant', () => {
    expect(recorded.length).toBeGreaterThan(200);
    // Fields may have been added since.
    for (const { decoded, ...message } of recorded)
      expect.soft([decode(message, reader)], `${message.topic} ${message.headers['ce_type']}`).toMatchObject([decoded]);
    const signers = recorded
      .filter(({ topic }) => /^(sessions|ledger\.position)$/.test(topic))
      .map(({ decoded }) => decoded);
    expect(signers).toMatchObject([{ signer: 'ledger' }, { signer: 'gateway' }]);
    const text = JSON.stringify(recorded.map(({ decoded }) => decoded));
    expect(text).not.toMatch(/"isSigned":false|"isAuthentic":false(?!,"signer":"gateway")|not_authentic|unknown_key/);
    expect(text).toContain('"isSigned":true');
  });

  it('a changed byte is found', () => {
    const { decoded, ...message } = recorded.find(({ topic }) => topic === 'ledger.commands') ?? fail();
    expect(decode({ ...message, value: `${message.value} ` }, reader)).not.toEqual(decoded);
  });
});

describe('the last release', () => {
  const last = releases.at(-1) ?? '';
  const { messages: recorded } = readRecording(last);

  it('has every message with its reply, and every event, except those added since', () => {
    const types = new Set(recorded.map(({ headers }) => headers['ce_type']));
    const answered = new Set(recorded.map(({ answers }) => answers));
    const added = new Set<string>(addedSince);
    expect(names.filter((name) => !types.has(messageType(name)) && !added.has(name))).toEqual([]);
    const asked = new Set(
      recorded.filter(({ headers }) => 'reply-topic' in headers).map(({ headers }) => headers['ce_type']),
    );
    const replied = (name: MessageName) =>
      asked.has(messageType(name)) && !messages[name].result.safeParse(null).success;
    expect(names.filter((name) => replied(name) && !answered.has(name))).toEqual([]);
    expect(Object.keys(events).filter((type) => !types.has(type) && !added.has(type))).toEqual([]);
  });

  const then = JSON.parse(readText(last, 'schemas.json.gz')) as MessageSchemas;
  const now = messageSchemas();
  const common = Object.keys(now).filter((name) => name in then);

  it('reads all that this version sends: others wait in notYetSent until it is the release before', () => {
    expect(Object.keys(now).filter((name) => !(name in then))).toEqual([...notYetSent]);
    const refused = common.flatMap((name) =>
      (['data', 'result'] as const).flatMap((part) =>
        unread(then[name]?.[part] ?? {}, now[name]?.[part] ?? {}, `${name}.${part}`),
      ),
    );
    expect(refused.filter((line) => !harmless.includes(line))).toEqual([]);
    expect(common.length).toBeGreaterThan(90);
  });

  const rule = { type: 'string', maxLength: 9 };
  const order = { enum: ['asc', 'desc'] };
  const rows = { type: 'array', items: { type: 'integer' } };
  const before = { type: 'object', properties: { amount: rule, order, rows }, required: ['amount'] };
  it.each<[string, Schema, string[]]>([
    ['nothing', {}, []],
    ['a description', { properties: { amount: { ...rule, description: 'x' } } }, []],
    ['an optional field less', { properties: { amount: rule, rows } }, []],
    ['a value less', { properties: { order: { enum: ['asc'] } } }, []],
    ['a field that is always sent now', { required: ['amount', 'order'] }, []],
    ['a new field', { properties: { day: {} } }, ['m.day: it does not know this field']],
    ['a field that may be missing now', { required: [] }, ['m.amount: it requires this field']],
    ['a new value', { properties: { order: { enum: ['asc', 'any'] } } }, ['m.order: it does not know the value any']],
    ['any value', { properties: { order: {} } }, ['m.order: its rule is another one']],
    ['a longer text', { properties: { amount: { ...rule, maxLength: 10 } } }, ['m.amount: its rule is another one']],
    ['no items', { properties: { rows: { type: 'array' } } }, ['m.rows: its rule is another one']],
    ['other items', { properties: { rows: { ...rows, items: {} } } }, ['m.rows[]: its rule is another one']],
  ])('%s: what the release would not understand is found', (_, change, found) => {
    expect(unread(before, { ...before, ...change }, 'm')).toEqual(found);
  });

  /** Every part of a schema that is named, with what it belongs to. */
  const named = common.flatMap((name) =>
    (['data', 'result'] as const).flatMap((part) =>
      Object.keys((then[name]?.[part]['$defs'] ?? {}) as object).map((definition) => ({ name, part, definition })),
    ),
  );

  it('a change of any named part is found', () => {
    expect(named.length).toBeGreaterThan(100);
    const missed = named.filter(({ name, part, definition }) => {
      const before = then[name]?.[part] ?? {};
      const after = structuredClone(before) as { $defs: Record<string, Schema> };
      Object.assign(after.$defs[definition] ?? {}, { added: true });
      return unread(before, after as Schema, name).length === 0;
    });
    expect(missed).toEqual([]);
  });

  it('has topics with the settings of today, or topics were added', () => {
    expect(topics).toMatchObject(JSON.parse(readText(last, 'topics.json')) as object);
  });
});

function fail(): never {
  throw new Error('the recording has no command');
}
