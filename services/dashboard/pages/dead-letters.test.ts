import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import type { ReplyBody } from '#libs/contracts/envelope.ts';
import { ok, refused } from '../../gateway/test/test-app.ts';
import { actorText } from '../html/actors.ts';
import { testDashboard } from '../test/test-dashboard.ts';

/** Dead letters without a browser: what is shown, what is asked before they are decided, and what a decision sends. */
let made: Awaited<ReturnType<typeof testDashboard>>;
let answers: Record<string, ReplyBody>;

const id = `dlt_${'d'.repeat(32)}`;
const url = '/admin/ui/operations/dead-letters';
const time = '2026-01-02T03:04:05.678Z';
const letter = {
  dead_letter_id: id,
  topic: 'ledger.commands.dlq',
  partition: 0,
  offset: 7,
  source_topic: 'ledger.commands',
  source_partition: 3,
  source_offset: 99,
  key: 'acc_x',
  code: 'invalid_data',
  reason: 'amount: <b>',
  size_bytes: 12,
  message: 'create_transaction',
  request_id: 'req 1',
  dead_at: time,
  state: 'open',
  decided_by: null,
  decided_at: null,
  drop_reason: null,
};
const content = {
  ...letter,
  available: true,
  headers: { ce_type: 'x' },
  value: '{"no": "<JSON>',
  encoding: 'utf-8',
  truncated: false,
};

beforeAll(async () => {
  made = await testDashboard(({ name }) => answers[name] ?? 'no_reply');
});
beforeEach(() => {
  answers = { list_dead_letters: ok({ items: [letter] }), get_dead_letter: ok(content) };
});
afterAll(() => made.app.close());

const sent = (name: string) =>
  made.sent
    .filter(({ headers }) => headers['ce_type'] === `corebanking.command.${name}.v1`)
    .map(({ value }) => JSON.parse(String(value)) as unknown);

describe('dead letters', () => {
  it('leave as a CSV file with their filters, without what a spreadsheet would run', async () => {
    answers['list_dead_letters'] = ok({ items: [{ ...letter, reason: '=1+1' }] });
    const { get } = made.signedIn('ops:manage');
    expect((await get(`${url}?state=open`)).body).toContain(`href="${url}.csv?state=open"`);
    const { body } = await get(`${url}.csv?state=open`);
    expect(body).toContain(`"${id}","${time}","create_transaction","invalid_data","'=1+1","ledger.commands","3","99"`);
    expect(JSON.parse(String(made.sent.findLast(({ value }) => value?.includes('"limit"'))?.value))).toMatchObject({
      state: 'open',
      limit: 500,
    });
  });

  it('require ops:manage', async () => {
    for (const path of [url, `${url}.csv`, `${url}/${id}`, `${url}/${id}/redrive`, `${url}/${id}/drop`])
      expect((await made.signedIn('audit:read').get(path)).statusCode, path).toBe(403);
  });

  it('are listed with reasons, by state and topic', async () => {
    const { body } = await made.signedIn('ops:manage').get(`${url}?state=open&topic=ledger.commands.dlq`);
    expect(JSON.parse(String(made.sent.at(-1)?.value))).toMatchObject({
      state: 'open',
      topic: 'ledger.commands.dlq',
      limit: 50,
    });
    for (const text of [`href="${url}/${id}"`, 'amount: &lt;b&gt;', 'create_transaction', '/admin/ui/find?q=req+1'])
      expect(body).toContain(text);
  });

  it('are shown with headers and value; after a decision, or without the bytes, only the remaining actions are offered', async () => {
    const { get } = made.signedIn('ops:manage clients:read');
    const open = (await get(`${url}/${id}`)).body;
    for (const text of [
      '{&quot;no&quot;: &quot;&lt;JSON&gt;',
      'ce_type',
      'partition 3, offset 99',
      `href="${url}/${id}/redrive"`,
      `href="${url}/${id}/drop"`,
    ])
      expect(open).toContain(text);
    answers['get_dead_letter'] = ok({ ...content, available: false, headers: {}, value: null, encoding: null });
    const gone = (await get(`${url}/${id}`)).body;
    expect(gone).toContain('can only be dropped');
    expect(gone).not.toContain(`${id}/redrive`);
    answers['get_dead_letter'] = ok({
      ...content,
      state: 'dropped',
      decided_by: 'jwt:https://issuer.example|ada',
      decided_at: time,
      drop_reason: 'a test',
    });
    const dropped = (await get(`${url}/${id}?decided`)).body;
    expect(dropped).toMatch(/Done\.[\s\S]*title="jwt:https:\/\/issuer\.example\|ada">ada</);
    expect(dropped).not.toContain(`${id}/drop`);
  });

  it.each([
    ['redrive', { renew_deadline: 'yes' }, { dead_letter_id: id, renew_deadline: true }],
    ['drop', { reason: ' sent by a test ' }, { dead_letter_id: id, reason: 'sent by a test' }],
  ])('%s: after confirmation, and only once', async (decision, fields, data) => {
    const { session, post, get } = made.signedIn('ops:manage clients:read');
    const form = await get(`${url}/${id}/${decision}`);
    const key = /name="idempotency_key" value="([^"]+)"/.exec(form.body)?.[1] ?? '';
    const given = { csrf_token: session.csrf, idempotency_key: key, ...fields };
    const name = `${decision}_dead_letter`;
    const unconfirmed = await post(`${url}/${id}/${decision}`, given);
    expect([unconfirmed.statusCode, unconfirmed.body.includes('Tick this to confirm'), sent(name)]).toEqual([
      400,
      true,
      [],
    ]);
    answers[name] = ok({ ...letter, state: decision === 'drop' ? 'dropped' : 'redriven' });
    for (let twice = 0; twice < 2; twice++)
      expect((await post(`${url}/${id}/${decision}`, { ...given, confirmed: 'yes' })).headers.location).toBe(
        `${url}/${id}?decided`,
      );
    expect(sent(name)).toEqual([data, data]);
    const ids = made.sent
      .filter(({ headers }) => headers['ce_type']?.includes(name))
      .map(({ headers }) => headers['ce_id']);
    expect(new Set(ids).size).toBe(1);
  });

  it.each([
    [refused('invalid_status_transition', 'is already dropped'), 400, 'is already dropped'],
    [refused('dead_letter_expired', 'no longer kept'), 410, 'no longer kept'],
    [refused('outcome_unknown', 'repeat the request'), 504, 'Outcome not known yet'],
  ])('a refusal or an unknown outcome is shown (%#)', async (answer, status, text) => {
    answers['redrive_dead_letter'] = answer;
    const { session, post } = made.signedIn('ops:manage clients:read');
    const page = await post(`${url}/${id}/redrive`, {
      csrf_token: session.csrf,
      idempotency_key: 'k',
      confirmed: 'yes',
    });
    expect([page.statusCode, page.body.includes(text)]).toEqual([status, true]);
  });
});

it('an actor is shown by its subject, or its key by name', () => {
  const names = new Map([['key_1', 'Partner']]);
  expect(
    ['jwt:https://i.example|ada|x', 'key:key_1', 'key:key_2', 'system:bootstrap', 'unauthenticated', ''].map((actor) =>
      actorText(actor, names),
    ),
  ).toEqual(['ada|x', 'key Partner', 'key_2', 'system:bootstrap', 'unauthenticated', '']);
});
