import { randomInt } from 'node:crypto';
import type { ReplyBody } from '#libs/contracts/envelope.ts';
import { messages } from '#libs/contracts/messages.ts';
import type { MessageData } from '#libs/contracts/messages.ts';
import type { Account } from '#libs/contracts/resources.ts';
import { accountNumber, numbersPerPrefix } from './account-number.ts';
import { clientNotFound } from './clients.ts';
import { done, eventOf, refused } from './outcome.ts';
import type { Outcome, Step, Work } from './outcome.ts';
import { clientExists, closeOpening, insertOpening } from './store.ts';
import type { NewAccount } from './store.ts';

/**
 * The opening saga. open_account leaves the account as opening and asks the ledger to open its side, with the initial
 * deposit; the ledger's reply makes it open or refused. Until then the account is shown to nobody.
 */
export async function openAccount(work: Work, data: MessageData<'open_account'>): Promise<Outcome> {
  const { client, context } = work;
  const { account_id, client_id, account_type, currency, initial_deposit, status } = data;
  const bound = context.bound_client_id;
  const allowed = bound === undefined || bound === client_id;
  if (!allowed || !(await clientExists(client, client_id))) return refused(clientNotFound(client_id));
  const account_number = await drawNumber(work, { account_id, client_id, account_type, currency, status, created_at: context.time });
  const payload = { account_id, client_id, account_number, account_type, currency, status, initial_deposit };
  return { kind: 'begun', step: { step_id: account_id, message: 'open_ledger_account', account_id, payload, context, detail: {} } };
}

const maxDraws = 50;

/** Inserts the account under a number that nobody has; draws again where one is taken. */
async function drawNumber(work: Work, account: NewAccount): Promise<string> {
  for (let i = 0; i < maxDraws; i++) {
    const number = accountNumber(account.account_type, randomInt(numbersPerPrefix));
    if (await insertOpening(work.client, account, number)) return number;
  }
  throw new Error(`no free account number in ${maxDraws} draws`);
}

/** The ledger has answered: open, with an event, or refused for good, which is kept as the command's outcome. */
export async function finishOpening(work: Work, step: Step, body: ReplyBody): Promise<Outcome> {
  if (!body.ok) {
    await closeOpening(work.client, step.account_id, 'refused');
    return refused(body.refusal, true);
  }
  const { status, status_version, balance } = messages.open_ledger_account.result.parse(body.data);
  const account = await closeOpening(work.client, step.account_id, 'open', status, status_version);
  const full: Account = { ...account, balance };
  return done(full, [eventOf(work, 'corebanking.account.opened.v1', step.account_id, { account })]);
}
