import { expect, test } from 'vitest';
import { MacKeys } from '#libs/contracts/mac.ts';
import type { MessageName } from '#libs/contracts/messages.ts';
import { messages, messageType } from '#libs/contracts/messages.ts';
import { signedForTest } from '#libs/service/test/keys.ts';
import { batchedCommandHandlers, commandHandlers } from './commands/handlers.ts';
import { accountsCommands } from './consumers.ts';
import { batchedQueryHandlers, queryHandlers } from './queries/queries.ts';
import {
  ledgerReply,
  messageFor,
  newClient,
  newId,
  openAccountCommand,
  received,
  retail,
  useAccounts,
} from './test/harness.ts';

const bank = useAccounts();

const newClientMessage = (client_id = newId('client')) =>
  messageFor('create_client', { client_id, client: retail }, { message_id: client_id });
const correlationId = (message: { headers: Record<string, string> }) => message.headers['correlation-id'] ?? '';

test('every message of both topics has a handler', () => {
  const names = (Object.keys(messages) as MessageName[]).filter((name) => messages[name].topic.startsWith('accounts.'));
  expect(
    [
      ...Object.keys(commandHandlers),
      ...Object.keys(batchedCommandHandlers),
      'record_api_key_use',
      'record_audit',
      'republish_api_keys',
      'verify_audit',
      ...Object.keys(queryHandlers),
      ...Object.keys(batchedQueryHandlers),
    ].sort(),
  ).toEqual(names.sort());
});

test('an unreadable message becomes a dead letter, gets a reply if possible, and delays no other message', async () => {
  const good = newClientMessage();
  const broken = newClientMessage();
  const bad = [
    { ...broken, value: Buffer.from('{') },
    { ...newClientMessage(), value: null },
    received('p.accounts.commands', 'x', {}, '{}'),
    messageFor('release_hold', { hold_id: newId('hold') }),
    messageFor('create_client', { client_id: newId('client'), client: { ...retail, email: 'no e-mail' } }),
    messageFor('create_client', { client_id: newId('client'), client: retail }, { reply_topic: 'p.transactions' }),
    messageFor('create_client', { client_id: newId('client'), client: retail }, { reply_partition: 64 }),
    messageFor('create_client', { client_id: newId('client'), client: retail }, { deadline: 'tomorrow' }),
    ledgerReply(newId('account'), 'x', { ok: true, data: 1 }),
    { ...ledgerReply(newId('account'), 'x', { ok: true, data: 1 }), value: Buffer.from('{"ok":1}') },
  ].map((message) => signedForTest({ ...message, partition: good.partition }));
  await bank.handleCommands([...bad, good]);
  const codes = bank.deadLetters.splice(0).map(({ code }) => code);
  expect(codes).toEqual([
    'malformed_json',
    'malformed_json',
    'malformed_headers',
    'unknown_type',
    'invalid_data',
    'bad_reply_topic',
    'bad_reply_topic',
    'malformed_headers',
    'malformed_reply',
  ]);
  expect(bank.repliesTo(correlationId(broken))).toMatchObject([{ ok: false, refusal: { code: 'internal_error' } }]);
  expect(bank.repliesTo(correlationId(good))).toMatchObject([{ ok: true }]);
});

test('a message that Postgres rejects, and a malformed reply, become dead letters and leave nothing behind', async () => {
  const client_id = await newClient(bank);
  const twice = messageFor('create_client', { client_id, client: retail });
  const opening = openAccountCommand(client_id);
  await bank.send('open_account', opening, { message_id: opening.account_id });
  await bank.handleCommands([
    twice,
    ledgerReply(opening.account_id, opening.account_id, { ok: true, data: { wrong: true } }),
  ]);
  expect(bank.deadLetters.splice(0).map(({ code }) => code)).toEqual(['internal_error', 'internal_error']);
  expect(bank.repliesTo(correlationId(twice))).toMatchObject([{ ok: false, refusal: { code: 'internal_error' } }]);
  const left = await bank.pool.query(
    'select from commands where command_id = $1 union all select from saga_steps where step_id = $2',
    [twice.headers['ce_id'], opening.account_id],
  );
  expect(left.rowCount).toBe(1);
});

test('commands of one partition are executed in order', async () => {
  const client_id = newId('client');
  const edits = Array.from({ length: 20 }, (_, i) =>
    messageFor('update_client', { client_id, changes: { address: `house ${i}` } }),
  );
  await bank.handleCommands([newClientMessage(client_id), ...edits]);
  const addresses = edits
    .map((edit) => bank.repliesTo(correlationId(edit))[0])
    .map((reply) => (reply?.ok ? (reply.data as { address: string }).address : reply));
  expect(addresses).toEqual(edits.map((_, i) => `house ${i}`));
});

test('a fault of the database is thrown; the batch that is delivered again gets one reply', async () => {
  const process = bank.process();
  let faults = 2;
  const connect = process.deps.pool.connect.bind(process.deps.pool);
  const flaky = new Proxy(process.deps.pool, {
    get: (target, name) =>
      name === 'connect'
        ? async () => {
            if (faults-- > 0) throw Object.assign(new Error('down'), { code: 'ECONNREFUSED' });
            return connect();
          }
        : Reflect.get(target, name),
  });
  const { handle } = accountsCommands({ ...process.deps, pool: flaky, concurrency: 1 });
  const batch = Array.from({ length: 10 }, () => newClientMessage());
  await expect(handle(batch)).rejects.toThrow('down');
  await expect(handle(batch)).rejects.toThrow('down');
  await handle(batch);
  for (const message of batch) expect(process.repliesTo(correlationId(message))).toMatchObject([{ ok: true }]);
  expect(process.deadLetters).toEqual([]);
});

test('a backlog of repeats is answered by two statements; new commands and replies to open steps among them are executed', async () => {
  const process = bank.process();
  const connect = process.deps.pool.connect.bind(process.deps.pool);
  let connections = 0;
  const counted = new Proxy(process.deps.pool, {
    get: (target, name) =>
      name === 'connect' ? (...given: []) => (connections++, connect(...given)) : Reflect.get(target, name),
  });
  const { handle } = accountsCommands({ ...process.deps, pool: counted });
  const ids = Array.from({ length: 30 }, () => newId('client'));
  const created = ids.map((id) => newClientMessage(id));
  const edited = ids.map((client_id) => messageFor('update_client', { client_id, changes: { address: 'house 1' } }));
  const opening = openAccountCommand(ids[0] ?? '');
  const opened = messageFor('open_account', opening, { message_id: opening.account_id });
  await handle([...created, ...edited]);
  // The client exists at this point, because the account may be in another partition than its client.
  await handle([opened]);
  const first = [...created, ...edited].map((message) => process.repliesTo(correlationId(message)));
  expect(first.flat().every((reply) => reply.ok)).toBe(true);

  connections = 0;
  const mixed = () => created.flatMap((message, i) => [{ ...message }, { ...(edited[i] ?? message) }]);
  const ended = ledgerReply(newId('account'), newId('account'), { ok: true, data: {} });
  await handle([ended, ...mixed()]);
  expect(connections).toBe(2);
  for (const [i, message] of [...created, ...edited].entries())
    expect(process.repliesTo(correlationId(message))).toEqual([...(first[i] ?? []), ...(first[i] ?? [])]);

  const another = newClientMessage();
  const { account_id, initial_deposit: balance, status } = opening;
  const booked = { account_id, status, status_version: 1, balance };
  await handle([...mixed(), another, ledgerReply(account_id, account_id, { ok: true, data: booked })]);
  for (const message of [another, opened])
    expect(process.repliesTo(correlationId(message))).toMatchObject([{ ok: true }]);
});

const written = [
  'clients',
  'accounts',
  'status_transitions',
  'api_keys',
  'commands',
  'saga_steps',
  'approvals',
  'notes',
  'dead_letters',
  'audit',
  'audit_chain',
  'outbox_batches',
  'outbox',
];
test.each(written)(
  'while nothing can be inserted into %s, a message that is rejected waits, and the process is not ready',
  async (table) => {
    const { handle, health } = accountsCommands(bank.deps);
    const message = newClientMessage();
    await bank.owner.query(`alter table ${table} add constraint newer check (false) not valid`);
    await bank.owner.query(
      `alter table clients add constraint its_own check (client_id <> '${message.key}') not valid`,
    );
    try {
      await expect(handle([message])).rejects.toMatchObject({ constraint: 'newer', table });
      expect(health()).toEqual({ ok: false, reason: expect.stringContaining('newer') });
    } finally {
      await bank.owner.query(`alter table ${table} drop constraint newer`);
      await bank.owner.query('alter table clients drop constraint its_own');
    }
    await handle([message]);
    expect([health(), bank.deadLetters]).toEqual([{ ok: true }, []]);
    expect(bank.repliesTo(correlationId(message))).toMatchObject([{ ok: true }]);
  },
);

test('commands and replies that are signed with a key that accounts lacks wait for the key; a wrong MAC is forged', async () => {
  const lacking = new MacKeys({ gateway: ['x'], ledger: ['y'], accounts: ['z'] });
  const { handle, health } = accountsCommands({ ...bank.deps, keys: lacking });
  const message = newClientMessage();
  const reply = ledgerReply(newId('account'), 'x', { ok: true, data: 1 });
  for (const [waiting, variable] of [
    [message, 'GATEWAY_MAC_KEYS'],
    [reply, 'LEDGER_MAC_KEYS'],
  ] as const) {
    await expect(handle([waiting])).rejects.toThrow(variable);
    expect([health(), bank.deadLetters]).toEqual([{ ok: false, reason: expect.stringContaining(variable) }, []]);
  }
  const wrong = [message, reply].map((one) => ({ ...one, headers: { ...one.headers, mac: `${one.headers['mac']}x` } }));
  await bank.handleCommands([...wrong, message]);
  expect(bank.deadLetters.splice(0).map(({ code }) => code)).toEqual(['not_authentic', 'not_authentic']);
  expect(bank.repliesTo(correlationId(message))).toMatchObject([{ ok: true }]);
});

test('a killed connection is a fault, not a dead letter', async () => {
  const blocked = newId('client');
  await newClient(bank);
  const holder = await bank.owner.connect();
  await holder.query('begin; lock table accounts.clients in access exclusive mode');
  const message = newClientMessage(blocked);
  const handled = bank.handleCommands([message]);
  const outcome = expect(handled).rejects.toThrow();
  await expect
    .poll(
      async () =>
        (
          await bank.owner.query(
            "select pg_terminate_backend(pid) from pg_stat_activity where wait_event_type = 'Lock' and usename <> current_user and datname = current_database()",
          )
        ).rowCount,
      { timeout: 10_000 },
    )
    .toBeGreaterThan(0);
  await holder.query('rollback');
  holder.release();
  await outcome;
  await bank.handleCommands([message]);
  expect(bank.deadLetters).toEqual([]);
  expect(bank.repliesTo(correlationId(message))).toMatchObject([{ ok: true }]);
});

test('a lost reply is not a fault: when the message is delivered again, it gets the stored reply, as if it were the first one', async () => {
  const process = bank.process();
  const message = newClientMessage();
  const away = () => Promise.reject(new Error('broker away'));
  await accountsCommands({ ...process.deps, replies: process.repliesBy({ publish: away, publishAll: away }) }).handle([
    message,
  ]);
  await process.handleCommands([{ ...message }]);
  const [reply] = process.repliesTo(correlationId(message));
  expect(reply).toMatchObject({ ok: true });
  expect(reply?.replayed).toBeUndefined();
});

test('expired queries are dropped, unreadable ones become dead letters', async () => {
  const late = messageFor(
    'get_client',
    { client_id: newId('client') },
    { reply_by: new Date(Date.now() - 5000).toISOString() },
  );
  const bad = messageFor('list_clients', { limit: 501, order: 'asc' });
  const good = messageFor('list_clients', { limit: 1, order: 'asc' });
  await bank.handleQueries([late, bad, good]);
  expect(bank.repliesTo(correlationId(late))).toEqual([]);
  expect(bank.repliesTo(correlationId(bad))).toMatchObject([{ ok: false, refusal: { code: 'internal_error' } }]);
  expect(bank.repliesTo(correlationId(good))).toMatchObject([{ ok: true }]);
  expect(bank.deadLetters.splice(0)).toMatchObject([{ code: 'invalid_data' }]);
});

test('a command on the topic of queries is not executed', async () => {
  const client_id = newId('client');
  const message = messageFor('create_client', { client_id, client: retail });
  await bank.handleQueries([message]);
  expect(bank.deadLetters.splice(0)).toMatchObject([
    { code: 'unknown_type', message: { headers: { ce_type: messageType('create_client') } } },
  ]);
  expect(await bank.send('get_client', { client_id })).toMatchObject({ ok: false });
});
