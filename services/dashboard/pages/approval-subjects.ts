import type { Account } from '#libs/contracts/accounts.ts';
import type { Approval } from '#libs/contracts/approvals.ts';
import { type Client, clientName } from '#libs/contracts/clients.ts';
import type { Hold } from '#libs/contracts/holds.ts';
import { fromMinor, isCurrency, toMinor } from '#libs/contracts/money.ts';
import type { Transaction } from '#libs/contracts/transactions.ts';
import { amountText, fullTimeText, transactionTitle } from '#libs/service/formats.ts';
import { type Html, html } from '#libs/service/html.ts';
import { inTurns, known } from '../api.ts';
import type { PageRequest } from '../html/frame.ts';
import { readNamed } from '../html/owners.ts';
import { idLink } from '../html/show.ts';

/** The accounts, customers, and amounts that approvals are about, as far as the person may see them. */

export interface Subjects {
  accounts: ReadonlyMap<string, Account>;
  clients: ReadonlyMap<string, Client>;
  /** The transactions that would be reversed and the holds that would be captured. */
  originals: ReadonlyMap<string, Transaction | Hold>;
}

const idPattern = /\b[a-z]{3}_[0-9a-f]{32}\b/g;
const idParameters = ['account_id', 'from_account_id', 'to_account_id', 'client_id'];

/** Returns the ids in the path of the request and in the fields of its body that name an account or a client. */
function idsOf({ request: { path, body } }: Approval): string[] {
  const named = idParameters.map((name) => body[name]).filter((value) => typeof value === 'string');
  return [...new Set([...(path.match(idPattern) ?? []), ...named])];
}

/** Reads what these approvals are about: the accounts and the clients together, each original by itself. */
export async function readSubjects(visit: PageRequest, rows: readonly Approval[]): Promise<Subjects> {
  const ids = rows.flatMap(idsOf);
  const originals = await readOriginals(visit, ids);
  const parties = [...originals.values()].flatMap((original) => [
    original.account_id,
    'counterparty_account_id' in original ? original.counterparty_account_id : undefined,
  ]);
  return { originals, ...(await readNamed(visit, [...ids, ...parties])) };
}

async function readOriginals({ api, person }: PageRequest, ids: readonly string[]) {
  const found = new Map<string, Transaction | Hold>();
  if (!person.scopes.has('transactions:read')) return found;
  const wanted = [...new Set(ids)].filter((id) => /^(txn|hld)_/.test(id));
  await inTurns(wanted, async (id) => {
    const path = id.startsWith('hld_') ? '/holds' : '/transactions';
    const answer = await known(api.get<Transaction | Hold>(`${path}/${id}`));
    if (answer) found.set(id, answer.data);
  });
  return found;
}

/** Returns the accounts that the approval is about, the one that pays first. */
export function accountsOf(approval: Approval, { accounts, originals }: Subjects): Account[] {
  const ids = idsOf(approval).flatMap((id) => {
    const original = originals.get(id);
    if (original === undefined) return [id];
    const other = 'counterparty_account_id' in original ? original.counterparty_account_id : undefined;
    return [original.account_id, other, id];
  });
  return [...new Set(ids)].flatMap((id) => accounts.get(id ?? '') ?? []);
}

/** Returns the customers whom the approval concerns. */
export function clientsOf(approval: Approval, subjects: Subjects): Client[] {
  const owners = accountsOf(approval, subjects).map(({ client_id }) => client_id);
  const ids = new Set([...owners, ...idsOf(approval)]);
  return [...ids].flatMap((id) => subjects.clients.get(id) ?? []);
}

/** Reports whether the customer brings cash for it: a deposit, also the first one of an account. Pure. */
export const bringsCash = ({ request: { operation, body } }: Pick<Approval, 'request'>): boolean =>
  operation === 'open_account'
    ? body['account_type'] !== 'Loan' && /[1-9]/.test(String(body['initial_deposit'] ?? ''))
    : operation === 'create_transaction' && body['transaction_type'] === 'Deposit';

export interface Money {
  amount: string;
  currency: string | null;
}

/** Returns the amount that would be posted, in the bank's format, or undefined if there is none or it is not known. */
export function amountOf(approval: Approval, subjects: Subjects): string | undefined {
  const money = moneyOf(approval, subjects);
  return money && amountText(money.amount, money.currency);
}

/** Returns the amount that would be posted, or undefined if there is none or it is not known. */
export function moneyOf(approval: Approval, subjects: Subjects): Money | undefined {
  const { body } = approval.request;
  const original = idsOf(approval).flatMap((id) => subjects.originals.get(id) ?? [])[0];
  const given = body['amount'] ?? body['initial_deposit'];
  const amount = given === undefined ? original && leftOf(original) : String(given);
  if (amount === undefined) return undefined;
  const currency = body['currency'] ?? original?.currency ?? accountsOf(approval, subjects)[0]?.currency;
  return { amount, currency: typeof currency === 'string' ? currency : null };
}

/** Says what would be reversed, or returns undefined for another request or if that is not known. */
export function reversedText({ request }: Approval, { originals }: Subjects): string | undefined {
  if (request.operation !== 'reverse_transaction') return undefined;
  const original = originals.get(request.path.match(idPattern)?.[0] ?? '');
  if (original === undefined || !('transaction_type' in original)) return undefined;
  const { amount, currency, created_at, description } = original;
  const text = description === null ? '' : `: ${description}`;
  return `Reversal of the ${transactionTitle(original)} of ${amountText(amount, currency)}, ${fullTimeText(created_at)}${text}`;
}

/** Replaces account ids in a sentence by account numbers, and shortens other ids. */
export function withNumbers(sentence: string, { accounts }: Pick<Subjects, 'accounts'>): string {
  return sentence.replace(
    /\b([a-z]{3}_[0-9a-f]{6})[0-9a-f]{26}\b/g,
    (id, short: string) => accounts.get(id)?.account_number ?? `${short}…`,
  );
}

/** Writes the amounts of a posting in the bank's format. Requests of other kinds may contain texts of people. */
export function withAmounts(text: string, action: unknown): string {
  if (!['post_above', 'reverse', 'backdate'].includes(String(action))) return text;
  return text.replace(
    /([+-]?)(\d+(?:\.\d+)?) ([A-Z]{3})\b/g,
    (written, sign: string, amount: string, currency: string) =>
      isCurrency(currency) ? `${sign.replace('-', '−')}${amountText(amount, currency)}` : written,
  );
}

/** The whole amount of a transaction; of a hold, what was not captured yet. */
function leftOf(original: Transaction | Hold): string {
  if (!('captured_amount' in original)) return original.amount;
  const { amount, captured_amount, currency } = original;
  return fromMinor(BigInt(toMinor(amount, currency)) - BigInt(toMinor(captured_amount, currency)), currency);
}

/** Shows an account by its number, type, and owner, a client by its name, and a transaction by its type, with links. */
export function showSubject(id: string, { accounts, clients, originals }: Subjects): Html {
  const original = originals.get(id);
  if (original && 'transaction_type' in original) return idLink(id, `the ${transactionTitle(original)}`);
  const account = accounts.get(id);
  const owner = clients.get(account?.client_id ?? id);
  const name = owner && html`<strong>${idLink(owner.client_id, clientName(owner))}</strong>`;
  if (account === undefined) return name ?? idLink(id);
  return html`${idLink(id, account.account_number)}, ${account.account_type}${name && html`, ${name}`}`;
}
