import { beforeAll, expect, test } from 'vitest';
import type { ReceivedMessage } from '#libs/kafka/consume/consume.ts';
import { readOutbox } from '#libs/postgres/outbox/test/test-outbox.ts';
import {
  ledgerReply,
  messageFor,
  newClient,
  newId,
  openAccountCommand,
  readOutboxByKey,
  retail,
  useAccounts,
} from '../test/harness.ts';

/** Tests that commands of one batch succeed or fail independently. */

const bank = useAccounts();
let client_id: string;
beforeAll(async () => {
  client_id = await newClient(bank);
});

const answerTo = (message: ReceivedMessage) =>
  bank.repliesTo(message.headers['correlation-id'] ?? '').map((reply) => (reply.ok ? 'ok' : reply.refusal.code));

/** Without a limit, every initial deposit needs an approval. */
const rules = JSON.stringify({ actions: ['post_above'], limits: {}, day: '2026-01-02' });

test('openings of one batch succeed or fail independently', async () => {
  const open = (data = openAccountCommand(client_id), overrides = {}) =>
    messageFor('open_account', data, { message_id: data.account_id, fingerprint: 'a', ...overrides });
  const repeated = openAccountCommand(client_id);
  const batch = {
    good: open(),
    noClient: open(openAccountCommand(newId('client'))),
    malformedClient: open(openAccountCommand('cli_\u0000')),
    foreign: open(openAccountCommand(client_id), { bound_client_id: newId('client') }),
    own: open(openAccountCommand(client_id), { bound_client_id: client_id }),
    late: open(openAccountCommand(client_id), { deadline: '2026-01-01T00:00:00.000Z' }),
    unapproved: open(openAccountCommand(client_id), { four_eyes: rules }),
    first: open(repeated),
    again: open(repeated),
    other: open(repeated, { fingerprint: 'b' }),
    // The command is new but the account exists, so Postgres rejects it.
    impossible: open(repeated, { message_id: 'cmd_impossible' }),
    last: open(),
  };
  await bank.handleCommands(Object.values(batch));
  const opened = Object.values(batch).flatMap(({ value }) => {
    const { account_id } = JSON.parse(String(value)) as { account_id: string };
    return [
      ledgerReply(account_id, account_id, {
        ok: true,
        data: { account_id, status: 'Active', status_version: 1, balance: '10.00' },
      }),
    ];
  });
  await bank.handleCommands(opened);
  expect(Object.fromEntries(Object.entries(batch).map(([name, message]) => [name, answerTo(message)]))).toEqual({
    good: ['ok'],
    noClient: ['client_not_found'],
    malformedClient: ['client_not_found'],
    foreign: ['client_not_found'],
    own: ['ok'],
    late: ['deadline_exceeded'],
    unapproved: ['approval_required'],
    first: ['ok'],
    again: ['ok'],
    other: ['idempotency_key_reused'],
    impossible: ['internal_error'],
    last: ['ok'],
  });
  expect(bank.deadLetters.splice(0).map(({ code }) => code)).toEqual(['internal_error']);
  expect((await readOutboxByKey(bank.pool, repeated.account_id)).map((row) => row.topic)).toEqual([
    'ledger.commands',
    'accounts',
  ]);
});

test('invalid, late, or duplicate replies of the ledger do not affect others', async () => {
  const data = Array.from({ length: 4 }, () => openAccountCommand(client_id));
  const messages = data.map((each) => messageFor('open_account', each, { message_id: each.account_id }));
  await bank.handleCommands(messages);
  const reply = (i: number, result: object) =>
    ledgerReply(data[i]?.account_id ?? '', data[i]?.account_id ?? '', {
      ok: true,
      data: { account_id: data[i]?.account_id, status: 'Active', status_version: 1, balance: '10.00', ...result },
    });
  await bank.handleCommands([
    reply(0, {}),
    reply(0, {}),
    reply(1, { status: 'Odd' }),
    ledgerReply(data[2]?.account_id ?? '', data[2]?.account_id ?? '', {
      ok: false,
      refusal: { code: 'amount_too_large', message: 'no' },
    }),
    ledgerReply(newId('account'), 'x', { ok: true, data: {} }),
    reply(3, {}),
  ]);
  expect(messages.map(answerTo)).toEqual([['ok'], [], ['amount_too_large'], ['ok']]);
  expect(bank.deadLetters.splice(0)).toHaveLength(1);
});

test('only one of several clients of one batch that request one USSD number gets it', async () => {
  const client = { ...retail, ussd_phone_number: '+254722222222', ussd_status: 'active' as const };
  const batch = Array.from({ length: 10 }, () => messageFor('create_client', { client_id: newId('client'), client }));
  await bank.handleCommands(batch);
  expect(batch.flatMap(answerTo).sort()).toEqual([...Array.from({ length: 9 }, () => 'duplicate_ussd_phone'), 'ok']);
});

test('concurrent batches with the same commands in different order neither fail nor execute anything twice', async () => {
  const second = bank.process();
  const data = Array.from({ length: 60 }, () => openAccountCommand(client_id));
  const batch = () => data.map((each) => messageFor('open_account', each, { message_id: each.account_id }));
  const [forwards, backwards] = [batch(), batch().reverse()];
  await Promise.all([bank.handleCommands(forwards), second.handleCommands(backwards)]);
  const replies = data.map(({ account_id }) =>
    ledgerReply(account_id, account_id, {
      ok: true,
      data: { account_id, status: 'Active', status_version: 1, balance: '10.00' },
    }),
  );
  await Promise.all([bank.handleCommands(replies), second.handleCommands(replies.toReversed())]);
  for (const message of [...forwards, ...backwards]) {
    const own = [bank, second].flatMap((process) => process.repliesTo(message.headers['correlation-id'] ?? ''));
    expect(own).toMatchObject([{ ok: true }]);
  }
  const opened = (await readOutbox(bank.pool)).filter(({ type }) => type === 'corebanking.account.opened.v1');
  const times = data.map(({ account_id }) => opened.filter(({ key }) => key === account_id).length);
  expect(times).toEqual(data.map(() => 1));
});
