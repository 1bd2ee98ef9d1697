import { execFile } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { describe, expect, it } from 'vitest';
import { type AuditRecord, auditRecordSchema } from '#libs/contracts/audit.ts';
import { endpoints } from '#libs/contracts/endpoints.ts';
import { events } from '#libs/contracts/events.ts';
import { idBits } from '#libs/contracts/ids.ts';
import { topicName } from '#libs/contracts/topics.ts';
import { auditRules, headsRule } from '#services/accounts/audit/verify-audit.ts';
import { type Answer, Api, expectError, newKey, newPhone, type RestKey, retail, unknownId } from '../support/client.ts';
import { publish, readTopic } from '../support/kafka.ts';
import { staffEnv, staffToken } from '../support/staff.ts';
import { eventually, useBank } from '../support/world.ts';

/** Tests the contract of audit records, from the transaction of the change to the list and the topic. */
const world = useBank({ env: { ...staffEnv } });
const { api } = world;

const requestId = (answer: Answer) => answer.header('x-request-id') ?? '';
const records = (query: string) => api.all<AuditRecord>(`/admin/audit?${query}`);

/** Waits for the records of a request and returns them. */
function readRecords(answer: Answer): Promise<AuditRecord[]> {
  return eventually(async () => {
    const found = await records(`request_id=${requestId(answer)}`);
    return found.length > 0 && found;
  });
}

async function readRecord(answer: Answer): Promise<AuditRecord> {
  const found = await readRecords(answer);
  expect(found).toHaveLength(1);
  return auditRecordSchema.strict().parse(found[0]);
}

const me = async () => (await api.all<RestKey>('/admin/api-keys')).find(({ name }) => name === 'bootstrap')?.key_id;

describe('Audit: changes made by accounts, with every kind of credential', () => {
  it('clients and accounts: records have the endpoint, the resource, the actor, and short facts without personal data', async () => {
    // contract: audit-1
    const created = await api.post('/clients', { ...retail(), first_name: 'Marker-Name', email: 'marker@example.org' });
    const client_id = String(created.data()['client_id']);
    expect(await readRecord(created)).toMatchObject({
      audit_id: expect.stringMatching(/^aud_[0-9a-f]{32}$/),
      action: 'create_client',
      resource_id: client_id,
      outcome: 'success',
      request_id: requestId(created),
      details: { client_type: 'Retail' },
      address: '127.0.0.1',
    });
    const changed = await api.patch(`/clients/${client_id}`, {
      email: 'marker-2@example.org',
      address: 'Marker Street 1',
    });
    expect(await readRecord(changed)).toMatchObject({
      action: 'update_client',
      resource_id: client_id,
      details: { changed_fields: ['email', 'address'] },
    });
    const opened = await api.post('/accounts', {
      client_id,
      account_type: 'Savings',
      currency: 'USD',
      initial_deposit: 5,
    });
    const account_id = String(opened.data()['account_id']);
    expect(await readRecord(opened)).toMatchObject({
      action: 'open_account',
      resource_id: account_id,
      details: { client_id, account_type: 'Savings', currency: 'USD', status: 'Active' },
    });
    const [{ n }] = (await world.sql(
      "select count(*)::int as n from accounts.audit a where a::text ilike '%marker%'",
    )) as [{ n: number }];
    expect(n).toBe(0);
  });

  it('freezing with a token records actor, from and to, reason, and request id, but not the note', async () => {
    const { account_id } = await api.newAccount();
    const clerk = api.withToken(staffToken(world.bank, 'clerk-1'));
    const frozen = await clerk.post(`/accounts/${account_id}/status-transitions`, {
      status: 'Frozen',
      reason: 'fraud',
      note: 'Marker note',
    });
    expect(await readRecord(frozen)).toMatchObject({
      actor: `jwt:${world.bank.issuer}|clerk-1`,
      action: 'change_account_status',
      resource_id: account_id,
      outcome: 'success',
      request_id: requestId(frozen),
      details: { from_status: 'Active', to_status: 'Frozen', reason: 'fraud' },
    });
  });

  it('API keys: creation, rotation, revocation, and the first key are recorded; no record has a secret or a hash', async () => {
    // contract: audit-1
    const created = await api.post('/admin/api-keys', { name: 'audited', scopes: ['accounts:read'] });
    const key = created.data<RestKey>();
    expect(await readRecord(created)).toMatchObject({
      action: 'create_api_key',
      resource_id: key.key_id,
      details: { scopes: ['accounts:read'], environment: 'live', client_id: null },
    });
    const rotated = await api.post(`/admin/api-keys/${key.key_id}/rotation`, { overlap_seconds: 60 });
    const next = rotated.data<RestKey>();
    expect(await readRecord(rotated)).toMatchObject({
      action: 'rotate_api_key',
      resource_id: key.key_id,
      details: { new_key_id: next.key_id },
    });
    const revoked = await api.post(`/admin/api-keys/${next.key_id}/revocation`);
    expect(await readRecord(revoked)).toMatchObject({
      action: 'revoke_api_key',
      resource_id: next.key_id,
      outcome: 'success',
    });
    expect(await records(`actor=system:bootstrap`)).toMatchObject([
      { action: 'create_api_key', resource_id: await me(), outcome: 'success' },
    ]);
    const rows = JSON.stringify(await world.sql('select a::text as row from accounts.audit a'));
    for (const { api_key = '' } of [key, next]) expect(rows).not.toContain(api_key.slice(-49));
    for (const { secret_hash } of await world.sql<{ secret_hash: string }>('select secret_hash from accounts.api_keys'))
      expect(rows).not.toContain(secret_hash);
  });

  it('a stored refusal is recorded once with its code, even if repeated; others are not recorded', async () => {
    // contract: audit-1
    const phone = newPhone();
    await api.client({ ussd_phone_number: phone, ussd_status: 'active' });
    const key = newKey();
    const taken = () =>
      api.post(
        '/clients',
        { ...retail(), ussd_phone_number: phone, ussd_status: 'active' },
        { 'idempotency-key': key },
      );
    const first = await taken();
    expectError(first, 400, 'duplicate_ussd_phone');
    const second = await taken();
    expect(await readRecord(first)).toMatchObject({ action: 'create_client', outcome: 'duplicate_ussd_phone' });
    const unknown = await api.post('/accounts', {
      client_id: unknownId('cli'),
      account_type: 'Savings',
      currency: 'USD',
    });
    expectError(unknown, 404, 'client_not_found');
    expect(await readRecord(unknown)).toMatchObject({ action: 'open_account', outcome: 'client_not_found' });
    const invalid = await api.post('/clients', { ...retail(), first_name: 1 });
    expectError(invalid, 400, 'validation_failed');
    await readRecord(await api.post('/clients', retail()));
    expect([
      await records(`request_id=${requestId(second)}`),
      await records(`request_id=${requestId(invalid)}`),
    ]).toEqual([[], []]);
  });
});

describe('Audit: postings', () => {
  it('a person’s deposits, withdrawals, and transfers are recorded once, including refused ones', async () => {
    // contract: audit-1
    const clerk = api.withToken(staffToken(world.bank, 'clerk-2'));
    const [from, to] = [await api.newAccount(), await api.newAccount()];
    const deposit = await clerk.post(
      '/transactions',
      { account_id: from.account_id, transaction_type: 'Deposit', amount: 20 },
      { 'idempotency-key': 'clerk-2-deposit' },
    );
    await clerk.post(
      '/transactions',
      { account_id: from.account_id, transaction_type: 'Deposit', amount: 20 },
      { 'idempotency-key': 'clerk-2-deposit' },
    );
    const refused = await clerk.post('/transactions', {
      account_id: from.account_id,
      transaction_type: 'Withdrawal',
      amount: 1000,
    });
    const transfer = await clerk.post('/transfers', {
      from_account_id: from.account_id,
      to_account_id: to.account_id,
      amount: 5,
    });
    const actor = `jwt:${world.bank.issuer}|clerk-2`;
    const transaction_id = (deposit.body as { transaction_id: string }).transaction_id;
    expect(await readRecord(deposit)).toMatchObject({
      actor,
      action: 'create_transaction',
      resource_id: transaction_id,
      outcome: 'success',
      details: { account_id: from.account_id, transaction_type: 'Deposit', amount: '20' },
    });
    expect(await readRecord(refused)).toMatchObject({
      actor,
      action: 'create_transaction',
      outcome: 'insufficient_funds',
    });
    expect(await readRecord(transfer)).toMatchObject({
      actor,
      action: 'create_transfer',
      resource_id: transfer.data()['transfer_id'],
      outcome: 'success',
    });
    expect(await records(`actor=${encodeURIComponent(actor)}`)).toHaveLength(3);
  });

  it('of the postings of machines, only reversals are recorded', async () => {
    const machine = api.withToken(await world.bank.token());
    const { account_id } = await api.newAccount();
    const posted = [api, machine].map((caller) =>
      caller.post('/transactions', { account_id, transaction_type: 'Deposit', amount: 3 }),
    );
    const [byKey, byToken] = (await Promise.all(posted)) as [Answer, Answer];
    const { transaction_id } = byKey.body as { transaction_id: string };
    const reversed = await machine.post(`/transactions/${transaction_id}/reversal`, { reason: 'booked twice' });
    expect(await readRecord(reversed)).toMatchObject({
      action: 'reverse_transaction',
      resource_id: reversed.data()['transaction_id'],
      outcome: 'success',
      details: { reverses_transaction_id: transaction_id },
    });
    const again = await api.post(`/transactions/${transaction_id}/reversal`, { reason: 'once more' });
    expect(await readRecord(again)).toMatchObject({ action: 'reverse_transaction', outcome: 'already_reversed' });
    expect([
      ...(await records(`request_id=${requestId(byKey)}`)),
      ...(await records(`request_id=${requestId(byToken)}`)),
    ]).toEqual([]);
  });
});

describe('Audit: refused calls', () => {
  const nobody = () =>
    new Api(
      () => api.baseUrl,
      () => ({}),
    );

  it('under /admin, 401, 403, and 404 are recorded with the address but without the caller’s input', async () => {
    const reader = api.withKey((await api.key({ scopes: ['accounts:read'] })).api_key);
    const key_id = unknownId('key');
    const cases: [() => Promise<Answer>, Partial<AuditRecord>][] = [
      [
        () => nobody().get('/admin/api-keys'),
        { actor: 'unauthenticated', action: 'list_api_keys', outcome: 'missing_credentials' },
      ],
      [
        () => api.withKey('cbk_live_guess').get('/admin/audit'),
        { actor: 'unauthenticated', action: 'list_audit', outcome: 'invalid_credentials' },
      ],
      [() => reader.get('/admin/audit'), { action: 'list_audit', outcome: 'insufficient_scope' }],
      [
        () => reader.post('/admin/api-keys', { name: 'x', scopes: ['keys:manage'] }),
        { action: 'create_api_key', outcome: 'insufficient_scope' },
      ],
      [
        () => api.get(`/admin/api-keys/${key_id}`),
        {
          action: 'get_api_key',
          resource_id: key_id,
          outcome: 'api_key_not_found',
          details: { method: 'GET', path: '/admin/api-keys/:key_id', count: 1, since: expect.any(String) },
        },
      ],
      [
        () => api.get('/admin/api-keys/secret-typed-by-mistake/x'),
        {
          action: 'unknown_route',
          resource_id: null,
          outcome: 'route_not_found',
          details: { method: 'GET', path: '/admin/api-keys/…/…', count: 1, since: expect.any(String) },
        },
      ],
      [
        () => api.get('/admin/api-keys/secret-typed-by-mistake'),
        { action: 'get_api_key', resource_id: null, outcome: 'api_key_not_found' },
      ],
      [() => api.get('/ADMIN/api-keys'), { action: 'unknown_route', outcome: 'route_not_found' }],
      [
        () => api.send('DELETE', '/admin/api-keys'),
        {
          action: 'unknown_route',
          outcome: 'method_not_allowed',
          details: { method: 'DELETE', path: '/admin/api-keys', count: 1, since: expect.any(String) },
        },
      ],
    ];
    for (const [call, expected] of cases)
      expect(await readRecord(await call()), JSON.stringify(expected)).toMatchObject({
        ...expected,
        address: '127.0.0.1',
      });
    expect(
      await world.sql(
        "select 1 from accounts.audit a where a::text like '%secret-typed%' or a::text like '%cbk_live_guess%'",
      ),
    ).toEqual([]);
  });

  it('security events are published for a SIEM to the topic security, with OCSF classes', async () => {
    const refused = await nobody().get('/transfers');
    const told = await eventually(async () =>
      (await readTopic(world.bank, 'security')).find(({ headers }) => headers['request-id'] === requestId(refused)),
    );
    expect([told.key, told.headers['ce_type'], told.headers['ce_source']]).toEqual([
      'unauthenticated',
      'corebanking.security.activity.v1',
      '/core-banking/gateway',
    ]);
    expect(
      events['corebanking.security.activity.v1'].data.strict().parse(JSON.parse(String(told.value))),
    ).toMatchObject({
      class_name: 'Authentication',
      activity_name: 'Logon',
      status: 'Failure',
      action: 'list_transfers',
      outcome: 'missing_credentials',
      address: '127.0.0.1',
      count: 1,
    });
  });

  it('elsewhere, missing permissions are recorded, and other refusals are not', async () => {
    const { account_id } = await api.newAccount();
    const reader = api.withKey((await api.key({ scopes: ['accounts:read'] })).api_key);
    const freeze = await reader.post(`/accounts/${account_id}/status-transitions`, {
      status: 'Frozen',
      reason: 'fraud',
    });
    const reversal = await reader.post(`/transactions/${unknownId('txn')}/reversal`, { reason: 'x' });
    const client = await reader.post('/clients', retail());
    const unknown = await api.get(`/accounts/${unknownId('acc')}`);
    expect(await readRecord(freeze)).toMatchObject({
      action: 'change_account_status',
      resource_id: account_id,
      outcome: 'insufficient_scope',
    });
    expect(await readRecord(reversal)).toMatchObject({ action: 'reverse_transaction', outcome: 'insufficient_scope' });
    expect(await readRecord(client)).toMatchObject({ action: 'create_client', outcome: 'insufficient_scope' });
    expect([unknown.status, await records(`request_id=${requestId(unknown)}`)]).toEqual([404, []]);
  });
});

describe('Audit: reading', () => {
  it('filters, pages, and times work; every action is an endpoint or a refused unknown route', async () => {
    const all = await records('limit=7');
    expect(all.length).toBeGreaterThan(15);
    expect(all.map(({ created_at }) => created_at)).toEqual(
      all
        .map(({ created_at }) => created_at)
        .toSorted()
        .reverse(),
    );
    expect(new Set(all.map(({ audit_id }) => audit_id)).size).toBe(all.length);
    for (const { action } of all) expect([...Object.keys(endpoints), 'unknown_route']).toContain(action);
    for (const name of ['actor', 'action', 'resource_id', 'outcome', 'request_id'] as const) {
      const value = all.find((record) => record[name] !== null)?.[name] ?? '';
      expect(await records(`${name}=${encodeURIComponent(value)}`), name).toEqual(
        all.filter((record) => record[name] === value),
      );
    }
    const [to, from] = [all[3]?.created_at ?? '', all[8]?.created_at ?? ''];
    expect(await records(`from=${from}&to=${to}`)).toEqual(
      all.filter(({ created_at }) => created_at >= from && created_at < to),
    );
    expectError(await api.get('/admin/audit?acter=x'), 400, 'unknown_parameter');
    expectError(await api.get('/admin/audit?cursor=x'), 400, 'invalid_cursor');
  });

  it('finds by account and client everything that names them, whatever the resource', async () => {
    // contract: audit-17
    const clerk = api.withToken(staffToken(world.bank, 'clerk-3'));
    const [one, other] = [await api.newAccount({ initial_deposit: 100 }), await api.newAccount()];
    const named = { account_id: one.account_id };
    const deposit = await clerk.post('/transactions', { ...named, transaction_type: 'Deposit', amount: 20 });
    const transfer = await clerk.post('/transfers', {
      from_account_id: one.account_id,
      to_account_id: other.account_id,
      amount: 5,
    });
    const { transaction_id } = deposit.body as { transaction_id: string };
    const reversal = await clerk.post(`/transactions/${transaction_id}/reversal`, { reason: 'twice' });
    const hold = await clerk.post(`/accounts/${one.account_id}/holds`, { amount: 3 });
    const hold_id = String(hold.data()['hold_id']);
    const release = await clerk.post(`/holds/${hold_id}/release`);
    const freeze = await clerk.post(`/accounts/${one.account_id}/status-transitions`, {
      status: 'Frozen',
      reason: 'fraud',
    });
    const done = [deposit, transfer, reversal, hold, release, freeze].map(requestId);
    for (const answer of [deposit, transfer, reversal, hold, release, freeze]) await readRecord(answer);
    const found = async (id: string) => {
      const ofId = (await records(`subject=${id}&reads=without&order=asc`)).map(({ request_id }) => request_id);
      return done.filter((request_id) => ofId.includes(request_id));
    };
    expect(await found(one.account_id)).toEqual(done);
    expect(await found(one.client_id)).toEqual(done);
    expect(await found(other.account_id)).toEqual([requestId(transfer)]);
    expect(await records(`subject=${unknownId('acc')}`)).toEqual([]);
    expectError(await api.get('/admin/audit?subject=x'), 400, 'validation_failed');
  });

  it('requires audit:read and a credential that is not bound to a client', async () => {
    // contract: audit-12
    const { client_id } = await api.client();
    expectError(
      await api.post('/admin/api-keys', { name: 'x', scopes: ['audit:read'], client_id }),
      400,
      'validation_failed',
      /audit:read/,
    );
    const auditor = api.withKey((await api.key({ scopes: ['audit:read'] })).api_key);
    expect((await auditor.get('/admin/audit')).status).toBe(200);
  });

  it('no record can be changed or deleted with SQL, even by the owner', async () => {
    // contract: audit-10
    for (const statement of [
      "update accounts.audit set outcome = 'success'",
      'delete from accounts.audit',
      'truncate accounts.audit',
    ]) {
      await expect(world.pool.query(statement)).rejects.toThrow(/append-only/);
    }
  });

  it('the topic audit has the same records, keyed by actor', async () => {
    const rows = await records('order=asc');
    const told = await eventually(async () => {
      const read = await readTopic(world.bank, 'audit');
      const byId = new Map(
        read.map((message) => [idBits((message.headers['ce_id'] ?? '').replaceAll('-', '')), message]),
      );
      return rows.every(({ audit_id }) => byId.has(idBits(audit_id))) && byId;
    });
    for (const row of rows) {
      const message = told.get(idBits(row.audit_id));
      const { event_id, event_type, ...told_row } = JSON.parse(String(message?.value)) as Record<string, unknown>;
      expect(told_row).toEqual(row);
      expect([event_id, event_type]).toEqual([message?.headers['ce_id'], message?.headers['ce_type']]);
      expect([message?.key, message?.headers['ce_type'], message?.headers['request-id']]).toEqual([
        row.actor,
        'corebanking.audit.recorded.v1',
        row.request_id,
      ]);
    }
  });
});

describe('Audit: verify-books', () => {
  const program = join(import.meta.dirname, '../../services/verify-books.ts');
  const run = () => {
    const env = {
      ...process.env,
      DATABASE_URL: world.bank.database_url,
      KAFKA_BROKERS: world.bank.kafka_brokers,
      TOPIC_PREFIX: world.bank.topic_prefix,
    };
    return promisify(execFile)(process.execPath, [program], { env, timeout: 110_000 }).then(
      ({ stdout }) => ({ code: 0, stdout }),
      ({ code, stdout }: { code: number; stdout: string }) => ({ code, stdout }),
    );
  };
  /** Statements that only the owner of the database can run. */
  const asOwner = (statement: string) =>
    world.pool.query(
      `begin; alter table accounts.audit disable trigger all; ${statement}; alter table accounts.audit enable always trigger audit_append_only; alter table accounts.audit enable always trigger audit_erased_only; alter table accounts.audit enable always trigger audit_linked; commit`,
    );

  it('names a record that the owner changed by disabling the triggers, and succeeds after it is restored', async () => {
    const { audit_id = '', actor } = (await records('action=create_client'))[0] ?? {};
    expect(await run()).toMatchObject({ code: 0, stdout: expect.stringContaining('the books balance') });
    await asOwner(`update accounts.audit set actor = 'jwt:issuer|somebody else' where audit_id = '${audit_id}'`);
    const { code, stdout } = await run();
    expect([code, stdout.split('\n').filter((line) => line.startsWith('BROKEN'))]).toEqual([
      1,
      [`BROKEN ${auditRules[0]}`],
    ]);
    expect(stdout).toContain(audit_id);
    await asOwner(`update accounts.audit set actor = '${actor}' where audit_id = '${audit_id}'`);
    expect((await run()).code).toBe(0);
  });

  it('finds that the chains contradict a published head', async () => {
    const [head] = await world.sql<{ chain: number; sequence: bigint; audit_id: string }>(
      'select chain, sequence, audit_id from accounts.audit_chain order by chain, sequence limit 1',
    );
    const value = JSON.stringify({ heads: [{ ...head, sequence: Number(head?.sequence), hash: 'ab'.repeat(32) }] });
    const type = 'corebanking.audit.head.v1';
    await publish(world.bank, [
      {
        topic: topicName(world.bank.topic_prefix, 'audit'),
        key: 'audit-chain',
        value,
        headers: { ce_id: randomUUID(), ce_type: type, ce_time: new Date().toISOString() },
      },
    ]);
    const { code, stdout } = await run();
    expect([code, stdout.split('\n').filter((line) => line.startsWith('BROKEN'))]).toEqual([
      1,
      [`BROKEN ${headsRule}`],
    ]);
    expect(stdout).toContain(head?.audit_id);
  });
});
