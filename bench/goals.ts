/** The performance goals as numbers; a row can have several. */
export interface Goal {
  title: string;
  /** The result of a prototype of the pipeline. */
  trial: string;
  unit?: string;
  least?: number;
  most?: number;
}

const ratioTo = (what: string) => `transfers/s through the whole bank ÷ ${what}`;

/**
 * Every goal by its id, in the order of the report. rows.ts names the group of rows that measures
 * it.
 */
export const goals = {
  'of-gateway': { title: ratioTo('the same gateway answering itself'), trial: '0.6', least: 0.65 },
  'over-direct': {
    title: ratioTo('fastify → pg, one transaction of single statements per request'),
    trial: '6.5',
    least: 7,
  },
  'over-function': { title: ratioTo('fastify → one SQL function per request'), trial: '2.0–2.6', least: 2.2 },
  'over-pgbench': {
    title: ratioTo('pgbench, the same transfer in prepared statements, 8 clients, no HTTP, relay running'),
    trial: '2.0',
    least: 2.5,
  },
  'deposits-over-direct': { title: 'deposits/s ÷ direct deposits/s', trial: '20', least: 15 },
  'deposits-of-transfers': { title: 'deposits/s (each touches Vault) ÷ transfers/s', trial: '1.0', least: 1 },
  'deposits-cliff': { title: 'deposits/s at 1,000 connections ÷ at the best number', trial: '–', least: 0.9 },
  'ledger-over-pgbench': {
    title: 'the ledger alone, batches of 200–500 with refusals, entries, outbox ÷ pgbench',
    trial: '4–6.6',
    least: 6,
  },
  'p50-alone': { title: 'p50 of one transfer at a time ÷ a bare kafkajs request-reply', trial: '1.4–1.7', most: 1.4 },
  'p50-at-1000': { title: 'p50 at 1,000/s ÷ the same', trial: '3.3–6', most: 2.5 },
  'p99-at-1000': { title: 'p99 at 1,000/s', trial: '16–70', unit: 'ms', most: 20 },
  'p99-at-half': { title: 'p99 at half of the maximum', trial: '66–181', unit: 'ms', most: 40 },
  'cpu-saturated': { title: 'CPU µs of all processes per transfer at saturation: direct ÷ bank', trial: '7', least: 8 },
  'cpu-at-500': { title: 'the same at 500/s: bank ÷ direct', trial: '2.0', most: 1.4 },
  'reads-of-transfers': { title: 'balance reads/s ÷ transfers/s', trial: '–', least: 1 },
  'read-p50': { title: 'p50 of a balance read while writes run at half load', trial: '–', unit: 'ms', most: 10 },
  'relay-on-off': { title: 'transfers/s with the relay on ÷ off', trial: '0.88', least: 0.92 },
  'event-p50': { title: 'commit to consumer at half load, p50', trial: '2', unit: 'ms', most: 5 },
  'event-p99': { title: 'commit to consumer at half load, p99', trial: '8', unit: 'ms', most: 50 },
  drain: { title: 'events drained after an outage ÷ events of postings, per second', trial: '6', least: 5 },
  'batch-cpu': {
    title: 'CPU µs of all processes per item of a batch of 100 ÷ per single transfer, 100 under way in both',
    trial: '–',
    most: 0.5,
  },
  'batch-cpu-saturated': { title: 'the same at saturation, single transfers in full transactions', trial: '–' },
  'batch-1000': { title: 'a batch of 1,000 items, the slowest answer', trial: '–', unit: 'ms', most: 2000 },
  'batch-beside': {
    title: 'p99 of single transfers at 200/s beside a batch of 1,000 each second ÷ without',
    trial: '–',
    most: 2,
  },
  growth: { title: 'transfers/s with many accounts and transactions ÷ empty', trial: '0.95', least: 0.95 },
  'growth-p99': { title: 'p99 of the same at half load, grown ÷ empty', trial: '–', most: 1.2 },
  'list-first': { title: 'list of transactions among those, page 1, p99', trial: '–', unit: 'ms', most: 10 },
  'list-deep': { title: 'the same, page 10,000, p99', trial: '–', unit: 'ms', most: 10 },
  'list-account': { title: 'the same by account, p99', trial: '–', unit: 'ms', most: 10 },
  'memory-gateway': { title: 'memory of the gateway at full load', trial: '–', unit: 'MB', most: 150 },
  'memory-ledger': { title: 'memory of the ledger at full load', trial: '–', unit: 'MB', most: 150 },
  'memory-accounts': { title: 'memory of accounts at full load', trial: '–', unit: 'MB', most: 150 },
  idle: { title: 'CPU of the idle bank without the broker, of one core', trial: '3 per process', unit: '%', most: 2 },
  'ledgers-2': { title: 'transfers/s with 2 ledgers ÷ 1', trial: '–' },
  'ledgers-4': { title: 'transfers/s with 4 ledgers ÷ 1', trial: '–' },
  'peers-transfers': { title: 'transfers/s ÷ the best peer over HTTP', trial: '–', least: 8 },
  'peers-deposits': { title: 'deposits/s on one hot account ÷ the best peer over HTTP', trial: '–', least: 15 },
  'peers-bulk': { title: 'transfers/s in batches of 100 ÷ the best peer over HTTP', trial: '–', least: 30 },
  'peers-sql-transfers': { title: "transfers/s ÷ pgledger's SQL functions without HTTP", trial: '–', least: 1 },
  'peers-sql-deposits': { title: "deposits/s on one hot account ÷ pgledger's", trial: '–', least: 1 },
  'peers-reads': { title: 'balance reads/s ÷ the best peer', trial: '–', least: 1 },
  'peers-p50': { title: 'p50 of transfers at 200/s ÷ the best peer', trial: '–', most: 1 },
  'peers-p99': { title: 'p99 of the same ÷ the best peer', trial: '–', most: 1 },
  'peers-first': { title: 'p50 of a list of transactions, page 1 ÷ the best peer', trial: '–', most: 1 },
  'peers-deep': { title: 'the same, the page in the middle ÷ the best peer', trial: '–', most: 1 },
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
