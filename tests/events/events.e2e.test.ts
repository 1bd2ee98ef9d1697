import { readFileSync } from 'node:fs';
import { Ajv } from 'ajv';
import formats from 'ajv-formats';
import { beforeAll, describe, expect, it } from 'vitest';
import type { z } from 'zod';
import type { BatchSummary } from '#libs/contracts/batches.ts';
import { type EventType, eventHeadersSchema, events, schemaId } from '#libs/contracts/events.ts';
import type { Hold } from '#libs/contracts/holds.ts';
import { signatureHeader } from '#libs/contracts/signature.ts';
import { feedTopics, type TopicName } from '#libs/contracts/topics.ts';
import type { ReceivedMessage } from '#libs/kafka/consume/consume.ts';
import { silent } from '#libs/postgres/test/test-database.ts';
import { verifyEvents } from '#services/ledger/verify/verify-events.ts';
import { wireSchema } from '../../tools/generate/events/event-schemas.ts';
import {
  newKey,
  newPhone,
  type RestAccount,
  type RestClient,
  type RestEntry,
  type RestTransaction,
  type RestTransfer,
  type RestTransition,
  retail,
} from '../support/client.ts';
import { createTestKafka, readTopics } from '../support/kafka.ts';
import { eventually, together, useBank } from '../support/world.ts';

/**
 * Tests the events that downstream systems receive after every kind of operation, with the ledger killed in between.
 */
const world = useBank({ ledgers: 2, env: { SPREAD_COMMANDS: 'true' } });
const { api } = world;

type Data<T extends EventType> = z.infer<(typeof events)[T]['data']>;
const topicsOfEvents = [
  'transactions',
  'transfers',
  'accounts',
  'clients',
  'balances',
  'batches',
  'account-masters',
  'client-masters',
] as const satisfies TopicName[];
const topicsOfStaff = ['audit', 'api-keys'] as const satisfies TopicName[];
/** Types whose events no single request causes. */
const withoutRequest: EventType[] = ['corebanking.balance.v1', 'corebanking.audit.head.v1'];
let topics: Map<TopicName, ReceivedMessage[]>;
let accounts: RestAccount[];
/** An account that was opened without a deposit, and frozen. */
let empty: RestAccount;
const nobody = `acc_${'0'.repeat(32)}`;
const personal = {
  first_name: 'Grace-Secretia',
  last_name: 'Hopperella',
  email: 'secretia@example.com',
  contact_number: '+254799999001',
  address: '1 Hidden Lane',
};
const phone = newPhone();
let patched: RestClient;
let erased: RestClient;

beforeAll(async () => {
  patched = await api.client({ ...personal, ussd_phone_number: phone, ussd_status: 'active' });
  erased = await api.client({ external_id: 'to-be-erased' });
  await api.post(`/admin/clients/${erased.client_id}/erasure`);
  await api.patch(`/clients/${patched.client_id}`, { email: 'secretia2@example.com', address: '2 Hidden Lane' });
  accounts = await together(6, () => api.account(patched.client_id, { initial_deposit: 200 }));
  accounts.push(await api.account(patched.client_id, { account_type: 'Loan', initial_deposit: 100 }));
  empty = await api.account(patched.client_id);
  await api.setStatus(empty.account_id, 'Frozen', 'legal');
  const id = (i: number) => accounts[i % 6]?.account_id ?? '';
  const move = (i: number) =>
    i % 2 === 0
      ? api.post('/transfers', { from_account_id: id(i), to_account_id: id(i + 1), amount: 1 })
      : api.post('/transactions', {
          account_id: id(i),
          transaction_type: i % 3 === 0 ? 'Withdrawal' : 'Deposit',
          amount: i % 9 === 0 ? 5000 : 1,
        });
  await together(120, move);
  const load = together(60, (i) => move(i));
  world.bank.process('ledger').kill('SIGKILL');
  await world.bank.process('ledger').restart();
  await load;
  await api.transfer(id(0), accounts[6]?.account_id ?? '', 10);
  const [transaction] = (
    await api.get(`/transactions?account_id=${id(1)}&transaction_type=Deposit&status=Completed`)
  ).list<RestTransaction>();
  await api.post(`/transactions/${transaction?.transaction_id}/reversal`, { reason: 'x' });
  const { transfer_id } = await api.transfer(id(3), id(4), 10);
  const [leg] = (await api.get(`/transactions?transfer_id=${transfer_id}`)).list<RestTransaction>();
  await api.post(`/transactions/${leg?.transaction_id}/reversal`, { reason: 'x' });
  await api.post('/transfers', { from_account_id: id(0), to_account_id: id(1), amount: 9_000_000 });
  await api.post('/transactions', { account_id: nobody, transaction_type: 'Deposit', amount: 1 });
  const { hold_id } = (await api.post(`/accounts/${id(5)}/holds`, { amount: 5 })).data<Hold>();
  for (const refused of [{ amount: 6 }, { amount: 6, to_account_id: id(1) }])
    expect((await api.post(`/holds/${hold_id}/capture`, refused)).error.code).toBe('amount_exceeds_hold');
  await api.post(`/holds/${hold_id}/release`);
  expect((await api.post(`/holds/${hold_id}/capture`, {})).error.code).toBe('hold_not_active');
  const items = [0, 1].map((i) => ({ transfer: { from_account_id: id(i), to_account_id: id(i + 1), amount: 1 } }));
  expect((await api.once(newKey(), '/batches', { mode: 'independent', items })).status).toBe(200);
  await api.setStatus(id(2), 'Frozen', 'fraud');
  await api.setStatus(id(2), 'Active');
  await eventually(
    async () =>
      (await world.sql("select 1 from v_transactions where status = 'Pending'")).length === 0 && world.isPublished(),
    20_000,
  );
  topics = await readTopics(world.bank, [...topicsOfEvents, ...topicsOfStaff]);
});

const of = (topic: (typeof topicsOfEvents | typeof topicsOfStaff)[number]) => topics.get(topic) ?? [];
const parseData = <T>({ value }: ReceivedMessage) => JSON.parse(String(value)) as T;
const ofType = <T extends EventType>(type: T) =>
  of(events[type].topic as 'transactions').filter(({ headers }) => headers['ce_type'] === type);

/** Returns each event once. Events that are published again have the same ce_id and the same bytes. */
function once(messages: ReceivedMessage[]): ReceivedMessage[] {
  const byId = new Map<string, ReceivedMessage>();
  for (const message of messages) {
    const before = byId.get(message.headers['ce_id'] ?? '');
    if (before) expect(String(message.value)).toBe(String(before.value));
    else byId.set(message.headers['ce_id'] ?? '', message);
  }
  return [...byId.values()];
}

/** Converts the money in the resource of an event to numbers, as in REST. */
const asRest = (value: object): unknown =>
  JSON.parse(JSON.stringify(value), (name, item: unknown) =>
    ['amount', 'balance', 'balance_after'].includes(name) ? Number(item) : item,
  );
const everyTransaction = async () =>
  (
    await Promise.all(
      accounts.map(({ account_id }) => api.all<RestTransaction>(`/transactions?account_id=${account_id}`)),
    )
  ).flat();

describe('CloudEvents', () => {
  const ajv = new Ajv({ allowUnionTypes: true });
  formats.default(ajv);
  const headersAreRight = ajv.compile(wireSchema(eventHeadersSchema));

  it.each([...topicsOfEvents, ...topicsOfStaff])(
    '%s: binary headers, and data that matches the schemas in docs/events',
    (topic) => {
      const types = new Set(of(topic).map(({ headers }) => headers['ce_type'] as EventType));
      // These are published every minute.
      if (topic === 'audit') types.add('corebanking.audit.head.v1');
      expect([...types].sort()).toEqual(
        Object.keys(events)
          .filter((type) => events[type as EventType].topic === topic)
          .sort(),
      );
      for (const type of types) {
        const isRight = ajv.compile(
          JSON.parse(readFileSync(new URL(`../../docs/events/${type}.schema.json`, import.meta.url), 'utf8')),
        );
        for (const { headers, key, value } of of(topic).filter((message) => message.headers['ce_type'] === type)) {
          expect([
            isRight(JSON.parse(String(value))),
            isRight.errors,
            headersAreRight(headers),
            headersAreRight.errors,
          ]).toEqual([true, null, true, null]);
          expect(headers).toMatchObject({ ce_subject: key, ce_dataschema: schemaId(type) });
          expect('request-id' in headers, type).toBe(!withoutRequest.includes(type));
          const others = Object.keys(headers).filter((name) => !Object.hasOwn(eventHeadersSchema.shape, name));
          expect(others).toEqual(topic === 'api-keys' ? [signatureHeader] : feedTopics.includes(topic) ? ['mac'] : []);
          const data = events[type].data.parse(JSON.parse(String(value)));
          expect([data.event_id, data.event_type]).toEqual([headers['ce_id'], type]);
        }
      }
    },
  );

  it('keys: account_id, transfer_id, account_id, client_id, account_id', () => {
    for (const message of of('transactions'))
      expect(message.key).toBe(parseData<{ transaction: RestTransaction }>(message).transaction.account_id);
    for (const message of of('transfers')) {
      const { transfer } = parseData<{ transfer: RestTransfer }>(message);
      expect(message.key).toBe(transfer.reverses_transfer_id ?? transfer.transfer_id);
    }
    for (const message of of('clients')) expect(message.key).toBe(parseData<{ client_id: string }>(message).client_id);
    for (const message of of('balances'))
      expect(message.key).toBe(parseData<{ account_id: string }>(message).account_id);
    for (const message of of('accounts')) expect(message.key).toMatch(/^acc_/);
  });

  it('each key is in one partition', () => {
    for (const topic of topicsOfEvents) {
      for (const [key, messages] of Map.groupBy(of(topic), (message) => message.key))
        expect(new Set(messages.map(({ partition }) => partition)).size, `${topic} ${key}`).toBe(1);
    }
  });
});

describe('transactions', () => {
  it('each Completed operation appears exactly once by ce_id, as in REST', async () => {
    const completed = (await everyTransaction())
      .filter(({ status }) => status === 'Completed')
      .map(({ reversed_by_transaction_id: _, ...transaction }) => transaction);
    const told = once(ofType('corebanking.transaction.completed.v1')).map((message) =>
      asRest(parseData<Data<'corebanking.transaction.completed.v1'>>(message).transaction),
    );
    const byId = (a: unknown, b: unknown) =>
      (a as RestTransaction).transaction_id < (b as RestTransaction).transaction_id ? -1 : 1;
    expect(told.sort(byId)).toEqual(completed.sort(byId));
  });

  it('the sequence of each account is in order and without gaps', () => {
    for (const { account_id } of accounts) {
      const sequences = once(
        ofType('corebanking.transaction.completed.v1').filter(({ key }) => key === account_id),
      ).map((message) => parseData<{ sequence: number }>(message).sequence);
      expect(sequences.length).toBeGreaterThan(0);
      expect(sequences).toEqual(sequences.map((_, i) => i + 1));
    }
  });

  it('events have all entries of the operation, which balance, and balance_after', async () => {
    const ledgerAccounts = new Map(
      (
        await world.sql<{ account_id: string; account_type: string; class: string }>(
          'select account_id, account_type, class from ledger.v_accounts',
        )
      ).map((row) => [row.account_id, [row.account_id, row.account_type, row.class]]),
    );
    const entries = new Map(
      (await Promise.all(accounts.map(({ account_id }) => api.entries(account_id))))
        .flat()
        .map((entry) => [entry.entry_id, entry]),
    );
    for (const message of ofType('corebanking.transaction.completed.v1')) {
      const {
        transaction,
        sequence,
        balance_after,
        operation_id,
        entries: told,
      } = parseData<Data<'corebanking.transaction.completed.v1'>>(message);
      const sum = (side: string) =>
        told
          .filter((entry) => entry.side === side)
          .reduce((total, { amount }) => total + Math.round(Number(amount) * 100), 0);
      expect(sum('DR')).toBe(sum('CR'));
      expect(told).toHaveLength(transaction.counterparty_account_id === undefined ? 4 : 2);
      expect(told.every((entry) => entry.operation_id === operation_id)).toBe(true);
      const own = told.find(({ account_id }) => account_id === transaction.account_id);
      expect(own).toMatchObject({ sequence, transaction_id: transaction.transaction_id });
      expect(entries.get(own?.entry_id ?? '')).toMatchObject({ balance_after: Number(balance_after) });
      expect(JSON.stringify(told)).not.toContain('balance_after');
      for (const { account_type, account_class, ...entry } of told) {
        if (entries.has(entry.entry_id)) expect(entries.get(entry.entry_id)).toMatchObject(asRest(entry) as RestEntry);
        // An ERP posts every entry by these, also those of Teller and Vault.
        expect([entry.account_id, account_type, account_class]).toEqual(ledgerAccounts.get(entry.account_id));
      }
      expect(message.headers['ce_id']?.replaceAll('-', '')).toBe(transaction.transaction_id.slice(4));
    }
  });

  it('Failed transactions appear too, without a sequence', async () => {
    const failed = (await everyTransaction()).filter(({ status }) => status === 'Failed');
    expect(failed.length).toBeGreaterThan(0);
    const told = once(ofType('corebanking.transaction.failed.v1')).map((message) =>
      parseData<{ transaction: RestTransaction; sequence?: number }>(message),
    );
    expect(told.map(({ transaction }) => transaction.transaction_id).sort()).toEqual(
      failed.map(({ transaction_id }) => transaction_id).sort(),
    );
    for (const { transaction, sequence } of told) {
      expect(sequence).toBeUndefined();
      expect(transaction).toMatchObject({ status: 'Failed', failure_code: expect.any(String) });
    }
  });

  it('Teller and Vault appear only in entries', () => {
    const known = new Set([nobody, ...[...accounts, empty].map(({ account_id }) => account_id)]);
    expect(of('transactions').filter(({ key }) => !known.has(key ?? ''))).toEqual([]);
    expect(of('balances').filter(({ key }) => !known.has(key ?? ''))).toEqual([]);
  });
});

describe('verify-books', () => {
  it('finds that events and entries agree', async () => {
    expect(await verifyEvents(world.pool, createTestKafka(world.bank), world.bank.topic_prefix, silent)).toEqual([]);
  });
});

describe('transfers, balances', () => {
  it('each transfer appears once, as in REST, including refused ones and reversals', async () => {
    const shown = await api.all<RestTransfer>('/transfers');
    const transfers = shown.map(({ reversed_by_transfer_id: _, ...transfer }) => transfer as RestTransfer);
    const told = once(of('transfers')).map(
      (message) => asRest(parseData<{ transfer: RestTransfer }>(message).transfer) as RestTransfer,
    );
    const byId = (a: RestTransfer, b: RestTransfer) => (a.transfer_id < b.transfer_id ? -1 : 1);
    expect(told.sort(byId)).toEqual(transfers.sort(byId));
  });

  it('the latest message of each account in balances is its current state, as in REST', async () => {
    const latest = new Map(
      of('balances').map((message) => [message.key ?? '', parseData<Data<'corebanking.balance.v1'>>(message)]),
    );
    const inRest = await api.all<RestAccount>('/accounts');
    expect(inRest).toHaveLength(accounts.length + 1);
    const state = ({ account_id, account_number, account_type, currency, status, balance }: RestAccount) => ({
      account_id,
      account_number,
      account_type,
      currency,
      status,
      balance,
    });
    const byId = (a: { account_id: string }, b: { account_id: string }) => (a.account_id < b.account_id ? -1 : 1);
    expect([...latest.values()].map((told) => state(asRest(told) as RestAccount)).sort(byId)).toEqual(
      inRest.map(state).sort(byId),
    );
    for (const { account_id } of inRest) {
      const [newest] = (await api.get(`/accounts/${account_id}/entries?limit=1`)).list<RestEntry>();
      expect(latest.get(account_id)?.sequence).toBe(newest?.sequence ?? 0);
    }
    expect(latest.get(empty.account_id)).toMatchObject({
      balance: '0.00',
      sequence: 0,
      status: 'Frozen',
      status_version: 2,
    });
  });
});

describe('batches', () => {
  it('a batch appears once, as in REST', async () => {
    const [shown, ...others] = await api.all<BatchSummary>('/batches');
    const [told, ...more] = once(of('batches')).map(parseData<Data<'corebanking.batch.completed.v1'>>);
    expect([others, more]).toEqual([[], []]);
    const { actor, counts, ...batch } = shown as BatchSummary;
    expect(told).toMatchObject({
      batch: { ...batch, totals: [{ currency: 'USD', amount: '2.00' }] },
      actor,
      client_id: null,
    });
    expect([told?.batch.counts, counts]).toEqual([
      { completed: 2, failed: 0 },
      { completed: 2, failed: 0, pending: 0 },
    ]);
  });
});

describe('initiator and client', () => {
  it('are in every event of an account, as in REST and the audit log', async () => {
    const owners = new Map([...accounts, empty].map((account) => [account.account_id, account]));
    for (const message of [...of('transactions'), ...of('transfers'), ...of('accounts'), ...of('clients')])
      expect(parseData<object>(message)).toMatchObject({
        actor: expect.stringMatching(/^key:key_/),
        request_channel: 'api_key',
      });
    for (const message of [
      ...ofType('corebanking.transaction.completed.v1'),
      ...ofType('corebanking.transaction.failed.v1'),
    ]) {
      const { client_id, account_number } = owners.get(message.key ?? '') ?? {};
      expect(parseData<object>(message)).toMatchObject({ client_id, account_number });
    }
    for (const message of of('balances'))
      expect(parseData<object>(message)).toMatchObject({ client_id: owners.get(message.key ?? '')?.client_id });
    const [probe, ...others] = ofType('corebanking.transaction.account_not_found.v1');
    expect([probe?.key, others]).toEqual([nobody, []]);
  });
});

describe('accounts, clients', () => {
  it('each opening and each status change appears once', async () => {
    const opened = once(ofType('corebanking.account.opened.v1')).map(
      (message) => parseData<Data<'corebanking.account.opened.v1'>>(message).account.account_id,
    );
    expect(opened.sort()).toEqual([...accounts, empty].map(({ account_id }) => account_id).sort());
    const { account_id } = accounts[2] as RestAccount;
    const history = await api.all<RestTransition>(`/accounts/${account_id}/status-transitions?order=asc`);
    const told = once(ofType('corebanking.account.status_changed.v1').filter(({ key }) => key === account_id)).map(
      (message) => parseData<Data<'corebanking.account.status_changed.v1'>>(message),
    );
    expect(
      told.map(({ transition_id, from_status, to_status, reason }) => [transition_id, from_status, to_status, reason]),
    ).toEqual(
      history.map(({ transition_id, from_status, to_status, reason }) => [
        transition_id,
        from_status,
        to_status,
        reason,
      ]),
    );
    expect(told.map(({ status_version }) => status_version)).toEqual([2, 3]);
    const types = once(of('accounts').filter(({ key }) => key === account_id)).map(({ headers }) =>
      headers['ce_type']?.split('.').at(-2),
    );
    expect(types).toEqual(['opened', 'status_changed', 'status_changed']);
  });

  it('the latest messages in account-masters and client-masters are the current master data, as in REST', async () => {
    const byKey = (topic: 'account-masters' | 'client-masters') =>
      new Map(of(topic).map((message) => [message.key, parseData<Record<string, unknown>>(message)]));
    const accountMasters = (await api.all<RestAccount>('/accounts')).map(
      ({ balance: _balance, available_balance: _available, ...master }) => [master.account_id, master] as const,
    );
    expect(new Map([...byKey('account-masters')].map(([key, { account }]) => [key, account]))).toEqual(
      new Map(accountMasters),
    );
    expect(byKey('account-masters').get(empty.account_id)).toMatchObject({ status_version: 2 });
    const clientMasters = byKey('client-masters');
    const clients = await api.all<RestClient>('/clients');
    expect([...clientMasters.keys()].sort()).toEqual(clients.map(({ client_id }) => client_id).sort());
    const { client_id, client_type, created_at, updated_at } = (
      await api.get(`/clients/${patched.client_id}`)
    ).data<RestClient>();
    // No personal data.
    expect(clientMasters.get(client_id)).toEqual({
      client_id,
      client_type,
      created_at,
      updated_at,
      erased_at: null,
      event_id: expect.any(String),
      event_type: 'corebanking.client.v1',
    });
    expect(clientMasters.get(erased.client_id)).not.toHaveProperty('external_id');
    expect(clientMasters.get(erased.client_id)).toMatchObject({ erased_at: expect.any(String) as string });
  });

  it('client events have ids, the type, and the names of changed fields, but no personal data', () => {
    const messages = once(of('clients')).filter(({ key }) => key === patched.client_id);
    expect(messages.map(({ headers }) => headers['ce_type'])).toEqual([
      'corebanking.client.created.v1',
      'corebanking.client.updated.v1',
    ]);
    expect(parseData<Data<'corebanking.client.updated.v1'>>(messages[1] as ReceivedMessage)).toMatchObject({
      client_id: patched.client_id,
      client_type: 'Retail',
      changed_fields: expect.toSatisfy((names: string[]) => names.sort().join() === 'address,email'),
    });
    const texts = topicsOfEvents.flatMap((topic) =>
      of(topic).map(({ value, headers }) => String(value) + JSON.stringify(headers)),
    );
    for (const secret of [...Object.values(personal), phone, 'secretia2@example.com', String(retail()['email'])])
      expect(texts.filter((text) => text.includes(secret))).toEqual([]);
  });
});
