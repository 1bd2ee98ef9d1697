import { randomUUID } from 'node:crypto';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { createKafka } from '#libs/kafka/client.ts';
import { silent } from '#libs/postgres/test/test-database.ts';
import { verifyBooks } from '#services/ledger/verify/verify-books.ts';
import { verifyEvents } from '#services/ledger/verify/verify-events.ts';
import type { Cluster } from '../../tests/faults/cluster.ts';
import { startCluster } from '../../tests/faults/cluster.ts';
import { createRandom } from '../../tests/faults/random.ts';
import {
  acceptDatabase,
  archiveWal,
  backUp,
  databaseTime,
  resend,
  restoreTo,
  tryRestore,
  withPool,
} from '../../tests/faults/restoring.ts';
import { Api, type RestAccount, type RestTransaction } from '../../tests/support/client.ts';
import { eventually } from '../../tests/support/eventually.ts';
import type { Check, Part } from './check.ts';
import { expect } from './check.ts';

/**
 * What callers were told, by account: its number, balances, status, entries, holds, and transactions with their outcomes.
 * It must be true after the restore.
 */
type Told = Map<string, Record<string, unknown>>;

const patienceMs = 60_000;
/** Long enough for the ledger to receive what was sent before. */
const arrivesMs = 1_500;

/**
 * Follows docs/operations.md, Restore, literally: a base backup and the archived WAL, a disaster, a
 * restore to a moment before it, whose older history is accepted explicitly, and the commands since
 * then sent again from Kafka.
 */
export const restore: Part = {
  name: 'restore',
  needsEngine: false,
  planted: {
    defect: 'commands that are not sent again',
    foundBy: 'all responses that callers received hold again',
    says: /accounts differ/,
  },
  async run(check) {
    const cluster = await check.step('start a bank whose Postgres archives its WAL', () => openBank(check));
    const [api] = cluster.gateways.map(
      ({ baseUrl }) =>
        new Api(
          () => baseUrl,
          () => ({ 'x-api-key': cluster.apiKey }),
        ),
    ) as [Api];
    const customers = new Customers(api);
    await customers.work(10);
    await check.step('take a base backup under load', () =>
      Promise.all([backUp(cluster), customers.work(10)]).then(() => undefined),
    );
    await customers.work(10);
    await check.step('the script of the monthly restore reads backup and archive, and finds the books balanced', () =>
      tryRestore(cluster),
    );
    const moment = await databaseTime(cluster);
    await sleep(1_100);
    const told = await check.step('commit operations that the restored database will not have', async () => {
      await customers.work(20);
      await customers.chains(cluster);
      await withPool(cluster, 'ledger', (pool) =>
        eventually(
          async () =>
            (
              await pool.query(
                'select from ledger.outbox_batches where published_at is null union all select from accounts.outbox_batches where published_at is null union all select from accounts.saga_steps',
              )
            ).rowCount === 0,
          patienceMs,
        ),
      );
      return readTold(api);
    });
    await check.step('stop all processes and restore Postgres to the moment before those operations', () =>
      restoreTo(cluster, moment),
    );
    await check.step('a ledger refuses the older history; after everything is stopped, it is accepted', () =>
      acceptDatabase(cluster),
    );
    await check.step('the books balance, and verify-books reports the events without entries', async () => {
      const kafka = createKafka({ brokers: [cluster.brokers], client_id: 'restore' }, silent);
      const lacking = await withPool(cluster, 'ledger', async (pool) => {
        expect((await verifyBooks(pool)).length === 0, 'the restored books do not balance');
        return verifyEvents(pool, kafka, cluster.topicPrefix, silent);
      });
      expect(lacking.length > 0, 'nothing is missing: the restore went too far');
      return `${lacking.length} rules about events are broken, as they must be`;
    });
    await check.step('with one ledger and accounts running, the later commands are sent again', async () => {
      if (check.selfTest) return 'none sent: planted';
      const { sent, decided, unmet } = await resend(cluster, moment);
      expect(unmet.length === 0, `${unmet.length} pieces of evidence are unmet: ${shown(unmet.slice(0, 3))}`);
      return `${sent} commands, of which ${decided} had been decided`;
    });
    await check.step('all responses that callers received hold again', async () => {
      await cluster.restore();
      const now = await readTold(api);
      const different = [...told].flatMap(([id, before]) => {
        const after = now.get(id);
        const fields = Object.keys(before).filter((field) => shown(before[field]) !== shown(after?.[field]));
        return fields.map((field) => ({ id, field, before: before[field], after: after?.[field] }));
      });
      expect(
        different.length === 0 && now.size === told.size,
        `${new Set(different.map(({ id }) => id)).size} of ${told.size} accounts differ, ${now.size} there: ${shown(different.slice(0, 3))}`,
      );
      const findings = await withPool(cluster, 'ledger', (pool) => verifyBooks(pool));
      expect(findings.length === 0, shown(findings));
      return `${told.size} accounts with number, balances, status, every entry, hold, and transaction`;
    });
  },
};

async function openBank(check: Check): Promise<Cluster> {
  const cluster = await startCluster(join(check.dir, 'restore'), createRandom('restore'));
  check.onEnd(() => cluster.stop());
  await archiveWal(cluster);
  await cluster.restore();
  return cluster;
}

const shown = (value: unknown): string =>
  JSON.stringify(value, (_, one: unknown) => (typeof one === 'bigint' ? String(one) : one)) ?? 'nothing';

/** Customers whose every operation depends on what was decided before. */
class Customers {
  readonly #api: Api;
  readonly #ids: string[] = [];

  constructor(api: Api) {
    this.#api = api;
  }

  /** Rounds of every kind of operation, of which some are refused, each with its response. */
  async work(count: number): Promise<void> {
    const api = this.#api;
    for (let i = 0; i < count; i++) {
      if (i % 4 === 0) this.#ids.push((await api.newAccount({ initial_deposit: 100 })).account_id);
      const [from = '', to = ''] = [this.#ids.at(-1), this.#ids[i % this.#ids.length]];
      const [deposit] = await Promise.all([
        api.transact(from, 'Deposit', 10 + i),
        api.post('/transactions', { account_id: from, transaction_type: 'Withdrawal', amount: 1_000_000 }),
      ]);
      if (from !== to) await api.transfer(from, to, 5);
      if (i % 3 === 0) await this.#post(`/transactions/${deposit.transaction_id}/reversal`, { reason: 'mistake' });
      await this.#hold(from, to, i);
      await this.#batches(from, to);
      if (i % 4 === 3) {
        await api.setStatus(from, 'Frozen', 'fraud');
        await api.post('/transactions', { account_id: from, transaction_type: 'Deposit', amount: 1 });
        await api.setStatus(from, 'Active');
      }
    }
  }

  async #post<T>(path: string, body: unknown): Promise<T> {
    const answer = await this.#api.post(path, body);
    expect(answer.status === 200 || answer.status === 201, `POST ${path}: ${answer.status} ${answer.text}`);
    return answer.data<T>();
  }

  /** Only the end of the hold, or its capture, makes the next payment possible or impossible. */
  async #hold(account: string, to: string, i: number): Promise<void> {
    const api = this.#api;
    const { available_balance: available = 0 } = (await api.get(`/accounts/${account}`)).data<RestAccount>();
    const payment = { account_id: account, transaction_type: 'Withdrawal', amount: 1 };
    const { hold_id } = await this.#post<{ hold_id: string }>(`/accounts/${account}/holds`, { amount: available });
    expect((await api.post('/transactions', payment)).status === 400, 'held money was paid');
    const capture = { amount: 2, final: false, ...(account === to ? {} : { to_account_id: to }) };
    await this.#post(`/holds/${hold_id}/capture`, capture);
    if (i % 3 === 0) await this.#post(`/holds/${hold_id}/release`, {});
    else await this.#post(`/holds/${hold_id}/capture`, { amount: 2, final: true });
    await this.#post('/transactions', payment);
    if (i % 4 === 0) await this.#post(`/accounts/${account}/holds`, { amount: 1 });
  }

  /** The second item of the independent batch is refused, and would not be if it were decided after the third. */
  async #batches(from: string, to: string): Promise<void> {
    const api = this.#api;
    const { available_balance: available = 0 } = (await api.get(`/accounts/${from}`)).data<RestAccount>();
    const deposit = { transaction: { account_id: from, transaction_type: 'Deposit', amount: 3 } };
    const tooMuch = { transaction: { account_id: from, transaction_type: 'Withdrawal', amount: available + 4 } };
    const batch = (mode: string, items: object[]) => api.once(randomUUID(), '/batches', { mode, items });
    const independent = await batch('independent', [deposit, tooMuch, deposit]);
    expect(independent.status === 200 || independent.status === 201, `a batch: ${independent.text}`);
    if (from === to) return;
    const payment = { transfer: { from_account_id: from, to_account_id: to, amount: available + 6 } };
    const back = { transfer: { from_account_id: to, to_account_id: from, amount: available + 2 } };
    const atomic = await batch('atomic', [payment, back]);
    expect(atomic.status === 200 || atomic.status === 201, `a batch: ${atomic.text}`);
    expect((await batch('atomic', [deposit, payment, tooMuch])).status === 400, 'the batch was not refused');
  }

  /** Money that arrives and is paid on within one batch of the ledger, from older accounts to newer ones. */
  async chains(cluster: Cluster): Promise<void> {
    const api = this.#api;
    const payers = this.#ids.slice(0, 12);
    const last = (await api.newAccount()).account_id;
    const between = await Promise.all(payers.map(async () => (await api.newAccount()).account_id));
    for (const payer of payers) await api.transact(payer, 'Deposit', 50);
    const ledgers = ['ledger', 'ledger-2'].map((name) => cluster.node(name));
    for (const ledger of ledgers) ledger.signal('SIGSTOP');
    const pay = (from_account_id: string, to_account_id: string) =>
      api.post('/transfers', { from_account_id, to_account_id, amount: 50 });
    const first = payers.map((payer, i) => pay(payer, between[i] ?? ''));
    await sleep(arrivesMs);
    const second = between.map((account) => pay(account, last));
    await sleep(arrivesMs);
    for (const ledger of ledgers) ledger.signal('SIGCONT');
    await Promise.all(first);
    // Some are decided by the other ledger, or before the money arrives.
    const paid = (await Promise.all(second)).filter(({ status }) => status === 201).length;
    expect(paid > 0, 'no money was paid on within one batch');
  }
}

/** Returns entries without their posting time, which is a new one after the restore. */
async function readTold(api: Api): Promise<Told> {
  const told: Told = new Map();
  for (const account of await api.all<RestAccount>('/accounts?limit=100')) {
    const { account_id, account_number, balance, available_balance, status } = account;
    const entries = (await api.entries(account_id)).map(
      ({ created_at: _at, ...entry }: { created_at?: string } & Record<string, unknown>) => shown(entry),
    );
    const transactions = await api.all<RestTransaction>(`/transactions?account_id=${account_id}&limit=100`);
    const holds = await api.all<Record<string, unknown>>(`/accounts/${account_id}/holds?limit=100`);
    told.set(account_id, {
      account_number,
      balance,
      available_balance,
      status,
      entries: entries.toSorted(),
      transactions: transactions.map(shown).toSorted(),
      holds: holds.map(({ updated_at: _, ...hold }) => shown(hold)).toSorted(),
    });
  }
  return told;
}
