import type { Account, AccountMaster, AccountReply, LedgerAccount } from '#libs/contracts/accounts.ts';
import { bucketForKey, bucketOfId, isId, kindFromField } from '#libs/contracts/ids.ts';
import type { Position } from '#libs/contracts/message-fields.ts';
import type { MessageData, MessageName, MessageResult } from '#libs/contracts/messages.ts';
import type { HomeCountry } from '#libs/contracts/phones.ts';
import { isScan, isSum } from '#libs/contracts/searches.ts';
import { commandPartition, commandPartitions } from '#libs/contracts/topics.ts';
import { Refused, refuse } from '../http/errors.ts';
import { knownForm, numberNotFound, pathId } from '../http/unknown-ids.ts';
import type { Origin } from '../messages/encode.ts';
import type { ConsumerLag } from '../observe/consumer-lag.ts';
import type { GatewayMetrics } from '../observe/gateway-metrics.ts';
import type { History } from '../observe/history.ts';
import type { ConcurrencyLimit } from '../overload/concurrency-limit.ts';
import { isNotFound, requireData, unreadable } from './answer.ts';
import type { Forwarder, Outcome, QueuePosition } from './forward.ts';

/** Reads, each consisting of one or two queries. They return data or throw a Refused. */

export interface ReadDependencies {
  forwarder: Forwarder;
  consumerLag: ConsumerLag;
  /** The most expensive reads of the ledger. */
  scans: ConcurrencyLimit;
  sums: ConcurrencyLimit;
  metrics: Pick<GatewayMetrics, 'recent'>;
  history: Pick<History, 'read'>;
  /** The country of phone numbers without country code; undefined: they are refused. */
  homeCountry?: HomeCountry | undefined;
}

export interface ReadInput {
  params: Record<string, string>;
  query: Record<string, unknown>;
  /** The position in the cursor. */
  after: Position | undefined;
  origin: Origin;
  /** True for a HEAD request. */
  isHead: boolean;
}

export interface Page {
  items: unknown[];
  next?: Position;
  /** For a search: false if the page ended because the scan limit was reached. */
  complete?: boolean | undefined;
}

/** A resource of which a part is paged. */
export interface Document {
  item: unknown;
  next?: Position;
}

/** Returns the ids in the path. Throws the 404 of the resource if one is malformed. */
function pathIds(params: Record<string, string>): Record<string, string> {
  for (const name in params) {
    const kind = kindFromField(name);
    if (kind) knownForm(kind, params[name]);
  }
  return params;
}

/** Reports whether a filter contains a malformed id. It matches nothing, so no query is sent. */
function findsNothing(query: Record<string, unknown>): boolean {
  return Object.entries(query).some(([name, value]) => {
    const kind = kindFromField(name);
    return kind !== undefined && typeof value === 'string' && !isId(kind, value);
  });
}

/** Sends a query with these parameters. A scan is refused if the caller has too many. */
async function ask(
  name: MessageName,
  data: Record<string, unknown>,
  key: string,
  origin: Origin,
  { forwarder, scans, sums }: ReadDependencies,
): Promise<unknown> {
  const { actor, boundClientId } = origin.caller;
  const send = async () => requireData(await forwarder.query(name, data as MessageData<MessageName>, key, origin));
  if (!isScan(name, data, boundClientId)) return send();
  return (isSum(name) ? sums : scans).run(actor, send);
}

/** A read that is a single query with the ids of the path and the parameters. */
export async function readOne(
  name: MessageName,
  { params, query, origin }: ReadInput,
  deps: ReadDependencies,
): Promise<unknown> {
  const data = { ...query, ...pathIds(params) };
  const [id = name] = Object.values(params);
  return isById(name)
    ? requireData(await queryById(name, data, id, origin, deps.forwarder))
    : ask(name, data, id, origin, deps);
}

export async function readPage(name: MessageName, input: ReadInput, deps: ReadDependencies): Promise<Page> {
  const { params, query, after, origin } = input;
  if (query['actor'] !== undefined && origin.caller.boundClientId !== undefined)
    throw refuse('insufficient_scope', 'credentials bound to one client cannot filter by actor');
  if (findsNothing(query)) return { items: [] };
  const { cursor: _cursor, ...filters } = query;
  const data = { ...filters, ...pathIds(params), after };
  return (await ask(name, data, Object.values(params)[0] ?? origin.requestId, origin, deps)) as Page;
}

/** Combines master data from accounts with balance and status from the ledger, queried concurrently. */
export async function readAccount(
  { params, origin }: ReadInput,
  { forwarder }: ReadDependencies,
): Promise<AccountReply> {
  const account_id = pathId('account_id', params);
  const [master, balances] = await Promise.all([
    queryById('get_account', { account_id }, account_id, origin, forwarder),
    forwarder.query('get_ledger_accounts', { account_ids: [account_id] }, account_id, origin),
  ]);
  const found = requireData(master);
  const ledger = requireData(balances);
  const [account] = withBalances([found], ledger);
  return { ...(account as Account), status_version: ledger[0]?.status_version };
}

/**
 * accounts selects the page, and one query to the ledger returns all its balances: at the same time if the ids are known,
 * otherwise, or if an account was opened meanwhile, after it.
 */
export async function readAccounts(input: ReadInput, deps: ReadDependencies): Promise<Page> {
  const readBalances = async (account_ids: string[]) => {
    const [key = ''] = account_ids;
    return requireData(await deps.forwarder.query('get_ledger_accounts', { account_ids }, key, input.origin));
  };
  const { account_ids } = input.query;
  const named = typeof account_ids === 'string' ? account_ids.split(',') : undefined;
  const early = named && readBalances(named).catch(() => undefined);
  const page = (await readPage('list_accounts', input, deps)) as MessageResult<'list_accounts'>;
  if (page.items.length === 0) return page;
  const ids = page.items.map(({ account_id }) => account_id);
  const balances = (await early) ?? [];
  const known = new Set(balances.map(({ account_id }) => account_id));
  const isAll = ids.every((id) => known.has(id));
  return { ...page, items: withBalances(page.items, isAll ? balances : await readBalances(ids)) };
}

/** A balance is never omitted: if one is missing, the whole list is a 503 (contract: accounts-12). */
function withBalances(accounts: AccountMaster[], balances: LedgerAccount[]): Account[] {
  const byId = new Map(balances.map((balance) => [balance.account_id, balance]));
  return accounts.map((account) => {
    const known = byId.get(account.account_id);
    if (!known) throw new Refused(unreadable);
    return { ...account, status: known.status, balance: known.balance, available_balance: known.available_balance };
  });
}

/** Every failure to fetch the balance is a 500 with this message; errors of the caller keep their own status. */
export async function readBalance({ params, origin }: ReadInput, { forwarder }: ReadDependencies): Promise<unknown> {
  const account_number = params['accountNumber'] ?? '';
  if (!/^[\x21-\x7e]{1,64}$/.test(account_number)) throw numberNotFound(account_number);
  const outcome = await forwarder.query('get_balance_by_number', { account_number }, account_number, origin);
  if (outcome.kind === 'done') return outcome.data;
  throw isNotFound(outcome)
    ? numberNotFound(account_number)
    : refuse('internal_error', 'An error occurred while fetching the balance');
}

/**
 * The queries for what a command creates, by the id that the gateway gave it, with the topics on which the command may
 * still be waiting. A transaction or transfer may be an item of a batch.
 */
const createdOn = {
  get_transaction: ['ledger.commands', 'ledger.batches'],
  get_transfer: ['ledger.commands', 'ledger.batches'],
  get_batch: ['ledger.batches'],
  get_hold: ['ledger.commands'],
  get_till: ['ledger.commands'],
  get_client: ['accounts.commands'],
  get_account: ['accounts.commands'],
  get_api_key: ['accounts.commands'],
  get_approval: ['accounts.commands'],
  get_webhook: ['webhooks.commands'],
} as const satisfies { [N in MessageName]?: readonly QueuePosition['topic'][] };

type ById = keyof typeof createdOn;

const isById = (name: MessageName): name is ById => Object.hasOwn(createdOn, name);

/**
 * Queries what has this id. If its service does not know it, the query is repeated behind the commands of its bucket,
 * where its command may still be waiting. A dead-lettered command leaves a record. An id that a gateway has given to a
 * caller is therefore never reported as unknown while its command may be executed, on any gateway.
 */
export async function queryById<N extends ById>(
  name: N,
  data: object,
  id: string,
  origin: Origin,
  forwarder: Forwarder,
): Promise<Outcome<MessageResult<N>>> {
  const outcome = await forwarder.query(name, data as MessageData<N>, id, origin);
  // Also if its command was decided: that may have happened after the service had looked for what it made.
  return isNotFound(outcome) ? queryAfterPendingCommands(name, data, id, origin, forwarder) : outcome;
}

/** The kinds of postings that a transfer may have made, which may be waiting in another partition than its id says. */
const ofTransfers: readonly MessageName[] = ['get_transaction', 'get_transfer'];

/** Returns where the command that creates something with this id may be waiting: where it usually is, and where else. */
function placesOf(name: ById, id: string): [QueuePosition[], QueuePosition[]] {
  const usual = createdOn[name].map((topic) => {
    // The other services' commands that create something have its id as their key.
    return { topic, bucket: topic.startsWith('ledger.') ? bucketOfId(id) : bucketForKey(id) };
  });
  if (!ofTransfers.includes(name)) return [usual, []];
  const all = Array.from({ length: commandPartitions }, (_, bucket) => ({ topic: 'ledger.commands' as const, bucket }));
  return [usual, all.filter(({ bucket }) => bucket !== commandPartition(bucketOfId(id)))];
}

/**
 * Queries behind the commands of the bucket, then of all others if a transfer may have been routed by its destination
 * (hot-accounts.ts). Returns an outcome other than "not found" if there is one, or if the command may still be on its way to
 * the broker.
 */
export async function queryAfterPendingCommands<N extends ById>(
  name: N,
  data: object,
  id: string,
  origin: Origin,
  forwarder: Forwarder,
): Promise<Outcome<MessageResult<N>>> {
  const askBehind = (places: QueuePosition[]) =>
    Promise.all(places.map((place) => forwarder.query(name, data as MessageData<N>, id, origin, place)));
  const [usual, others] = placesOf(name, id);
  const outcomes = await askBehind(usual);
  if (outcomes.every(isNotFound)) outcomes.push(...(await askBehind(others)));
  const [unknown] = outcomes as [Outcome<MessageResult<N>>];
  const known = outcomes.find((one) => !isNotFound(one));
  if (known) return known;
  const isUnseen = unknown.kind === 'refused' && unknown.unseen === true;
  return isUnseen && forwarder.mayArrive(id) ? { kind: 'refused', refusal: unreadable, replayed: false } : unknown;
}
