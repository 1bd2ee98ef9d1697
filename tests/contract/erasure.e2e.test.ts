import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { beforeAll, describe, expect, it } from 'vitest';
import type { Approval } from '#libs/contracts/approvals.ts';
import type { Erasure } from '#libs/contracts/erasure.ts';
import { type Api, expectError, newKey, newPhone, unknownId } from '../support/client.ts';
import { readTopic } from '../support/kafka.ts';
import { staffEnv, staffToken } from '../support/staff.ts';
import { useBank } from '../support/world.ts';

/** Tests the contract of the erasure of a client by two people, in a complete bank. */
const world = useBank({ env: { ...staffEnv, FOUR_EYES: 'erase', RETENTION_YEARS: '0' } });
const { api } = world;
let alice: Api;
let bob: Api;
beforeAll(() => {
  alice = api.withToken(staffToken(world.bank, 'alice'));
  bob = api.withToken(staffToken(world.bank, 'bob'));
});

const secretWord = 'Zuleikha';

/** Returns a client with postings on an account that is now empty and Inactive. */
async function formerClient() {
  const client = await api.client({
    first_name: secretWord,
    email: `${secretWord}@example.com`,
    ussd_phone_number: newPhone(),
    ussd_status: 'active',
    external_id: secretWord + newPhone(),
  });
  const [own, other] = [await api.account(client.client_id, { initial_deposit: 30 }), await api.newAccount()];
  await api.transact(own.account_id, 'Withdrawal', 10, {
    description: `for ${secretWord}`,
    reference: secretWord,
    external_id: secretWord,
    metadata: { of: secretWord },
  });
  await api.transfer(own.account_id, other.account_id, 20, {
    description: `Rent of ${secretWord}`,
    external_id: secretWord,
    metadata: { of: secretWord },
  });
  await api.post(`/accounts/${own.account_id}/status-transitions`, { status: 'Inactive', note: `${secretWord} rang` });
  return { client, own, other };
}

async function verifyBooks(): Promise<string> {
  const env = {
    ...process.env,
    DATABASE_URL: world.bank.database_url,
    KAFKA_BROKERS: world.bank.kafka_brokers,
    TOPIC_PREFIX: world.bank.topic_prefix,
  };
  const program = join(import.meta.dirname, '../../services/verify-books.ts');
  return (await promisify(execFile)(process.execPath, [program], { env })).stdout;
}

describe('POST /admin/clients/:client_id/erasure', () => {
  it('needs a second person, who erases the client permanently; books, events, and audit stay valid', async () => {
    // contract: audit-13, audit-14, four-eyes-3
    const { client, own, other } = await formerClient();
    const path = `/admin/clients/${client.client_id}/erasure`;
    const key = newKey();
    const asked = await alice.once(key, path);
    expect(asked.status, asked.text).toBe(202);
    const approval = asked.data<Approval>();
    expect(approval).toMatchObject({ action: 'erase', request: { operation: 'erase_client', path } });
    expect(JSON.stringify(approval)).not.toContain(secretWord);
    expect((await api.get(`/clients/${client.client_id}`)).data()).toMatchObject({ first_name: secretWord });
    expectError(await alice.post(`/admin/approvals/${approval.approval_id}/approval`), 403, 'own_approval');
    const narrow = api.withToken(staffToken(world.bank, 'carol', { scope: 'approvals:write clients:write' }));
    expectError(await narrow.post(`/admin/approvals/${approval.approval_id}/approval`), 403, 'insufficient_scope');
    const approved = (await bob.post(`/admin/approvals/${approval.approval_id}/approval`)).data<Approval>();
    expect(approved).toMatchObject({
      status: 'Approved',
      outcome: {
        status: 'success',
        data: { client_id: client.client_id, replaced: { status_notes: 1 } },
      },
    });

    const shown = (await api.get(`/clients/${client.client_id}`)).data<Record<string, unknown>>();
    expect(shown).toMatchObject({
      first_name: '(erased)',
      email: '(erased)',
      ussd_phone_number: null,
      ussd_status: 'inactive',
      erased_at: expect.any(String),
    });
    const reads = [`/accounts/${own.account_id}/status-transitions`, `/admin/audit?resource_id=${client.client_id}`];
    for (const read of reads) {
      const answer = await api.get(read);
      expect(answer.list().length).toBeGreaterThan(0);
      expect(answer.text).not.toContain(secretWord);
    }
    const posted = [
      `/transactions?account_id=${own.account_id}`,
      `/transactions?account_id=${other.account_id}`,
      `/transfers?account_id=${other.account_id}`,
    ];
    for (const read of posted) expect((await api.get(read)).text).toContain(`Rent of ${secretWord}`);
    expect(await api.balance(other.account_id)).toBe(20);
    const repeated = await alice.once(key, path);
    expect(repeated.status).toBe(200);
    expect(repeated.header('idempotent-replayed')).toBe('true');
    const { remaining } = repeated.data<Erasure>();
    expect(remaining.find(({ place }) => place === 'topic transactions')?.gone_at).toMatch(/^\d{4}-/);
    expect(remaining.find(({ place }) => place === 'schema ledger')?.gone_at).toBeNull();

    expect(await verifyBooks()).toContain('the books balance');
    const erased = (await readTopic(world.bank, 'clients')).filter(
      ({ headers }) => headers['ce_type'] === 'corebanking.client.erased.v1',
    );
    expect(erased.map(({ value }) => JSON.parse(String(value)))).toEqual([
      {
        client_id: client.client_id,
        client_type: 'Retail',
        erased_at: shown['erased_at'],
        actor: expect.stringMatching(/^jwt:/),
        request_channel: 'staff',
        event_id: erased[0]?.headers['ce_id'],
        event_type: 'corebanking.client.erased.v1',
      },
    ]);
  });

  it('afterwards the client and its accounts cannot be changed, and no account can become Active', async () => {
    const { client, own } = await formerClient();
    const done = await api.post(`/admin/clients/${client.client_id}/erasure`);
    expect(done.status, done.text).toBe(200);
    expectError(await api.patch(`/clients/${client.client_id}`, { address: 'x' }), 410, 'client_erased');
    expectError(
      await api.post('/accounts', { client_id: client.client_id, account_type: 'Savings', currency: 'USD' }),
      410,
      'client_erased',
    );
    expectError(
      await api.post(`/accounts/${own.account_id}/status-transitions`, { status: 'Active' }),
      410,
      'client_erased',
    );
  });

  it('is refused, with the account and the reason, while an account is in use or has a balance', async () => {
    const account = await api.newAccount({ initial_deposit: 5 });
    const path = `/admin/clients/${account.client_id}/erasure`;
    expect(expectError(await api.post(path), 400, 'erasure_refused').details).toEqual({
      accounts: [{ account_id: account.account_id, reasons: ['not_inactive'] }],
    });
    await api.setStatus(account.account_id, 'Inactive');
    expect(expectError(await api.post(path), 400, 'erasure_refused').details).toEqual({
      accounts: [{ account_id: account.account_id, reasons: ['has_money'] }],
    });
    expect((await api.get(`/clients/${account.client_id}`)).data()).toMatchObject({ first_name: 'Ada' });
  });

  it('requires clients:erase, which a bound credential cannot have, and an existing client', async () => {
    const { client_id } = await api.client();
    const path = `/admin/clients/${client_id}/erasure`;
    expectError(
      await api
        .withToken(staffToken(world.bank, 'dave', { scope: 'clients:read clients:write keys:manage' }))
        .post(path),
      403,
      'insufficient_scope',
    );
    expectError(
      await api.withToken(staffToken(world.bank, 'ada', { bank_client_id: client_id })).post(path),
      403,
      'insufficient_scope',
    );
    expect(
      expectError(
        await api.post('/admin/api-keys', { name: 'x', scopes: ['clients:erase'], client_id }),
        400,
        'validation_failed',
      ).message,
    ).toContain('clients:erase');
    expectError(await api.post(`/admin/clients/${unknownId('cli')}/erasure`), 404, 'client_not_found');
    expectError(await alice.post(`/admin/clients/${unknownId('cli')}/erasure`), 404, 'client_not_found');
    expectError(await api.post(path, { reason: 'x' }), 400, 'unknown_field');
  });
});
