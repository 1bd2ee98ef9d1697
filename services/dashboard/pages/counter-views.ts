import type { Account } from '#libs/contracts/accounts.ts';
import { type Client, clientName } from '#libs/contracts/clients.ts';
import { receiptNumber } from '#libs/contracts/receipts.ts';
import type { SearchHit } from '#libs/contracts/search.ts';
import type { Transaction } from '#libs/contracts/transactions.ts';
import type { Transfer } from '#libs/contracts/transfers.ts';
import { amountText, bankName, isTrial } from '#libs/service/formats.ts';
import { type Html, html } from '#libs/service/html.ts';
import { actorText } from '../html/actors.ts';
import { minorOf, sumText } from '../html/amounts.ts';
import {
  amountField,
  descriptionField,
  type Field,
  referenceField,
  showFields,
  showForm,
  valueDateField,
  type Wrong,
} from '../html/forms.ts';
import type { PageRequest } from '../html/frame.ts';
import type { Person } from '../html/layout.ts';
import type { Owned } from '../html/owners.ts';
import {
  type Column,
  desk,
  facts,
  idLink,
  notice,
  numeric,
  otherValueDate,
  parts,
  pill,
  resourcePage,
  showFullTime,
  showTime,
  table,
  toned,
} from '../html/show.ts';
import { amountInWords } from '../html/words.ts';
import { confirmForm } from './confirmation.ts';
import {
  availableBalance,
  type CounterKind,
  counterKinds,
  hasOther,
  type Instruction,
  isPossible,
  kinds,
  kindsFor,
  moneyDirection,
  refusalText,
  withGroups,
} from './counter-instructions.ts';
import type { MadeBy } from './made-by.ts';
import type { Announced } from './needs-approval.ts';

/** The pages of the counter. */

export const counterUrl = '/admin/ui/counter';
/** Any of these is sufficient for the counter. */
export const counterScopes = ['transactions:write', 'transfers:write'] as const;

/** Links to the counter on the account's page. `isNew`: the account was just opened, and the first link is the next step. */
export function counterActions(account: Account, { scopes }: Person, isNew: boolean): Html {
  const url = `${counterUrl}/${account.account_id}`;
  const link = (kind: CounterKind, i: number) =>
    html`<a role="button"${i > 0 && html` class="secondary"`}${isNew && i === 0 && html` data-next`} href="${url}/${kind}">${kinds[kind].verb}</a> `;
  return html`${kindsFor(account, scopes).map(link)}`;
}

/** `isFound`: a choice of accounts follows, which has the focus. */
export function startForm(q: string, isFound = false): Html {
  return html`<form class="narrow" method="get" action="${counterUrl}">
<label>Customer <input type="search" name="q" value="${q}" required${!isFound && html` autofocus`} maxlength="255" autocomplete="off">
<small>Account number, phone number, e-mail address, or words of a name.</small></label>
<div class="actions"><button>Show</button></div>
</form>
<p><a href="${counterUrl}/batches">Many payments at once, from a file</a></p>`;
}

const customerName: Column<Owned> = {
  title: 'Customer',
  show: ({ owner }) => html`<span class="long">${owner && clientName(owner)}</span>`,
};
const phone: Column<Owned> = { title: 'Phone', show: ({ owner }) => owner?.contact_number ?? '' };
const type: Column<Owned> = { title: 'Type', show: ({ account }) => account.account_type };

/** What can be taken from an account, or is owed on a loan. */
const amountOf = (account: Account): string =>
  account.account_type === 'Loan' ? account.balance : availableBalance(account);
const askedAmount: Column<Owned> = numeric(
  'Amount',
  ({ account }) =>
    html`${amountText(amountOf(account), account.currency)} <span class="quiet">${account.account_type === 'Loan' ? 'owed' : 'available'}</span>`,
);
/** Orders accounts of one currency. */
const largestFirst = (one: Account, other: Account): number =>
  minorOf(amountOf(one), one.currency) < minorOf(amountOf(other), other.currency) ? 1 : -1;

/** Accounts in the order in which customers ask for them. */
const asAskedFor = ({ account: { status, account_type } }: Owned): number =>
  (status === 'Active' ? 0 : 10) + ['Current', 'Checking', 'Savings', 'Loan'].indexOf(account_type);

/**
 * The arrow keys move from account to account (admin.js), starting at the first one. `why`: why accounts are not Active, by
 * their ids.
 */
export function choiceTable(found: readonly Owned[], { scopes }: Person, why: ReadonlyMap<string, string>): Html {
  const rows = found.toSorted((one, other) => asAskedFor(one) - asAskedFor(other));
  const target = (row: Owned) => {
    const { account_id, account_number } = row.account;
    const [kind] = kindsFor(row.account, scopes);
    const url = kind === undefined ? resourcePage(account_id) : `${counterUrl}/${account_id}/${kind}`;
    return html`<a data-hit href="${url}"${row === rows[0] && html` autofocus`}>${account_number}</a>`;
  };
  return table<Owned>(
    'Accounts',
    [
      { title: 'Account', show: (row) => html`<strong>${target(row)}</strong>` },
      customerName,
      phone,
      type,
      {
        title: 'Status',
        show: ({ account: { account_id, status } }) =>
          html`${pill(status)}${why.has(account_id) && html`<br><span class="quiet text">${why.get(account_id)}</span>`}`,
      },
      askedAmount,
    ],
    rows,
    '',
  );
}

/** Customers who have no account yet, each with the next step. */
export const withoutAccount = (clients: readonly Client[], { scopes }: Person): Html =>
  html`<p role="status">${clients.length > 1 ? 'These customers have' : 'This customer has'} no account yet.</p>
${clients.map((client, i) => html`<p><strong>${idLink(client.client_id, clientName(client))}</strong>, ${client.contact_number}</p>${scopes.has('accounts:write') && html`<p class="actions"><a role="button"${i > 0 ? html` class="secondary"` : html` autofocus`} href="/admin/ui/accounts/new?client_id=${client.client_id}">Open an account</a></p>`}`)}`;

/** The customer, the account, and the available balance. */
function customer({ account, owner }: Owned): Html {
  return facts([
    ['Customer', owner && html`<strong class="balance">${idLink(owner.client_id, clientName(owner))}</strong>`],
    ['Account', html`${idLink(account.account_id, account.account_number)}, ${account.account_type}`],
    ['Status', pill(account.status)],
    account.account_type === 'Loan'
      ? ['Still owed', html`<strong class="balance">${amountText(account.balance, account.currency)}</strong>`]
      : [
          'Available',
          html`<strong class="balance">${amountText(availableBalance(account), account.currency)}</strong>`,
        ],
  ]);
}

export interface CounterFormParts {
  kind: CounterKind;
  owned: Owned;
  /** Notes on the account and its client that the person may read. */
  notes: Html;
  /** Other accounts of the same client. */
  siblings: readonly Account[];
  values: URLSearchParams;
  wrong: Wrong;
  /** The accounts of which the person must choose the other one. */
  found?: FoundAccounts | undefined;
  /** Says that the person's till is closed. */
  till: Html;
}

export interface FoundAccounts {
  rows: readonly Owned[];
  /** More customers match than these. */
  isCut: boolean;
}

/** Links to the other forms for this account. Each has the same digit on every account. */
function ways({ account_id }: Account, here: CounterKind, possible: readonly CounterKind[]): Html {
  const link = (kind: CounterKind) => ({
    href: `${counterUrl}/${account_id}/${kind}`,
    text: kinds[kind].title,
    isHere: kind === here,
    digit: counterKinds.indexOf(kind) + 1,
  });
  return html`${possible.length > 0 && parts('Counter', possible.map(link))}`;
}

export function counterForm(visit: PageRequest, form: CounterFormParts): Html {
  const { kind, owned, notes, wrong, till } = form;
  const { account } = owned;
  const possible = kindsFor(account, visit.person.scopes);
  const page = (content: Html) =>
    html`${ways(account, kind, possible)}${desk('The customer', html`${customer(owned)}${notes}`, content)}`;
  if (!possible.includes(kind)) {
    const code = account.status === 'Active' ? 'invalid_account_type' : 'inactive_account';
    const reason = refusalText(code, { from: account });
    return page(html`${notice('warning', reason)}${next('Next customer')}`);
  }
  const action = `${counterUrl}/${account.account_id}/${kind}`;
  const cancel = { cancel: counterUrl, cancelText: 'Leave' };
  return page(
    html`${till}${showForm(visit, { action, wrong, button: 'Continue', key: form.values.get('idempotency_key') ?? undefined, ...cancel }, inputs(form, valueDateField(visit)))}`,
  );
}

function inputs(parts: CounterFormParts, valueDate: Field[]): Html {
  const { kind, owned, siblings, wrong, found } = parts;
  const { account } = owned;
  const likely = siblings.filter((one) => isPossible(kind, account, one));
  const [only] = likely;
  const name = 'other_number';
  const values = new URLSearchParams(parts.values);
  // A repayment is between accounts of one customer, of whom there is usually one loan.
  if (kind === 'repayment' && likely.length === 1 && only && !values.has(name)) values.set(name, only.account_number);
  const own = kind === 'repayment' && likely.length > 1 && !found ? likely.toSorted(largestFirst) : [];
  // The account that was entered is shown where it can be chosen. Money comes from where most of it is.
  const entered = own.find(({ account_number }) => account_number === values.get(name));
  const chosen = entered ?? (account.account_type === 'Loan' && !values.get(name) ? own[0] : undefined);
  if (entered) values.delete(name);
  const label = account.account_type === 'Loan' ? 'From account' : kind === 'repayment' ? 'Loan' : 'To account';
  const other: Field = {
    name,
    label: own.length > 0 ? 'Or another account' : label,
    isRequired: own.length === 0,
    maxLength: 255,
    suggestions: 'siblings',
    hint: 'Account number or its digits, phone number, or words of a name.',
  };
  const [amount, texts] = [amountField(account.currency), descriptionField('Printed on the statement.')];
  if (!hasOther(kind)) return showFields([amount, referenceField, texts, ...valueDate], values, wrong);
  const option = ({ account_number, account_type, currency }: Account) =>
    html`<option value="${account_number}">${account_type}, ${currency}</option>`;
  const rows = own.map((one) => ({ account: one, owner: parts.owned.owner }));
  // Beside a wrong field, which has the focus, none of these has it.
  const hasFocus = Object.keys(wrong.fields ?? {}).length === 0;
  const typed = values.get(name) ?? '';
  return html`${found && choose(found, account, typed, hasFocus)}${rows.length > 0 && accountChoice(label, rows, [type, askedAmount], { typed, chosen, hasFocus })}${showFields([other, amount, texts, ...valueDate], values, wrong)}<datalist id="siblings">${likely.map(option)}</datalist>`;
}

/** The accounts that were found for what was typed, the customer's own first. Another word can still be typed. */
function choose({ rows, isCut }: FoundAccounts, { client_id }: Account, typed: string, hasFocus: boolean): Html {
  const isOther = ({ account }: Owned) => Number(account.client_id !== client_id);
  const sorted = rows.toSorted((one, other) => isOther(one) - isOther(other) || asAskedFor(one) - asAskedFor(other));
  return html`${notice('info', html`<strong>Several accounts match.</strong> Choose one, or enter more of the name.${isCut && ' More customers match than these.'}`)}
${accountChoice('Accounts that match', sorted, [customerName, phone, type], { typed, hasFocus })}`;
}

/**
 * Rows of which one can be chosen instead of what is `typed`: it counts as long as that is not changed. The first row has
 * the focus if none is chosen.
 */
function accountChoice(
  title: string,
  rows: readonly Owned[],
  columns: readonly Column<Owned>[],
  { typed, chosen, hasFocus }: { typed: string; chosen?: Account | undefined; hasFocus: boolean },
): Html {
  const radio = (row: Owned) =>
    html`<label><input type="radio" name="chosen" value="${row.account.account_number}"${row.account === chosen && html` checked`}${hasFocus && !chosen && row === rows[0] && html` autofocus`}> ${row.account.account_number}</label>`;
  return html`<input type="hidden" name="found_for" value="${typed}">${table<Owned>(title, [{ title: 'Account', show: radio }, ...columns], rows, '')}`;
}

export interface SummaryParties {
  own: Owned;
  other: Owned | undefined;
  /** Says that the person's till is closed. */
  till: Html;
}

/** Shows the summary of an instruction before it is confirmed. */
export function summary(
  visit: PageRequest,
  sealed: string,
  instruction: Instruction,
  { own, other, till }: SummaryParties,
  { says, button }: Announced,
): Html {
  const { kind, amount, currency, reference, description, effective_date, account_id } = instruction;
  const { from, to } = moneyDirection(instruction, { account: own.account, other: other?.account });
  // The account that pays; for a cash deposit, the account that is credited.
  const counted = from ?? own.account;
  const after = sumText(availableBalance(counted), amount, currency, from ? -1n : 1n);
  const isShort = after.startsWith('-');
  const owed = to?.account_type === 'Loan' ? sumText(to.balance, amount, currency, -1n) : '';
  const refusal = isShort
    ? refusalText('insufficient_funds', { from: counted })
    : owed.startsWith('-') && refusalText('amount_exceeds_outstanding', { to });
  const side = (title: string, account: Account | undefined) => {
    const owner = account === own.account ? own.owner : other?.owner;
    return html`<div>${facts([
      [
        title,
        account
          ? html`<strong>${account.account_number}</strong>, ${account.account_type}${owner && html`<br><strong>${clientName(owner)}</strong>`}`
          : html`<strong>Cash</strong>`,
      ],
      ['Available now', account === counted && amountText(availableBalance(counted), currency)],
      ['Available after', account === counted && !isShort && html`<strong>${amountText(after, currency)}</strong>`],
      ['Still owed now', owed !== '' && account === to && amountText(account?.balance ?? '', currency)],
      [
        'Still owed after',
        owed !== '' && account === to && !owed.startsWith('-') && html`<strong>${amountText(owed, currency)}</strong>`,
      ],
    ])}</div>`;
  };
  const change = `${counterUrl}/${account_id}/${kind}?${new URLSearchParams({ of: sealed })}`;
  const leave = html`<a${refusal && html` role="button" autofocus`} href="${change}">Change</a>`;
  return html`<article class="movement">${side('From', from)}
${facts([['Amount', html`<strong class="sum">${amountText(amount, currency)}</strong>`]])}
${side('To', to)}</article>
${facts([
  ['Reference', reference],
  ['Description', description],
  ['Value date', effective_date],
])}
${refusal && notice('error', refusal)}
${till}${says}${confirmForm(visit, { action: `${counterUrl}/summary`, sealed, button, leave, isRefused: refusal !== false })}`;
}

export const confirms = {
  deposit: 'Deposit',
  withdrawal: 'Pay out',
  transfer: 'Transfer',
  repayment: 'Repay',
} as const;

/** The contents of a receipt. */
export interface ReceiptParts {
  posting: Transaction | Transfer;
  id: string;
  title: string;
  owner: Client | undefined;
  account: Account | undefined;
  other: Account | undefined;
  /** The owner of the other account. */
  payee: Client | undefined;
  /** The balance after this posting of the account for which the receipt is. */
  balance: string | undefined;
  /** What can be taken now, if that is less than the balance, on the day of the posting, and nothing was posted since. */
  available: string | undefined;
  /** The amount still owed on the same client's loan. */
  owed: string | undefined;
  /** True if the person who sees it asked for the posting. */
  isOwn: boolean;
  /** In which of the person's tills their cash is; undefined if that does not matter, or is not known. */
  till: string | undefined;
  /** Who asked for it and who approved it, for people who may read the audit. */
  maker?: MadeBy | undefined;
}

/** Prints two copies: one for the customer, one for the bank. */
export function receipt(parts: ReceiptParts, person: string): Html {
  return html`${receiptOnce(parts, person, 'Customer’s copy', 'bank')}<div class="copy" aria-hidden="true">${receiptOnce(parts, person, 'Bank’s copy', 'customer')}</div>
<p class="actions"><button type="button" class="secondary" data-print hidden>Print</button>
${next('Next customer')}
${idLink(parts.id, 'To the posting')} ${parts.account && html`<a href="/admin/ui/accounts/${parts.account.account_id}">To the account</a>`}</p>`;
}

function receiptOnce(parts: ReceiptParts, person: string, copy: string, signer: 'bank' | 'customer'): Html {
  const { posting, id, title, owner, account, other, payee, balance, available, owed, isOwn, till, maker } = parts;
  const { amount, currency, description, created_at } = posting;
  const isTransfer = id.startsWith('trf_');
  return html`<article class="receipt"><p class="paper">${bankName()}, ${copy}</p>${isTrial() && html`<p class="paper">Trial: not for real money</p>`}<p class="receipt-title">${title} ${toned('good', 'done', 'Posted')}</p>${facts(
    [
      ['Amount', html`<strong class="sum">${amountText(amount, currency)}</strong>`],
      ['In words', currency !== null && amountInWords(amount, currency)],
      ['Customer', owner && clientName(owner)],
      [isTransfer ? 'From account' : 'Account', account?.account_number],
      ['To account', isTransfer && other && html`${other.account_number}${payee && html`, ${clientName(payee)}`}`],
      ['Balance after', balance !== undefined && html`<strong>${amountText(balance, currency)}</strong>`],
      ['Available now', available !== undefined && html`<strong>${amountText(available, currency)}</strong>`],
      ['Still owed after', owed !== undefined && amountText(owed, currency)],
      ['Reference', 'reference' in posting && posting.reference],
      ['Description', description],
      ['Date', showFullTime(created_at)],
      ['Value date', otherValueDate(posting)],
      ['Till', signer === 'customer' && till],
      ['Teller', isOwn ? person : maker && actorText(maker.actor, maker.names)],
      ['Approved by', maker?.approver !== undefined && actorText(maker.approver, maker.names)],
      ['Printed by', !isOwn && person],
      ['Receipt number', html`<strong class="whole">${receiptNumber(id)}</strong>`],
    ],
  )}<p class="paper signature">Signature of the ${signer}</p></article>`;
}

/** Instead of a summary that was confirmed before: it cannot be posted a second time. */
export const alreadyPosted = ({ id, title, created_at }: SearchHit): Html =>
  html`${notice('info', html`<strong>Already posted at ${showTime(created_at)}</strong>: ${withGroups(title)}. Nothing is posted again. Enter a second, equal slip as a new one.`)}
<p class="actions">${next('Next customer')} <a href="${counterUrl}/receipts/${id}">Receipt</a></p>`;

/** A link that has the focus, so that Enter continues. */
export function next(text: string): Html {
  return html`<a role="button" autofocus href="${counterUrl}">${text}</a>`;
}
