import { randomBytes } from 'node:crypto';
import { pino } from 'pino';
import { formatId } from '#libs/contracts/ids.ts';
import { createPool, lookupPlans } from '#libs/postgres/pool.ts';
import { tuneGarbageCollector } from '#libs/service/run.ts';
import { runBatch } from '#services/ledger/batch/engine.ts';
import type { Command } from '#services/ledger/domain/decision.ts';
import { serveHelper } from '../helper.ts';

/**
 * The ledger without Kafka: batches of transfers are passed to the engine one after the other, as its consumer would,
 * with the ledger's own settings of the connection and of V8. Every twentieth transfer is refused for insufficient
 * funds.
 */
tuneGarbageCollector();
const { DATABASE_URL = '', ACCOUNTS = '1000' } = process.env;
const pool = createPool(
  { url: DATABASE_URL, application_name: 'bench ledger', schema: 'ledger', max: 2, options: lookupPlans },
  pino({ level: 'warn' }),
);
const [leastBatch, mostBatch] = [200, 500];
const refusedEvery = 20;
const slot = 0;

export interface LedgerPlan {
  seconds: number;
}
/** The number of commands committed per second, and how many of them were refused. */
export interface LedgerResult {
  perSecond: number;
  refusedPerSecond: number;
}

const bits = () => `${randomBytes(15).toString('hex')}00`;
const context = (id: string) => ({
  message_id: id,
  type: '',
  source: '',
  time: new Date().toISOString(),
  subject: '',
  request_id: 'bench',
  actor: 'bench',
  fingerprint: bits(),
  idempotency_key: id,
});

function opening(): Command {
  const account_id = formatId('account', bits());
  const data = {
    account_id,
    client_id: formatId('client', bits()),
    account_number: account_id,
    account_type: 'Current' as const,
    currency: 'USD',
    status: 'Active' as const,
    initial_deposit: '100000000',
  };
  return { name: 'open_ledger_account', data, context: context(account_id) };
}

const openings = Array.from({ length: Number(ACCOUNTS) }, opening);
for (let at = 0; at < openings.length; at += mostBatch) await runBatch(pool, openings.slice(at, at + mostBatch), slot);
const accounts = openings.flatMap((command) =>
  command.name === 'open_ledger_account' ? [command.data.account_id] : [],
);

let count = 0;
function transfer(): Command {
  const from = Math.floor(Math.random() * accounts.length);
  const to = (from + 1 + Math.floor(Math.random() * (accounts.length - 1))) % accounts.length;
  const transfer_id = formatId('transfer', bits());
  const amount = count++ % refusedEvery === 0 ? '999999999' : '0.25';
  return {
    name: 'create_transfer',
    data: {
      transfer_id,
      from_account_id: accounts[from] ?? '',
      to_account_id: accounts[to] ?? '',
      amount,
      currency: null,
      description: null,
    },
    context: context(transfer_id),
  };
}

serveHelper<LedgerPlan, LedgerResult>(async ({ seconds }) => {
  const end = performance.now() + seconds * 1000;
  let [done, refused] = [0, 0];
  while (performance.now() < end) {
    const size = leastBatch + Math.floor(Math.random() * (mostBatch - leastBatch + 1));
    const { replies } = await runBatch(pool, Array.from({ length: size }, transfer), slot);
    done += replies.length;
    refused += replies.filter(({ ok }) => !ok).length;
  }
  return { perSecond: done / seconds, refusedPerSecond: refused / seconds };
});
process.send?.({ result: 'ready' });
