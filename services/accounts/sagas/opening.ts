import type { AccountReply } from '#libs/contracts/accounts.ts';
import { approvalRequired, isAboveLimit, isUnapproved, rulesIn } from '#libs/contracts/approvals.ts';
import type { MessageContext } from '#libs/contracts/envelope.ts';
import { type Refusal, refusal } from '#libs/contracts/errors.ts';
import { askedBy } from '#libs/contracts/event-fields.ts';
import { type MessageData, messages } from '#libs/contracts/messages.ts';
import type { Queries } from '#libs/postgres/pool.ts';
import { clientStates } from '../clients/client-store.ts';
import { clientNotFound, refusedFor } from '../clients/clients.ts';
import {
  type Asked,
  begun,
  createEvent,
  type Decided,
  done,
  type Finished,
  type Outcome,
  refused,
} from '../outcome.ts';
import { accountNumber, drawFor } from './account-number.ts';
import { type AccountRow, type ClosedOpening, closeOpenings, insertOpenings, takenBy } from './account-store.ts';

/**
 * The opening saga. open_account inserts the account as opening and sends the ledger a command to open its account with
 * the initial deposit. The ledger's reply makes it open or refused. Until then the account is not visible.
 */
export async function openAccounts(client: Queries, asked: Asked<MessageData<'open_account'>>[]): Promise<Outcome[]> {
  const clients = await clientStates(
    client,
    asked.map(({ data }) => data.client_id),
  );
  const room = await readRoom(client, asked);
  const refusals = asked.map(({ context, data }) => {
    const { client_id } = data;
    const bound = context.bound_client_id;
    if (bound !== undefined && bound !== client_id) return clientNotFound(client_id);
    const found = refusedFor(client_id, clients.get(client_id)) ?? unapproved(context, data);
    if (found !== undefined || bound === undefined) return found;
    const left = room.get(bound) ?? 0;
    room.set(bound, left - 1);
    return left > 0 ? undefined : noRoom;
  });
  const numbers = await insertAll(
    client,
    asked.filter((_, i) => refusals[i] === undefined),
  );
  return asked.map(({ context, data }, i) => {
    const account_number = numbers.get(data.account_id);
    if (account_number === undefined) return refused(refusals[i] ?? clientNotFound(data.client_id));
    if (typeof account_number !== 'string') return refused(account_number);
    const { account_id, client_id, account_type, currency, status, initial_deposit, migrated } = data;
    const account = { account_id, client_id, account_number, account_type, currency, status };
    const payload = { ...account, initial_deposit, migrated };
    return begun({ step_id: account_id, message: 'open_ledger_account', account_id, payload, context, detail: {} });
  });
}

/** Credentials of a client open accounts until it has this many. */
const maxByClient = 20;
const noRoom = refusal(
  'insufficient_scope',
  `the client has ${maxByClient} accounts: credentials bound to it cannot open more, only the bank can`,
);

/** Returns how many accounts credentials bound to these clients may still open. Others of them wait for the commit. */
async function readRoom(client: Queries, asked: Asked<MessageData<'open_account'>>[]): Promise<Map<string, number>> {
  const bound = [...new Set(asked.flatMap(({ context }) => context.bound_client_id ?? []))].sort();
  if (bound.length === 0) return new Map();
  await client.query(
    "select pg_advisory_xact_lock(hashtextextended('openings by ' || id, 0)) from unnest($1::text[]) as id",
    [bound],
  );
  const { rows } = await client.query<{ id: string; room: number }>(
    `select id, $2::int - (select count(*)::int from accounts where client_id = id and state = 'open')
       - (select count(*)::int from accounts where client_id = id and state = 'opening') as room
     from unnest($1::text[]) as id`,
    [bound, maxByClient],
  );
  return new Map(rows.map(({ id, room }) => [id, room]));
}

/** The ledger checks the sum of the person's day as well, but after the account has its number. */
function unapproved(
  context: MessageContext,
  { initial_deposit, currency }: MessageData<'open_account'>,
): Refusal | undefined {
  const rules = isUnapproved(context, 'post_above') ? rulesIn(context) : undefined;
  return rules && isAboveLimit(rules, initial_deposit, currency) ? approvalRequired() : undefined;
}

const numberTaken = (number: string) =>
  refusal('duplicate_account_number', `an account with the number ${number} already exists`);
const nameTaken = refusal('duplicate_external_id', 'another account has this external_id');

const maxDraws = 50;

/**
 * Inserts accounts as opening. Returns their numbers, or their refusals, by id. If a number is in use, the next one is
 * tried, unless the caller supplied it. Throws after too many attempts, also if an account with that id exists.
 */
async function insertAll(
  client: Queries,
  asked: Asked<MessageData<'open_account'>>[],
): Promise<Map<string, string | Refusal>> {
  const numbers = new Map<string, string | Refusal>();
  for (let rest = asked, draws = 0; rest.length > 0; draws++) {
    if (draws === maxDraws) throw new TypeError(`no unused account number after ${maxDraws} attempts`);
    const drawn = rest.map(({ context, data }): AccountRow => {
      const { account_id, client_id, account_type, currency, status } = data;
      const { external_id = null, metadata = null, client_metadata = null } = data;
      const account_number = data.account_number ?? accountNumber(account_type, drawFor(account_id, draws));
      const account = { account_id, client_id, account_number, account_type, currency, status };
      const names = { external_id, metadata, client_metadata };
      return { ...account, ...names, created_at: context.time, updated_at: context.time };
    });
    const inserted = await insertOpenings(client, drawn);
    const others = drawn.filter(({ account_id }) => !inserted.has(account_id));
    const taken = others.length > 0 ? await takenBy(client, others) : undefined;
    rest = rest.filter(({ data: { account_id, account_number: given, external_id } }, i) => {
      if (inserted.has(account_id)) numbers.set(account_id, (drawn[i] as AccountRow).account_number);
      // An import finds its earlier rows by their external_id, so that is named first.
      else if (external_id != null && taken?.external_ids.has(external_id)) numbers.set(account_id, nameTaken);
      else if (given != null && taken?.numbers.has(given)) numbers.set(account_id, numberTaken(given));
      return !numbers.has(account_id);
    });
  }
  return numbers;
}

/**
 * Handles the ledger's reply: the account is open, with an event, or refused. A refusal is stored as the command's
 * outcome.
 */
export async function finishOpenings(client: Queries, finished: Finished[], now: string): Promise<Decided[]> {
  const results = finished.map(({ step, body }) => ({
    step,
    body,
    result: body.ok ? messages.open_ledger_account.result.parse(body.data) : undefined,
  }));
  const closed = results.map(({ step, result }): ClosedOpening => {
    const { status = null, status_version = 0 } = result ?? {};
    return { account_id: step.account_id, state: result ? 'open' : 'refused', status, status_version };
  });
  const accounts = await closeOpenings(client, closed);
  return results.map(({ step, body, result }) => {
    const account = accounts.get(step.account_id);
    if (!account) throw new TypeError(`account ${step.account_id} is not opening`);
    if (!body.ok) return refused(body.refusal);
    const { balance = '', status_version } = result ?? {};
    const full: AccountReply = { ...account, balance, available_balance: balance, status_version };
    const { client_id, account_type, currency, status } = account;
    const event = { account, ...askedBy(step.context) };
    const events = [
      createEvent({ context: step.context, now }, 'corebanking.account.opened.v1', step.account_id, event),
    ];
    return done(full, events, { client_id, account_type, currency, status });
  });
}
