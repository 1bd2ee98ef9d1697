import { randomInt } from 'node:crypto';
import { messages } from '#libs/contracts/messages.ts';
import type { MessageData } from '#libs/contracts/messages.ts';
import type { Account } from '#libs/contracts/resources.ts';
import type { Queries } from '#libs/postgres/pool.ts';
import { accountNumber, numbersPerPrefix } from './account-number.ts';
import { clientNotFound } from '../clients/clients.ts';
import { begun, done, eventOf, refused } from '../outcome.ts';
import type { Asked, Finished, Outcome } from '../outcome.ts';
import { existingClients } from '../clients/client-store.ts';
import { closeOpenings, insertOpenings } from './account-store.ts';
import type { ClosedOpening, NewAccount } from './account-store.ts';

/**
 * The opening saga. open_account leaves the account as opening and asks the ledger to open its side, with the initial
 * deposit; the ledger's reply makes it open or refused. Until then the account is shown to nobody.
 */
export async function openAccounts(client: Queries, asked: Asked<MessageData<'open_account'>>[]): Promise<Outcome[]> {
  const clients = await existingClients(client, asked.map(({ data }) => data.client_id));
  const mayOpen = ({ context, data }: Asked<MessageData<'open_account'>>) =>
    clients.has(data.client_id) && (context.bound_client_id === undefined || context.bound_client_id === data.client_id);
  const numbers = await drawNumbers(client, asked.filter(mayOpen));
  return asked.map(({ context, data }) => {
    const account_number = numbers.get(data.account_id);
    if (account_number === undefined) return refused(clientNotFound(data.client_id));
    const { account_id, client_id, account_type, currency, status, initial_deposit } = data;
    const payload = { account_id, client_id, account_number, account_type, currency, status, initial_deposit };
    return begun({ step_id: account_id, message: 'open_ledger_account', account_id, payload, context, detail: {} });
  });
}

const maxDraws = 50;

/** Inserts the accounts, each under a number that nobody has; draws again where one is taken. Returns the numbers by id. */
async function drawNumbers(client: Queries, asked: Asked<MessageData<'open_account'>>[]): Promise<Map<string, string>> {
  const numbers = new Map<string, string>();
  for (let rest = asked, draws = 0; rest.length > 0; draws++) {
    if (draws === maxDraws) throw new Error(`no free account number in ${maxDraws} draws`);
    const drawn: NewAccount[] = rest.map(({ context, data }) => {
      const { account_id, client_id, account_type, currency, status } = data;
      return { account_id, client_id, account_number: accountNumber(account_type, randomInt(numbersPerPrefix)), account_type, currency, status, created_at: context.time };
    });
    const inserted = await insertOpenings(client, drawn);
    for (const { account_id, account_number } of drawn) if (inserted.has(account_id)) numbers.set(account_id, account_number);
    rest = rest.filter(({ data }) => !inserted.has(data.account_id));
  }
  return numbers;
}

/** The ledger has answered: open, with an event, or refused for good, which is kept as the command's outcome. */
export async function finishOpenings(client: Queries, finished: Finished[], now: string): Promise<Outcome[]> {
  const results = finished.map(({ step, body }) => ({ step, body, result: body.ok ? messages.open_ledger_account.result.parse(body.data) : undefined }));
  const closed = results.map(({ step, result }): ClosedOpening => {
    const { status = null, status_version = 0 } = result ?? {};
    return { account_id: step.account_id, state: result ? 'open' : 'refused', status, status_version };
  });
  const accounts = await closeOpenings(client, closed);
  return results.map(({ step, body, result }) => {
    const account = accounts.get(step.account_id);
    if (!account) throw new TypeError(`account ${step.account_id} is not opening`);
    if (!body.ok) return refused(body.refusal);
    const full: Account = { ...account, balance: result?.balance ?? '' };
    const { client_id, account_type, currency, status } = account;
    return done(full, [eventOf({ context: step.context, now }, 'corebanking.account.opened.v1', step.account_id, { account })], { client_id, account_type, currency, status });
  });
}
