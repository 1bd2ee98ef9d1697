import { beforeAll, expect, test } from 'vitest';
import type { ReplyBody } from '#libs/contracts/envelope.ts';
import { bucketForKey } from '#libs/contracts/ids.ts';
import type { MessageData } from '#libs/contracts/messages.ts';
import { messageType } from '#libs/contracts/messages.ts';
import { commandPartition } from '#libs/contracts/topics.ts';
import { sweep } from '../commands/sweeper.ts';
import {
  ledgerReply,
  messageFor,
  newAccount,
  newClient,
  newId,
  openAccountCommand,
  readOutboxByKey,
  useAccounts,
} from '../test/harness.ts';
import { luhnDigit } from './account-number.ts';

const bank = useAccounts();
let client_id: string;
beforeAll(async () => {
  client_id = await newClient(bank);
});

const opened = (account_id: string, balance = '10.00', status = 'Active'): ReplyBody => ({
  ok: true,
  data: { account_id, status, status_version: 1, balance },
});

async function shown(account_id: string): Promise<unknown> {
  const reply = await bank.send('get_account', { account_id });
  return reply?.ok ? reply.data : reply?.refusal.code;
}

/** Makes every step due. */
async function letStepsAge(): Promise<void> {
  await bank.owner.query("update saga_steps set next_attempt_at = now() - interval '1 second'");
  await bank.owner.query('update outbox_batches set published_at = now()');
}

test('an opening sends a step to the ledger, is not visible meanwhile, and gets its reply when the ledger has replied', async () => {
  const data = openAccountCommand(client_id, { initial_deposit: '12.5' });
  const { account_id } = data;
  const message = messageFor('open_account', data, {
    message_id: account_id,
    time: '2026-01-02T03:04:05.678Z',
    traceparent: '00-aa-bb-01',
  });
  await bank.handleCommands([message]);
  const correlation = message.headers['correlation-id'] ?? '';
  expect(bank.repliesTo(correlation)).toEqual([]);
  expect(await shown(account_id)).toBe('service_unavailable');

  const [step] = await readOutboxByKey(bank.pool, account_id);
  expect(step).toMatchObject({
    id: account_id,
    topic: 'ledger.commands',
    type: messageType('open_ledger_account'),
    time: '2026-01-02T03:04:05.678Z',
    partition: commandPartition(bucketForKey(account_id)),
    headers: {
      'correlation-id': account_id,
      'reply-topic': 'p.accounts.commands',
      'reply-partition': String(commandPartition(bucketForKey(account_id))),
      actor: 'key:key_tester',
      'request-id': 'req-1',
      traceparent: '00-aa-bb-01',
    },
    payload: {
      account_id,
      client_id,
      account_type: 'Savings',
      currency: 'USD',
      status: 'Active',
      initial_deposit: '12.5',
    },
  });
  expect(step?.headers).not.toHaveProperty('deadline');

  await bank.handleCommands([ledgerReply(account_id, account_id, opened(account_id, '12.50'))]);
  const [reply] = bank.repliesTo(correlation);
  const account = {
    account_id,
    client_id,
    account_type: 'Savings',
    currency: 'USD',
    status: 'Active',
    created_at: '2026-01-02T03:04:05.678Z',
    updated_at: '2026-01-02T03:04:05.678Z',
  };
  expect(reply).toEqual({
    ok: true,
    data: {
      ...account,
      account_number: step?.payload['account_number'],
      balance: '12.50',
      available_balance: '12.50',
      status_version: 1,
    },
  });
  const number = String(step?.payload['account_number']);
  expect(number).toBe(`${number.slice(0, -1)}${luhnDigit(number.slice(4, -1))}`);
  expect(await shown(account_id)).toMatchObject(account);
  const events = await readOutboxByKey(bank.pool, account_id);
  expect(events.slice(1).map(({ topic, type, payload }) => ({ topic, type, payload }))).toMatchObject([
    { topic: 'accounts', type: 'corebanking.account.opened.v1', payload: { account } },
  ]);
});

test('credentials of a client open accounts until it has 20, also concurrently in two processes; the bank opens more', async () => {
  // contract: permission-42
  const own = await newClient(bank);
  const second = bank.process();
  await newAccount(bank, own);
  const copies = Array.from({ length: 30 }, () => {
    const data = openAccountCommand(own, { initial_deposit: '0' });
    return messageFor('open_account', data, { message_id: data.account_id, bound_client_id: own });
  });
  await Promise.all([bank.handleCommands(copies.slice(0, 15)), second.handleCommands(copies.slice(15))]);
  const refusals = copies.flatMap((copy) =>
    [bank, second].flatMap((process) => process.repliesTo(copy.headers['correlation-id'] ?? '')),
  );
  expect(refusals).toHaveLength(11);
  for (const reply of refusals) expect(reply).toMatchObject({ ok: false, refusal: { code: 'insufficient_scope' } });
  const { rows } = await bank.pool.query('select from accounts where client_id = $1', [own]);
  expect(rows).toHaveLength(20);
  await newAccount(bank, own);
});

test('fifty openings with one key in two processes create one account; all get a reply, and only one reply is not marked as a repeat', async () => {
  const second = bank.process();
  const data = openAccountCommand(client_id);
  const { account_id } = data;
  const copies = Array.from({ length: 50 }, () =>
    messageFor('open_account', data, { message_id: account_id, fingerprint: 'a' }),
  );
  await Promise.all(copies.slice(0, 40).map((copy, i) => (i % 2 ? bank : second).handleCommands([copy])));
  // The others arrive while the ledger's reply is being applied, twice.
  await Promise.all([
    bank.handleCommands([ledgerReply(account_id, account_id, opened(account_id))]),
    second.handleCommands([ledgerReply(account_id, account_id, opened(account_id))]),
    ...copies.slice(40).map((copy, i) => (i % 2 ? bank : second).handleCommands([copy])),
  ]);
  const replies = copies.map((copy) =>
    [bank, second].flatMap((process) => process.repliesTo(copy.headers['correlation-id'] ?? '')),
  );
  expect(replies.map((own) => own.length)).toEqual(copies.map(() => 1));
  expect(replies.filter(([own]) => own?.ok && own.replayed === undefined)).toHaveLength(1);
  expect(new Set(replies.map(([own]) => own?.ok && JSON.stringify(own.data))).size).toBe(1);
  expect((await readOutboxByKey(bank.pool, account_id)).map((row) => row.topic)).toEqual([
    'ledger.commands',
    'accounts',
  ]);
});

test('a redelivered opening gets one reply per waiting gateway', async () => {
  const data = openAccountCommand(client_id);
  const message = messageFor('open_account', data, { message_id: data.account_id });
  await bank.handleCommands([message]);
  await bank.handleCommands([{ ...message }]);
  await bank.handleCommands([ledgerReply(data.account_id, data.account_id, opened(data.account_id))]);
  const replies = bank.repliesTo(message.headers['correlation-id'] ?? '');
  expect(replies).toHaveLength(1);
  expect(replies[0]?.replayed).toBeUndefined();
  await bank.handleCommands([{ ...message }]);
  expect(bank.repliesTo(message.headers['correlation-id'] ?? '')[1]).toEqual(replies[0]);
});

test('another request with the same id is refused while the first is in progress', async () => {
  const data = openAccountCommand(client_id);
  await bank.send('open_account', data, { message_id: data.account_id, fingerprint: 'a' });
  expect(
    await bank.send('open_account', { ...data, currency: 'EUR' }, { message_id: data.account_id, fingerprint: 'b' }),
  ).toMatchObject({ ok: false, refusal: { code: 'idempotency_key_reused' } });
});

test('an opening that the ledger refuses is never shown, and the refusal is stored', async () => {
  // contract: accounts-7
  const data = openAccountCommand(client_id, { initial_deposit: '9999999999999.99' });
  const { account_id } = data;
  const message = messageFor('open_account', data, { message_id: account_id });
  await bank.handleCommands([message]);
  const refusal: ReplyBody = {
    ok: false,
    refusal: { code: 'balance_limit_exceeded', message: 'Balance Limit Exceeded: no' },
  };
  await bank.handleCommands([ledgerReply(account_id, account_id, refusal)]);
  expect(bank.repliesTo(message.headers['correlation-id'] ?? '')).toEqual([refusal]);
  expect(await bank.send('open_account', data, { message_id: account_id })).toEqual({ ...refusal, replayed: true });
  expect(await shown(account_id)).toBe('account_not_found');
  await bank.handleCommands([ledgerReply(account_id, account_id, opened(account_id))]);
  expect(await shown(account_id)).toBe('account_not_found');
  await letStepsAge();
  expect(await sweep({ pool: bank.pool, prefix: 'p.' })).toBeGreaterThanOrEqual(0);
  expect(
    (await readOutboxByKey(bank.pool, account_id)).filter((row) => row.type === messageType('open_ledger_account')),
  ).toHaveLength(1);
});

test('an opening for an unknown client, or for another one than the caller’s, is a 404, which is stored', async () => {
  const missing = openAccountCommand(newId('client'));
  expect(await bank.send('open_account', missing, { message_id: missing.account_id })).toMatchObject({
    ok: false,
    refusal: { code: 'client_not_found' },
  });
  const foreign = openAccountCommand(client_id);
  expect(
    await bank.send('open_account', foreign, { message_id: foreign.account_id, bound_client_id: newId('client') }),
  ).toMatchObject({ ok: false, refusal: { code: 'client_not_found' } });
  const kept = await bank.pool.query('select from commands where command_id = any($1)', [
    [missing.account_id, foreign.account_id],
  ]);
  expect(kept.rowCount).toBe(2);
});

test('a fault of the ledger decides nothing: the step is sent again', async () => {
  const data = openAccountCommand(client_id);
  const { account_id } = data;
  const message = messageFor('open_account', data, { message_id: account_id });
  await bank.handleCommands([message]);
  await bank.handleCommands([
    ledgerReply(account_id, account_id, { ok: false, refusal: { code: 'internal_error', message: 'x' } }),
  ]);
  expect(bank.repliesTo(message.headers['correlation-id'] ?? '')).toEqual([]);
  await letStepsAge();
  expect(await sweep({ pool: bank.pool, prefix: 'p.' })).toBeGreaterThan(0);
  await bank.handleCommands([ledgerReply(account_id, account_id, opened(account_id))]);
  expect(bank.repliesTo(message.headers['correlation-id'] ?? '')).toMatchObject([{ ok: true }]);
});

test('the sweeper sends steps older than 2 s again, each once, from two processes, and then waits longer', async () => {
  await bank.owner.query('delete from saga_steps');
  const openings = Array.from({ length: 30 }, () => openAccountCommand(client_id));
  await bank.handleCommands(openings.map((data) => messageFor('open_account', data, { message_id: data.account_id })));
  const second = bank.process();
  const sweepBoth = () =>
    Promise.all(
      [bank.pool, second.deps.pool, bank.pool, second.deps.pool].map((pool) => sweep({ pool, prefix: 'p.' })),
    );
  const inTwoSeconds = await bank.owner.query(
    "select from saga_steps where next_attempt_at - created_at between interval '1 second' and interval '3 seconds'",
  );
  expect(inTwoSeconds.rowCount).toBe(30);
  // Not due, however long this test has taken.
  await bank.owner.query("update saga_steps set next_attempt_at = now() + interval '1 minute'");
  expect(await sweepBoth()).toEqual([0, 0, 0, 0]);
  await letStepsAge();
  const { rows: begun } = await bank.owner.query<{ at: string }>('select clock_timestamp()::text as at');
  expect((await sweepBoth()).reduce((a, b) => a + b)).toBe(30);
  await bank.owner.query('update outbox_batches set published_at = now()');
  expect(await sweepBoth()).toEqual([0, 0, 0, 0]);
  const waits = await bank.pool.query(
    "select distinct attempts, next_attempt_at - $1::timestamptz > interval '3 seconds' as later from saga_steps",
    [begun[0]?.at],
  );
  expect(waits.rows).toEqual([{ attempts: 2, later: true }]);
  const first = openings[0]?.account_id ?? '';
  const sent = await readOutboxByKey(bank.pool, first);
  expect(sent).toHaveLength(2);
  expect(sent[1]).toEqual(sent[0]);
});

test('the sweeper sends nothing while messages wait in the outbox', async () => {
  const data = openAccountCommand(client_id);
  await bank.send('open_account', data, { message_id: data.account_id });
  await bank.owner.query("update saga_steps set next_attempt_at = now() - interval '1 second'");
  await bank.owner.query(
    "update outbox_batches set created_at = now() - interval '1 minute' where published_at is null",
  );
  expect(await sweep({ pool: bank.pool, prefix: 'p.' })).toBe(0);
  await letStepsAge();
  expect(await sweep({ pool: bank.pool, prefix: 'p.' })).toBeGreaterThan(0);
});

test('steps that began in time are completed, even after the deadline', async () => {
  const data = openAccountCommand(client_id);
  const [deadline, reply_by] = [30_000, 600_000].map((ms) => new Date(Date.now() + ms).toISOString());
  const message = messageFor('open_account', data, { message_id: data.account_id, deadline, reply_by });
  await bank.handleCommands([message]);
  bank.clock.now = new Date(Date.parse(deadline ?? '') + 1);
  await bank.handleCommands([ledgerReply(data.account_id, data.account_id, opened(data.account_id))]);
  bank.clock.now = undefined;
  expect(bank.repliesTo(message.headers['correlation-id'] ?? '')).toMatchObject([{ ok: true }]);
});

interface Change {
  from: 'Active' | 'Inactive' | 'Frozen';
  to: 'Active' | 'Inactive' | 'Frozen';
  version: number;
  changed?: boolean;
}

function changeStatus(
  account_id: string,
  status: Change['to'],
  more: Partial<MessageData<'change_account_status'>> = {},
): MessageData<'change_account_status'> {
  return { transition_id: newId('transition'), account_id, status, reason: null, note: null, ...more };
}

function statusReply(change: MessageData<'change_account_status'>, { from, to, version, changed = true }: Change) {
  const { account_id, transition_id } = change;
  const changed_at = `2030-01-01T00:00:0${version}.000Z`;
  return ledgerReply(transition_id, account_id, {
    ok: true,
    data: {
      account_id,
      from_status: from,
      to_status: to,
      changed,
      status_version: version,
      balance: '10.00',
      changed_at,
    },
  });
}

async function history(account_id: string): Promise<unknown> {
  const reply = await bank.send('list_status_transitions', { account_id, limit: 100, order: 'desc' });
  return reply?.ok ? (reply.data as { items: unknown[] }).items : reply;
}

test('a status change is sent to the ledger, gets its reply with the status, and is recorded', async () => {
  const account_id = await newAccount(bank, client_id);
  const change = changeStatus(account_id, 'Frozen', { reason: 'fraud', note: 'case 7' });
  const message = messageFor('change_account_status', change, {
    message_id: change.transition_id,
    actor: 'jwt:issuer|ann',
  });
  await bank.handleCommands([message]);
  expect(bank.repliesTo(message.headers['correlation-id'] ?? '')).toEqual([]);
  const step = (await readOutboxByKey(bank.pool, account_id)).at(-1);
  expect(step).toMatchObject({
    id: change.transition_id,
    topic: 'ledger.commands',
    headers: { 'correlation-id': change.transition_id },
    payload: { transition_id: change.transition_id, account_id, status: 'Frozen' },
  });
  expect(step?.partition).toBe(commandPartition(bucketForKey(account_id)));
  await bank.handleCommands([statusReply(change, { from: 'Active', to: 'Frozen', version: 2 })]);
  const updated_at = '2030-01-01T00:00:02.000Z';
  expect(bank.repliesTo(message.headers['correlation-id'] ?? '')).toMatchObject([
    { ok: true, data: { account_id, status: 'Frozen', balance: '10.00', updated_at } },
  ]);
  const row = {
    transition_id: change.transition_id,
    account_id,
    from_status: 'Active',
    to_status: 'Frozen',
    reason: 'fraud',
    note: 'case 7',
    actor: 'jwt:issuer|ann',
    created_at: updated_at,
  };
  expect(await history(account_id)).toEqual([row]);
  expect((await readOutboxByKey(bank.pool, account_id)).at(-1)).toMatchObject({
    topic: 'accounts',
    type: 'corebanking.account.status_changed.v1',
    payload: {
      from_status: 'Active',
      to_status: 'Frozen',
      status_version: 2,
      actor: 'jwt:issuer|ann',
      changed_at: updated_at,
    },
  });
});

test('setting the same status is also sent to the ledger, and records nothing', async () => {
  const account_id = await newAccount(bank, client_id);
  const change = changeStatus(account_id, 'Active');
  const message = messageFor('change_account_status', change, { message_id: change.transition_id });
  await bank.handleCommands([message]);
  const before = await readOutboxByKey(bank.pool, account_id);
  await bank.handleCommands([statusReply(change, { from: 'Active', to: 'Active', version: 1, changed: false })]);
  expect(bank.repliesTo(message.headers['correlation-id'] ?? '')).toMatchObject([
    { ok: true, data: { status: 'Active' } },
  ]);
  expect(await history(account_id)).toEqual([]);
  expect(await readOutboxByKey(bank.pool, account_id)).toEqual(before);
  expect(await bank.send('change_account_status', change, { message_id: change.transition_id })).toMatchObject({
    ok: true,
    replayed: true,
  });
});

test('versions that arrive out of order result in the newest status and the whole history in order', async () => {
  const account_id = await newAccount(bank, client_id);
  const changes = [
    changeStatus(account_id, 'Inactive'),
    changeStatus(account_id, 'Frozen', { reason: 'legal' }),
    changeStatus(account_id, 'Active'),
  ] as const;
  for (const change of changes) await bank.send('change_account_status', change, { message_id: change.transition_id });
  await bank.handleCommands([statusReply(changes[2], { from: 'Frozen', to: 'Active', version: 4 })]);
  await bank.handleCommands([statusReply(changes[0], { from: 'Active', to: 'Inactive', version: 2 })]);
  await bank.handleCommands([
    statusReply(changes[1], { from: 'Inactive', to: 'Frozen', version: 3 }),
    statusReply(changes[1], { from: 'Inactive', to: 'Frozen', version: 3 }),
  ]);
  expect(await shown(account_id)).toMatchObject({ status: 'Active', updated_at: '2030-01-01T00:00:04.000Z' });
  expect(await history(account_id)).toMatchObject([
    { to_status: 'Active' },
    { to_status: 'Frozen' },
    { to_status: 'Inactive' },
  ]);
  expect(await bank.send('list_status_transitions', { account_id, limit: 2, order: 'asc' })).toMatchObject({
    data: { items: [{ to_status: 'Inactive' }, { to_status: 'Frozen' }], next: { id: '3' } },
  });
  expect(
    await bank.send('list_status_transitions', { account_id, limit: 2, order: 'asc', after: { at: '', id: '3' } }),
  ).toMatchObject({ data: { items: [{ to_status: 'Active' }] } });
});

test('a status change of an account that is missing, not open, or another client’s is a 404', async () => {
  const opening = openAccountCommand(client_id);
  await bank.send('open_account', opening, { message_id: opening.account_id });
  const account_id = await newAccount(bank, client_id);
  for (const [id, bound] of [
    [newId('account'), undefined],
    ['nonsense', undefined],
    [opening.account_id, undefined],
    [account_id, newId('client')],
  ] as const) {
    const change = changeStatus(id, 'Inactive');
    expect(
      await bank.send('change_account_status', change, { message_id: change.transition_id, bound_client_id: bound }),
    ).toMatchObject({ ok: false, refusal: { code: 'account_not_found' } });
  }
  expect(
    await bank.send(
      'list_status_transitions',
      { account_id, limit: 1, order: 'desc' },
      { bound_client_id: newId('client') },
    ),
  ).toMatchObject({ ok: false, refusal: { code: 'account_not_found' } });
});

test('a bound caller sees when the status changed, but not why or by whom', async () => {
  const client_id = await newClient(bank);
  const account_id = await newAccount(bank, client_id);
  const transition_id = newId('transition');
  await bank.send(
    'change_account_status',
    { transition_id, account_id, status: 'Frozen', reason: 'legal', note: 'SAR filed' },
    { message_id: transition_id, actor: 'jwt:issuer|officer' },
  );
  await bank.handleCommands([
    ledgerReply(transition_id, account_id, {
      ok: true,
      data: {
        account_id,
        from_status: 'Active',
        to_status: 'Frozen',
        changed: true,
        status_version: 2,
        balance: '10',
        changed_at: '2026-01-02T03:04:05.678Z',
      },
    }),
  ]);
  const seen = {
    transition_id,
    account_id,
    from_status: 'Active',
    to_status: 'Frozen',
    created_at: '2026-01-02T03:04:05.678Z',
  };
  const ask = async (bound_client_id?: string) =>
    bank.send('list_status_transitions', { account_id, limit: 5, order: 'desc' }, { bound_client_id });
  expect(await ask()).toEqual({
    ok: true,
    data: { items: [{ ...seen, reason: 'legal', note: 'SAR filed', actor: 'jwt:issuer|officer' }] },
  });
  expect(await ask(client_id)).toEqual({ ok: true, data: { items: [seen] } });
});

test('if a number is taken, another one is generated within the same operation', async () => {
  // contract: accounts-2
  const taken = await newAccount(bank, client_id);
  await bank.owner.query(`
    create function accounts.collide() returns trigger language plpgsql as $$ begin
      if current_setting('test.collisions', true) is null then perform set_config('test.collisions', 'x', true);
        new.account_number := (select account_number from accounts.accounts where account_id = '${taken}'); end if;
      return new; end $$;
    create trigger collide before insert on accounts.accounts for each row execute function accounts.collide();`);
  try {
    const data = openAccountCommand(client_id);
    await bank.send('open_account', data, { message_id: data.account_id });
    const [step] = await readOutboxByKey(bank.pool, data.account_id);
    const stored = await bank.pool.query('select account_number from accounts where account_id = $1', [
      data.account_id,
    ]);
    expect(stored.rows).toEqual([{ account_number: step?.payload['account_number'] }]);
  } finally {
    await bank.owner.query('drop function accounts.collide() cascade');
  }
});
