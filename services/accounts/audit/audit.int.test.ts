import { expect, test } from 'vitest';
import type { AuditRecord } from '#libs/contracts/audit.ts';
import { auditId } from '#libs/contracts/ids.ts';
import { messageFor, newAccount, newClient, newId, readOutboxByKey, retail, useAccounts } from '../test/harness.ts';

const bank = useAccounts();

const columns = 'audit_id, created_at, actor, action, resource_id, outcome, request_id, details, address';
const readAudit = async (commandId: string) =>
  (await bank.pool.query<AuditRecord>(`select ${columns} from audit where audit_id = $1`, [auditId(commandId)])).rows;

test('a command writes one record in its transaction, and one event with the record’s id; a repeat writes none', async () => {
  // contract: audit-1
  const client_id = newId('client');
  const overrides = { message_id: client_id, actor: `key:${newId('key')}`, request_id: 'req-audit' };
  for (let i = 0; i < 2; i++) await bank.send('create_client', { client_id, client: retail }, overrides);
  const [record, ...more] = await readAudit(client_id);
  expect(more).toEqual([]);
  expect(record).toMatchObject({
    actor: overrides.actor,
    action: 'create_client',
    resource_id: client_id,
    outcome: 'success',
    request_id: 'req-audit',
    details: { client_type: 'Retail' },
    address: null,
  });
  const events = await readOutboxByKey(bank.pool, overrides.actor);
  expect(events).toMatchObject([{ topic: 'audit', type: 'corebanking.audit.recorded.v1', payload: record }]);
  expect(events.map(({ id }) => id)).toEqual([auditId(client_id)]);
});

test('a command whose audit record cannot be written is rolled back, and later succeeds with its record', async () => {
  // contract: idempotency-8
  const client_id = newId('client');
  const message = messageFor('create_client', { client_id, client: retail }, { message_id: client_id });
  const role = `${new URL(bank.ownerUrl).pathname.slice(1)}_accounts`;
  await bank.owner.query(`revoke insert on audit from "${role}"`);
  await expect(bank.handleCommands([message])).rejects.toThrow(/permission denied/);
  expect((await bank.pool.query('select 1 from clients where client_id = $1', [client_id])).rows).toEqual([]);
  await bank.owner.query(`grant insert on audit to "${role}"`);
  await bank.handleCommands([message]);
  expect(await readAudit(client_id)).toHaveLength(1);
  expect((await bank.pool.query('select 1 from clients where client_id = $1', [client_id])).rows).toHaveLength(1);
});

test('refusals such as a missed deadline or an unknown client are recorded; the gateway records 403', async () => {
  const [late, unknown, forbidden] = [newId('client'), newId('client'), newId('client')];
  await bank.send(
    'create_client',
    { client_id: late, client: retail },
    { message_id: late, deadline: '2020-01-01T00:00:00.000Z' },
  );
  await bank.send(
    'update_client',
    { client_id: unknown, changes: { email: 'x@example.com' } },
    { message_id: unknown },
  );
  await bank.send(
    'create_client',
    { client_id: forbidden, client: retail },
    { message_id: forbidden, bound_client_id: newId('client') },
  );
  expect(await readAudit(late)).toMatchObject([{ outcome: 'deadline_exceeded' }]);
  expect(await readAudit(unknown)).toMatchObject([{ outcome: 'client_not_found' }]);
  expect(await readAudit(forbidden)).toEqual([]);
});

test('records of the gateway and the ledger are inserted in bulk, each once, even if they are delivered repeatedly', async () => {
  const actor = `jwt:issuer|${newId('key')}`;
  const records = Array.from(
    { length: 30 },
    (_, i): AuditRecord => ({
      audit_id: newId('audit'),
      created_at: '2026-01-02T03:04:05.678Z',
      actor,
      action: 'list_audit',
      resource_id: null,
      outcome: 'insufficient_scope',
      request_id: `r-${i}`,
      details: { method: 'GET' },
      address: '192.0.2.1',
    }),
  );
  const messages = records.map((record) => messageFor('record_audit', record, { subject: actor }));
  await Promise.all([
    bank.handleCommands([...messages, ...messages]),
    bank.process().handleCommands([...messages].reverse()),
  ]);
  expect(
    (await bank.pool.query(`select ${columns} from audit where actor = $1 order by audit_id`, [actor])).rows,
  ).toEqual(records.toSorted((a, b) => (a.audit_id < b.audit_id ? -1 : 1)));
  expect(await readOutboxByKey(bank.pool, actor)).toHaveLength(30);
});

test('the service’s role and the owner can add records but not change them', async () => {
  await newClient(bank);
  for (const statement of ["update audit set actor = 'x'", 'delete from audit', 'truncate audit']) {
    await expect(bank.pool.query(statement)).rejects.toThrow(/permission denied/);
    await expect(bank.owner.query(statement)).rejects.toThrow(/append-only/);
  }
});

test('every page of every filter reads a short range of an index', async () => {
  for (let from = 1; from <= 12_000; from += 2_000)
    await bank.owner.query(
      `insert into audit select 'aud_' || md5(n::text), timestamptz '2020-01-01' + n * interval '1 minute', 'key:' || n % 50, 'action_' || n % 20, 'acc_' || md5((n % 500)::text),
       case when n % 25 = 0 then 'insufficient_scope' else 'success' end, 'req-' || n, '{}', null from generate_series($1::int, $1::int + 1999) n`,
      [from],
    );
  await bank.owner.query('analyze audit');
  const at = new Date(Date.parse('2020-01-01') + 9_000 * 60_000).toISOString();
  for (const filter of [
    'true',
    "actor = 'key:7'",
    "action = 'action_7'",
    "resource_id = 'acc_' || md5('7')",
    "audit_subjects(resource_id, details) && array['acc_' || md5('7')]",
    "outcome = 'insufficient_scope'",
    "outcome = 'success'",
    "request_id = 'req-7'",
  ]) {
    const plan = await bank.pool.query(
      `explain (analyze, buffers, format json) select * from audit where ${filter} and (created_at, audit_id) < ($1, 'aud_f') order by created_at desc, audit_id desc limit 101`,
      [at],
    );
    const root = plan.rows[0]['QUERY PLAN'][0].Plan;
    expect(root['Shared Hit Blocks'] + root['Shared Read Blocks'], filter).toBeLessThan(250);
    expect(JSON.stringify(root), filter).not.toMatch(/Seq Scan|Rows Removed by Filter":[1-9]\d{2}/);
  }
});

test('who acted is found by name: keys by theirs, people by their subject, also among more actors than are listed', async () => {
  const named = async (q?: string) => {
    const reply = await bank.send('list_audit_actors', q === undefined ? {} : { q });
    return (reply as { data: { actor: string; name: string }[] }).data.map(({ name }) => name);
  };
  const family = newId('key');
  await bank.owner.query(
    `insert into api_keys (key_id, family_id, name, scopes, environment, secret_hash, created_at, created_by, expires_at)
     values ($1, $1, 'Payroll of May', '{keys:manage}', 'live', repeat('0', 64), now(), 'x', now())`,
    [family],
  );
  const insert = (actors: string) =>
    bank.owner.query(
      `insert into audit select 'aud_' || md5(actor), now(), actor, 'x', null, 'success', 'r', '{}', null from (${actors}) as actors (actor)`,
    );
  await insert(`values ('key:${family}'), ('jwt:https://id.example|Olivia'), ('jwt:https://other.example|oliver')`);
  expect(await named('OLIV')).toEqual(['oliver', 'Olivia']);
  expect(await named('payroll')).toEqual(['Payroll of May']);
  expect(await named('nobody')).toEqual([]);
  await insert(`select 'jwt:https://id.example|p' || n from generate_series(1, 2500) n`);
  expect(await named()).toHaveLength(100);
  expect(await named('Olivia')).toEqual(['Olivia']);
});

test('the name of a sign-in is kept beside the audit, the latest one, and shown in its place until it is deleted', async () => {
  // contract: audit-16
  const [ada, bob] = [`jwt:https://id.example|${newId('key')}`, `jwt:https://id.example|${newId('key')}`];
  const signIn = (actor: string, created_at: string, actor_name?: string) => {
    const record = { audit_id: newId('audit'), created_at, actor, action: 'sign_in', resource_id: null };
    const rest = { outcome: 'success', request_id: 'r', details: {}, address: null };
    return messageFor('record_audit', { ...record, ...rest, ...(actor_name && { actor_name }) }, { subject: actor });
  };
  await bank.handleCommands([
    signIn(ada, '2026-01-03T00:00:00.000Z', 'Ada King'),
    signIn(ada, '2026-01-02T00:00:00.000Z', 'Ada Byron'),
    signIn(bob, '2026-01-03T00:00:00.000Z'),
  ]);
  await bank.handleCommands([signIn(ada, '2026-01-01T00:00:00.000Z', 'Ada'), signIn(ada, '2026-01-04T00:00:00.000Z')]);
  const read = async (reads: 'with' | 'without') =>
    (await bank.send('list_audit', { actor: ada, reads, limit: 10, order: 'desc' })) as { data: { items: object[] } };
  expect([(await read('with')).data.items.length, (await read('without')).data.items]).toEqual([4, []]);
  const named = async () => (await bank.send('list_staff_names', { actors: `${ada},${bob}` })) as { data: object[] };
  expect((await named()).data).toEqual([{ actor: ada, name: 'Ada King' }]);
  expect(JSON.stringify(await readOutboxByKey(bank.pool, ada))).not.toMatch(/King|Byron/);
  const found = async (q: string) =>
    ((await bank.send('list_audit_actors', { q }, { staff: 'true' })) as { data: object[] }).data;
  const subject = ada.slice('jwt:https://id.example|'.length);
  expect(await found('a king')).toEqual([{ actor: ada, name: 'Ada King' }]);
  expect(await found(subject)).toEqual([{ actor: ada, name: 'Ada King' }]);
  // The names of people are for people.
  const program = async (q: string) => ((await bank.send('list_audit_actors', { q })) as { data: object[] }).data;
  expect([await program('a king'), await program(subject)]).toEqual([[], [{ actor: ada, name: subject }]]);
  // Bob may choose his at the identity provider.
  await bank.handleCommands([signIn(bob, '2026-01-04T00:00:00.000Z', 'ADA\u00a0 King')]);
  const ofBob = bob.slice('jwt:https://id.example|'.length);
  expect((await named()).data).toEqual(
    [
      { actor: ada, name: `Ada King (${subject})` },
      { actor: bob, name: `ADA\u00a0 King (${ofBob})` },
    ].toSorted((a, b) => (a.actor < b.actor ? -1 : 1)),
  );
  expect(await found('a king')).toContainEqual({ actor: ada, name: `Ada King (${subject})` });
  await bank.owner.query('delete from staff_names where actor = $1', [ada]);
  expect([(await named()).data, await found(subject)]).toEqual([
    [{ actor: bob, name: 'ADA\u00a0 King' }],
    [{ actor: ada, name: subject }],
  ]);
});

test('the audit of a client with more than 100 accounts is asked for account by account', async () => {
  // contract: audit-17
  const client_id = await newClient(bank);
  const account_id = await newAccount(bank, client_id);
  const of = (subject: string) => bank.send('list_audit', { subject, limit: 10, order: 'desc' });
  const add = (count: number) =>
    bank.owner.query(
      `insert into accounts select (json_populate_record(a, json_build_object('account_id', 'acc_' || md5(n || $1), 'account_number', 'N-' || md5(n || $1)))).*
       from accounts a, generate_series(1, $2::int) n where a.account_id = $1`,
      [account_id, count],
    );
  await add(99);
  expect(await of(client_id)).toMatchObject({ ok: true });
  await bank.owner.query("delete from accounts where account_number like 'N-%'");
  await add(100);
  const refusal = { code: 'validation_failed', errors: [{ field: 'subject' }] };
  expect(await of(client_id)).toMatchObject({ ok: false, refusal });
  expect(await of(account_id)).toMatchObject({ ok: true });
});
