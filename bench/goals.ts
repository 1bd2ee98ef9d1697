/** The performance goals as numbers; a row can have several. A row without a limit is only reported. */
export interface Goal {
  title: string;
  unit?: string;
  least?: number;
  most?: number;
}

const pipeline = 'a minimal request-reply with one posting (pipeline)';

/**
 * Every goal by its id, in the order of the report. rows.ts names the group of rows that measures
 * it.
 */
export const goals = {
  'peers-transfers': { title: 'transfers/s ÷ the best peer over HTTP', least: 8 },
  'peers-deposits': { title: 'deposits/s on one hot account ÷ the best peer over HTTP', least: 15 },
  'peers-bulk': { title: 'transfers/s in batches of 100 ÷ the best peer over HTTP', least: 30 },
  'peers-sql-transfers': { title: "transfers/s ÷ pgledger's SQL functions without HTTP", least: 1 },
  'peers-sql-deposits': { title: "deposits/s on one hot account ÷ pgledger's", least: 1 },
  'peers-reads': { title: 'balance reads/s ÷ the best peer', least: 1 },
  'peers-p50': { title: 'p50 of transfers at 200/s ÷ the best peer', most: 1 },
  'peers-p99': { title: 'p99 of the same ÷ the best peer', most: 1 },
  'peers-first': { title: 'p50 of a list of transactions, page 1 ÷ the best peer', most: 1 },
  'peers-deep': { title: 'the same, the middle page ÷ the best peer', most: 1 },
  'cost-transfer': { title: 'CPU of all processes per transfer at saturation ÷ direct', most: 0.45 },
  'cost-item': { title: 'the same per item of a batch of 100 ÷ a transfer of direct', most: 0.2 },
  'cost-read': { title: 'the same per balance read ÷ direct', most: 1.5 },
  'over-direct': { title: 'transfers/s ÷ fastify → pg, one transaction of single statements per request' },
  'over-function': { title: 'transfers/s ÷ fastify → one SQL function per request' },
  'over-pgbench': { title: 'transfers/s ÷ pgbench, 8 clients, prepared statements, no HTTP, relay running' },
  'ledger-over-pgbench': { title: 'the ledger alone, batches of 200–500 with refusals, entries, outbox ÷ pgbench' },
  'p50-alone': { title: `p50 of one transfer at a time ÷ ${pipeline}`, most: 2 },
  'p50-at-200': { title: 'p50 of transfers at 200/s ÷ the same pipeline', most: 1 },
  'p99-at-200': { title: 'p99 at 200/s ÷ the same pipeline', most: 1 },
  'p50-at-500': { title: 'p50 at 500/s ÷ the same pipeline', most: 1 },
  'p99-at-500': { title: 'p99 at 500/s ÷ the same pipeline', most: 1 },
  'p50-at-1000': { title: 'p50 at 1,000/s ÷ the same pipeline', most: 1 },
  'p99-at-1000': { title: 'p99 at 1,000/s ÷ the same pipeline', most: 1 },
  'p50-of-read': { title: 'p50 of one balance read at a time ÷ a minimal request-reply (bare)', most: 2 },
  'read-beside': { title: 'p50 of a balance read while writes run at half load', unit: 'ms', most: 10 },
  'cost-before': { title: 'CPU of all processes per transfer ÷ that of the version in --against', most: 1.01 },
  'low-cost-50': { title: 'CPU per transfer at 50/s, with webhooks ÷ that of the version in --against', most: 0.35 },
  'low-cost-200': { title: 'the same at 200/s', most: 0.35 },
  'low-commits': { title: 'commits of Postgres per transfer at 50/s', most: 2 },
  'deposits-over-direct': { title: 'deposits/s ÷ direct deposits/s' },
  'deposits-of-transfers': { title: 'deposits/s (each touches Vault) ÷ transfers/s', least: 1 },
  'deposits-cliff': { title: 'deposits/s at 1,000 connections ÷ at the best number of connections', least: 0.9 },
  'batch-cpu': {
    title: 'CPU of all processes per item of a batch of 100 ÷ per single transfer, 100 transfers concurrent in both',
    most: 0.5,
  },
  'batch-cpu-eight': { title: 'the same ÷ per single transfer, 8 transfers concurrent' },
  'batch-cpu-saturated': { title: 'the same at saturation, single transfers in full transactions' },
  'batch-1000': { title: 'a batch of 1,000 items, the slowest response', unit: 'ms', most: 2000 },
  'batch-beside': { title: 'p99 of single transfers at 200/s beside a batch of 1,000 each second ÷ without', most: 2 },
  'tail-in-time': { title: 'p99.9 ÷ p50 at half load, the worst minute', most: 10 },
  'memory-slope': {
    title: 'growth of the memory of a service in the last half of that time, the largest',
    unit: 'MB/h',
    most: 2,
  },
  growth: { title: 'transfers/s with many accounts and transactions ÷ empty', least: 0.85 },
  'growth-p99': { title: 'p99 of the same at half load, grown ÷ empty' },
  'list-first': { title: 'list of transactions among those, page 1, p99', unit: 'ms', most: 10 },
  'list-deep': { title: 'the same, page 10,000, p99', unit: 'ms', most: 10 },
  'list-account': { title: 'the same by account, p99', unit: 'ms', most: 10 },
  'balances-on': { title: 'the balances of all accounts on a day (GET /admin/balances?on=)', unit: 's' },
  'balances-memory': { title: 'growth of the memory of gateway or ledger meanwhile, at most', unit: 'MB' },
  'trial-on': { title: 'the trial balance on that day', unit: 's' },
  'close-day': { title: 'a day closed, until its totals are there', unit: 's' },
  'close-beside': { title: 'p99 of transfers at 200/s meanwhile ÷ without', most: 2 },
  'bytes-topics': {
    title: 'event topics with compression.type=zstd, bytes on disk per transfer',
    unit: 'kB',
    most: 1.5,
  },
  'bytes-postgres': {
    title: 'tables and indexes of the ledger, without the outbox, per transfer',
    unit: 'kB',
    most: 2.2,
  },
  'relay-on-off': { title: 'transfers/s with the relay on ÷ off' },
  'event-p50': { title: 'commit to consumer at half load, p50', unit: 'ms', most: 5 },
  'event-p99': { title: 'commit to consumer at half load, p99', unit: 'ms', most: 50 },
  'ledgers-200': { title: 'transfers/s of 2, 4, or 8 ledgers ÷ of one, the lowest, between 200 accounts', least: 0.95 },
  'ledgers-hot': { title: 'the same to 2 hot destinations of 2,000 accounts', least: 0.95 },
  'ledgers-20000': { title: 'the same between 20,000 accounts', least: 0.95 },
  'ledgers-cpu': { title: 'CPU of all processes per transfer of those ÷ of one, the highest', most: 1.1 },
  drain: { title: 'events published after an outage ÷ events of postings, per second' },
  'webhook-deliveries': { title: 'deliveries/s of webhooks to a receiver on this machine', least: 2000 },
  'webhook-deliveries-one': { title: 'the same to one webhook' },
  idle: { title: 'CPU of the idle bank without the broker, of one core', unit: '%', most: 2 },
} satisfies Record<string, Goal>;

export type GoalId = keyof typeof goals;

export function goalText({ least, most, unit }: Goal): string {
  const of = (value: number) => `${value}${unit === undefined ? '' : ` ${unit}`}`;
  if (least !== undefined) return `≥ ${of(least)}`;
  return most === undefined ? 'report' : `≤ ${of(most)}`;
}

/** undefined if there is no target. */
export function isMet({ least, most }: Goal, value: number): boolean | undefined {
  if (least === undefined && most === undefined) return undefined;
  return value >= (least ?? -Infinity) && value <= (most ?? Infinity);
}
