import { expect, test } from 'vitest';
import type { DeadLetter } from '#libs/contracts/dead-letters.ts';
import { MacKeys } from '#libs/contracts/mac.ts';
import { messageType } from '#libs/contracts/messages.ts';
import type { ReceivedMessage } from '#libs/kafka/consume/consume.ts';
import { PublishError } from '#libs/kafka/publish/publish.ts';
import { signedForTest, testKeys } from '#libs/service/test/keys.ts';
import { shownValue } from '../queries/administration-queries.ts';
import { messageFor, newId, received, retail, useAccounts } from '../test/harness.ts';
import { deadLetterRow } from './dead-letters.ts';

const bank = useAccounts();

const why = {
  'dlq-code': 'malformed_json',
  'dlq-reason': 'the value is not JSON',
  'dlq-topic': 'p.ledger.commands',
  'dlq-partition': '3',
};
let sources = 0;

/** Returns a message as stored in a dead-letter topic. */
function dead(changes: Partial<ReceivedMessage> = {}): ReceivedMessage {
  const headers = {
    ce_type: messageType('create_transaction'),
    'request-id': 'r-1',
    'reply-topic': 'p.replies',
    'reply-partition': '1',
    'correlation-id': 'c',
    deadline: '2026-01-01T00:00:00.000Z',
    ...why,
    'dlq-offset': String(++sources),
    ...changes.headers,
  };
  return { ...received('p.ledger.commands.dlq', 'acc_x', headers, '{"x":1}'), partition: 0, ...changes, headers };
}

async function listed(message: ReceivedMessage): Promise<DeadLetter> {
  const { topic, partition, offset } = message;
  bank.kept.set(`${topic}/${partition}/${offset}`, message);
  await bank.handleCommands([message]);
  const { dead_letter_id } = deadLetterRow(message, 'p.');
  const reply = await bank.send('get_dead_letter', { dead_letter_id });
  if (!reply?.ok) throw new Error(JSON.stringify(reply));
  return reply.data as DeadLetter;
}

test('a dead letter is listed once, even if its copy is read again or the message fails again', async () => {
  const message = dead();
  const letter = await listed(message);
  await bank.handleCommands([message, dead({ headers: message.headers })]);
  await bank.process().handleCommands([message]);
  const rows = await bank.pool.query('select dead_letter_id from dead_letters where source_offset = $1', [
    letter.source_offset,
  ]);
  expect(rows.rows).toEqual([{ dead_letter_id: letter.dead_letter_id }]);
});

test('another message at the same offset is another dead letter, because the topic may have been created again', async () => {
  const message = dead();
  const letter = await listed(message);
  const other = await listed({ ...message, value: Buffer.from('other'), timestamp_ms: message.timestamp_ms + 1 });
  expect(other.dead_letter_id).not.toBe(letter.dead_letter_id);
  expect(await bank.send('get_dead_letter', { dead_letter_id: letter.dead_letter_id })).toMatchObject({
    ok: true,
    data: { available: false, value: null },
  });
});

test('a dead letter with any key, headers, and bytes is listed and never becomes a dead letter again', async () => {
  const odd = ['\0', '\ud83d', 'x'.repeat(10_000), '99999999999999999999', ''];
  for (const text of odd) {
    const headers = {
      ce_type: text,
      'request-id': text,
      'dlq-code': text,
      'dlq-reason': text,
      'dlq-partition': text,
      'dlq-offset': text,
    };
    expect(await listed(dead({ key: text, headers, value: null }))).toMatchObject({
      state: 'open',
      source_topic: 'ledger.commands',
      source_partition: null,
      source_offset: null,
      message: null,
      size_bytes: 0,
    });
  }
  expect(await listed({ ...dead(), headers: {}, key: null })).toMatchObject({ key: null, code: null, reason: null });
  expect(bank.deadLetters).toEqual([]);
});

test('dead letters do not delay the commands that arrive with them', async () => {
  const client_id = newId('client');
  const command = messageFor('create_client', { client_id, client: retail }, { message_id: client_id });
  await bank.handleCommands([dead(), command, dead()]);
  expect(bank.repliesTo(command.headers['correlation-id'] ?? '')).toMatchObject([{ ok: true }]);
});

test('redriving sends key, partition, bytes, and headers unchanged, without reasons and reply address', async () => {
  const bytes = Buffer.from([0xff, 0, 0x80]);
  const message = dead({ value: bytes });
  const { dead_letter_id } = await listed(message);
  expect(await bank.send('redrive_dead_letter', { dead_letter_id, renew_deadline: false })).toMatchObject({
    ok: true,
    data: { state: 'redriven', decided_by: 'key:key_tester' },
  });
  const headers = {
    ce_type: messageType('create_transaction'),
    'request-id': 'r-1',
    deadline: '2026-01-01T00:00:00.000Z',
  };
  expect(bank.redriven.at(-1)).toEqual({
    topic: 'p.ledger.commands',
    partition: 3,
    key: 'acc_x',
    value: bytes,
    headers,
  });
});

test('a dropped command is sent to the ledger once more with an expired deadline; one that would fail again is not', async () => {
  const id = newId('account').slice(4);
  const data = {
    transaction_id: `txn_${id}`,
    account_id: `acc_${id}`,
    transaction_type: 'Deposit',
    amount: '5',
    currency: null,
    description: null,
    reference: null,
  };
  const command = {
    ce_id: data.transaction_id,
    ce_time: '2026-01-01T00:00:00.000Z',
    deadline: '2026-01-01T00:00:30.000Z',
  };
  const bytes = Buffer.from(JSON.stringify(data));
  const good = signedForTest(dead({ value: bytes, headers: command }));
  const { dead_letter_id } = await listed(good);
  const sentBefore = bank.redriven.length;
  expect(await bank.send('drop_dead_letter', { dead_letter_id, reason: 'no' })).toMatchObject({
    ok: true,
    data: { state: 'dropped', drop_reason: 'no' },
  });
  const signed = {
    ce_type: messageType('create_transaction'),
    'request-id': 'r-1',
    ...command,
    mac: good.headers['mac'] ?? '',
  };
  const headers = testKeys.renewed(signed, command.ce_time);
  expect(bank.redriven.slice(sentBefore)).toEqual([
    { topic: 'p.ledger.commands', partition: 3, key: 'acc_x', value: bytes, headers },
  ]);
  const saga = dead({ value: bytes, headers: command });
  delete saga.headers['deadline'];
  for (const other of [dead({ headers: command }), saga].map(signedForTest)) {
    const letter = await listed(other);
    expect(await bank.send('drop_dead_letter', { dead_letter_id: letter.dead_letter_id, reason: null })).toMatchObject({
      ok: true,
      data: { state: 'dropped' },
    });
  }
  expect(bank.redriven).toHaveLength(sentBefore + 1);
});

test('dropping a message of a batch closes its items in the same way', async () => {
  const id = newId('account').slice(4);
  const transfer = {
    from_account_id: `acc_${id}`,
    to_account_id: `acc_${id}`,
    amount: '5',
    currency: null,
    description: null,
  };
  const bytes = Buffer.from(JSON.stringify({ batch_id: `bat_${id}`, mode: 'independent', items: [{ transfer }] }));
  const message = dead({
    value: bytes,
    headers: { ce_id: `bat_${id}`, ce_time: '2026-01-01T00:00:00.000Z', deadline: '2026-01-01T00:00:30.000Z' },
  });
  Object.assign(message.headers, { ce_type: messageType('create_batch'), 'dlq-topic': 'p.ledger.batches' });
  const { dead_letter_id } = await listed({ ...signedForTest(message), topic: 'p.ledger.batches.dlq' });
  const sentBefore = bank.redriven.length;
  expect(await bank.send('drop_dead_letter', { dead_letter_id, reason: null })).toMatchObject({
    ok: true,
    data: { state: 'dropped' },
  });
  expect(bank.redriven.slice(sentBefore)).toMatchObject([
    { topic: 'p.ledger.batches', value: bytes, headers: { 'renewed-deadline': '2026-01-01T00:00:00.000Z' } },
  ]);
});

test('a renewed deadline is 30 s ahead; a message without a deadline gets none', async () => {
  bank.clock.now = new Date('2026-03-04T05:06:07.000Z');
  const [withOne, without] = [dead(), dead()];
  delete without.headers['deadline'];
  for (const [message, expected] of [
    [withOne, '2026-03-04T05:06:37.000Z'],
    [without, undefined],
  ] as const) {
    const { dead_letter_id } = await listed(message);
    await bank.send(
      'redrive_dead_letter',
      { dead_letter_id, renew_deadline: true },
      { deadline: '2026-03-04T05:06:20.000Z', reply_by: '2026-03-04T05:06:20.000Z' },
    );
    expect(bank.redriven.at(-1)?.headers['renewed-deadline']).toBe(expected);
  }
  bank.clock.now = undefined;
});

test('a dead letter that the broker does not accept stays open: 503 if it was not sent, 504 if that is unknown', async () => {
  for (const [error, code] of [
    [new PublishError('no', false), 'service_unavailable'],
    [new PublishError('?', true), 'outcome_unknown'],
  ] as const) {
    const other = bank.process();
    const message = dead();
    const { dead_letter_id } = await listed(message);
    other.deps.deadLetters.read = async () => message;
    other.deps.deadLetters.publish = () => Promise.reject(error);
    expect(await other.send('redrive_dead_letter', { dead_letter_id, renew_deadline: false })).toMatchObject({
      ok: false,
      refusal: { code },
    });
    expect(await bank.send('get_dead_letter', { dead_letter_id })).toMatchObject({ data: { state: 'open' } });
  }
});

test('only one of two concurrent decisions succeeds', async () => {
  const { dead_letter_id } = await listed(dead());
  const sentBefore = bank.redriven.length;
  const replies = await Promise.all([
    bank.send('redrive_dead_letter', { dead_letter_id, renew_deadline: false }),
    bank.send('redrive_dead_letter', { dead_letter_id, renew_deadline: false }),
    bank.send('redrive_dead_letter', { dead_letter_id, renew_deadline: false }),
  ]);
  expect(replies.map((reply) => (reply?.ok ? 'done' : reply?.refusal.code)).sort()).toEqual([
    'done',
    'invalid_status_transition',
    'invalid_status_transition',
  ]);
  expect(bank.redriven).toHaveLength(sentBefore + 1);
});

test('text is truncated between characters; other bytes are shown in base64', () => {
  expect(shownValue(Buffer.from(`a${'€'.repeat(30_000)}`))).toEqual({
    value: `a${'€'.repeat(21_845)}`,
    encoding: 'utf-8',
    truncated: true,
  });
  expect(shownValue(Buffer.from('x'.repeat(65_536)))).toMatchObject({ truncated: false });
  expect(shownValue(Buffer.from([0xff, 0x01]))).toEqual({ value: '/wE=', encoding: 'base64', truncated: false });
  expect(shownValue(null)).toEqual({ value: null, encoding: null, truncated: false });
});

test('a dead letter that is signed with a key that is no longer accepted is not redriven, only dropped', async () => {
  const message = dead();
  new MacKeys({ gateway: ['a key that has been removed'] }).sign('gateway', message);
  const { dead_letter_id } = await listed(message);
  const before = bank.redriven.length;
  expect(await bank.send('redrive_dead_letter', { dead_letter_id, renew_deadline: true })).toMatchObject({
    ok: false,
    refusal: { code: 'dead_letter_expired', message: expect.stringMatching(/gateway\/.{8}.*no longer accepted/) },
  });
  expect(await bank.send('drop_dead_letter', { dead_letter_id, reason: 'old' })).toMatchObject({ ok: true });
  expect(bank.redriven).toHaveLength(before);
});
