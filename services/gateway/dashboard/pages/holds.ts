import type { FastifyInstance } from 'fastify';
import type { CapturedHold, Hold } from '#libs/contracts/holds.ts';
import { holdStatus } from '#libs/contracts/holds.ts';
import type { Account } from '#libs/contracts/resources.ts';
import { html } from '#libs/service/html.ts';
import { sumText, typedAmount } from '../html/amounts.ts';
import type { CsvColumn } from '../html/csv.ts';
import { dayOf, endOf } from '../html/formats.ts';
import { accepted, addFormPage, enteredIn } from '../html/forms.ts';
import type { Visit } from '../html/frame.ts';
import { addPage } from '../html/frame.ts';
import type { List } from '../html/lists.ts';
import { holderOf, ownedOf } from '../html/owners.ts';
import { amountText, plainMoney } from '../html/show.ts';
import { addPart } from './accounts.ts';
import { nameOf } from './client-views.ts';
import { availableOf, counterpartOf, idOfPosting, refusalText } from './counter-instructions.ts';
import { counterUrl } from './counter-views.ts';
import {
  captureForm,
  holdPage,
  holdsUrl,
  holdTable,
  holdUrl,
  leftOf,
  mostDays,
  placeAction,
  placeForm,
} from './hold-views.ts';
import { addTask } from './tasks.ts';

/** Adds the pages of holds: the list of an account, one hold, placing, capturing, and releasing. */
export function addHolds(app: FastifyInstance, secrets: readonly string[]): void {
  addPart(app, '/holds', { title: 'Holds', scope: 'transactions:read' }, listOf, columns, placeAction);
  addPlacing(app, secrets);
  addPage(app, holdUrl(':hold_id'), { title: 'Hold', scope: 'transactions:read' }, async (visit) => {
    const hold = await holdOf(visit);
    const said = ['placed', 'captured', 'released'].find((name) => visit.query.has(name));
    return {
      title: `Hold of ${amountText(hold.amount, hold.currency)}`,
      content: html`${said !== undefined && html`<p class="notice" role="status">The hold was ${said}.</p>`}${holdPage(hold, await ownedOf(visit, hold.account_id), visit.person)}`,
    };
  });
  addCapture(app, secrets);
  addRelease(app, secrets);
}

const holdOf = async (visit: Visit): Promise<Hold> => (await visit.api.get<Hold>(`/holds/${visit.id}`)).data;

const listOf = ({ id, person }: Visit): List<Hold> => ({
  path: `/accounts/${id}/holds`,
  filters: [{ name: 'status', label: 'Status', options: holdStatus.options }],
  show: (rows, sort) => holdTable(rows, person, sort),
});
const columns: CsvColumn<Hold>[] = [
  'hold_id',
  'created_at',
  'status',
  { title: 'amount', value: (row) => plainMoney(row.amount, row.currency) },
  { title: 'captured_amount', value: (row) => plainMoney(row.captured_amount, row.currency) },
  'currency',
  'expires_at',
  'reference',
  'description',
];

const dayMs = 86_400_000;

function addPlacing(app: FastifyInstance, secrets: readonly string[]): void {
  const page = { title: 'Hold money', scope: 'holds:write' } as const;
  const task = addTask(
    app,
    { name: 'hold', ...page, done: (data) => ({ goTo: `${holdUrl((data as Hold).hold_id)}?placed` }) },
    secrets,
  );
  const url = `${holdsUrl(':account_id')}/new`;
  const ownedIn = (visit: Visit) => ownedOf(visit, visit.id);
  const dayIn = ({ now }: Visit, days: number) => dayOf(now + days * dayMs);
  addFormPage(app, url, page, {
    async draw(visit, entered, wrong) {
      const before = entered.size > 0 ? entered : task.enteredBefore(visit);
      const values = before.size > 0 ? before : new URLSearchParams({ until: dayIn(visit, 7) });
      return placeForm(visit, await ownedIn(visit), values, wrong);
    },
    async take(visit) {
      const { account, owner } = await ownedIn(visit);
      const { account_id, account_number, currency } = account;
      const { until = '', reference, description } = enteredIn(['until', 'reference', 'description'], visit.fields);
      const isDay = /^\d{4}-\d\d-\d\d$/.test(until) && until >= dayIn(visit, 0) && until <= dayIn(visit, mostDays);
      const {
        amount: { amount },
      } = accepted({
        amount: typedAmount(visit.fields.get('amount') ?? '', currency),
        until: isDay ? {} : { wrong: `Choose a day from ${dayIn(visit, 0)} to ${dayIn(visit, mostDays)}.` },
      });
      const texts = { ...(reference && { reference }), ...(description && { description }) };
      const after = sumText(availableOf(account), amount, currency, -1n);
      return task.summarise(visit, {
        path: `/accounts/${account_id}/holds`,
        body: { amount: amount, currency, expires_at: endOf(until), ...texts },
        facts: [
          ['Amount', amountText(amount, currency)],
          ['Customer', owner && nameOf(owner)],
          ['Account', account_number],
          ['Until the end of', until],
          ['Reference', reference],
          ['Description', description],
        ],
        changes: [
          {
            what: `${account_number}: available`,
            before: amountText(availableOf(account), currency),
            after: amountText(after, currency),
          },
        ],
        ...(after.startsWith('-') && { warning: refusalText('insufficient_funds', { from: account }) }),
        button: `Hold ${amountText(amount, currency)}`,
        form: `${holdsUrl(account_id)}/new`,
        entered: { amount: amount, until, ...texts },
      });
    },
  });
}

/** A capture ends at a receipt, as at the counter. */
function receiptOf(data: unknown): string {
  const { transaction, transfer } = data as CapturedHold;
  const posting = transfer ?? transaction;
  return posting === undefined ? '/admin/ui' : `${counterUrl}/receipts/${idOfPosting(posting)}`;
}

function addCapture(app: FastifyInstance, secrets: readonly string[]): void {
  const page = { title: 'Capture a hold', scope: 'holds:write' } as const;
  const task = addTask(app, { name: 'capture', ...page, done: (data) => ({ goTo: receiptOf(data) }) }, secrets);
  const url = `${holdUrl(':hold_id')}/capture`;
  addFormPage(app, url, page, {
    async draw(visit, entered, wrong) {
      const hold = await holdOf(visit);
      if (hold.status !== 'Active') return { goTo: holdUrl(hold.hold_id) };
      const before = entered.size > 0 ? entered : task.enteredBefore(visit);
      const values = before.size > 0 ? before : new URLSearchParams({ amount: leftOf(hold) });
      return captureForm(visit, hold, await ownedOf(visit, hold.account_id), values, wrong);
    },
    async take(visit) {
      const { fields } = visit;
      const hold = await holdOf(visit);
      const { currency, hold_id } = hold;
      const left = leftOf(hold);
      const { to_number, description } = enteredIn(['to_number', 'description'], fields);
      const { account, owner } = await ownedOf(visit, hold.account_id);
      const typed = typedAmount(fields.get('amount') ?? '', currency);
      const isMore = 'amount' in typed && sumText(left, typed.amount, currency, -1n).startsWith('-');
      const valid = accepted({
        amount: isMore ? { wrong: `Only ${amountText(left, currency)} are still held.` } : typed,
        to_number: to_number === undefined ? undefined : await destinationOf(visit, to_number, account),
      });
      const to = valid.to_number;
      const { amount } = valid.amount;
      const rest = sumText(left, amount, currency, -1n);
      const keeps = fields.get('keep') === 'yes' && /[1-9]/.test(rest);
      const money = amountText(amount, currency);
      return task.summarise(visit, {
        path: `/holds/${hold_id}/capture`,
        body: {
          amount: amount,
          final: !keeps,
          ...(to && { to_account_id: to.account.account_id }),
          ...(description && { description }),
        },
        facts: [
          ['Amount', money],
          ['Customer', owner && nameOf(owner)],
          ['From account', account.account_number],
          ['To', to ? toText(to) : 'Cash'],
          ['Remaining afterwards', `${amountText(rest, currency)}, ${keeps ? 'stays held' : 'is released'}`],
          ['Description', description],
        ],
        changes: [
          {
            what: `${account.account_number}: balance`,
            before: amountText(account.balance, currency),
            after: amountText(sumText(account.balance, amount, currency, -1n), currency),
          },
          {
            what: `${account.account_number}: held by this hold`,
            before: amountText(left, currency),
            after: amountText(keeps ? rest : '0', currency),
          },
        ],
        button: to ? `Capture ${money}` : `Pay out ${money}`,
        form: `${holdUrl(hold_id)}/capture`,
        entered: {
          amount: amount,
          ...(fields.get('keep') === 'yes' && { keep: 'yes' }),
          ...(to_number && { to_number }),
          ...(description && { description }),
        },
      });
    },
  });
}

interface Destination {
  account: Account;
  name: string | undefined;
}

const toText = ({ account: { account_number, account_type }, name }: Destination): string =>
  `${account_number}, ${account_type}${name === undefined ? '' : `, ${name}`}`;

/** Returns the destination account, or the reason for which it is refused. */
async function destinationOf(visit: Visit, typed: string, from: Account): Promise<Destination | { wrong: string }> {
  const found = await counterpartOf(visit.api, typed, from);
  if ('wrong' in found) return found;
  const owner = await holderOf(visit, found.account);
  return { ...found, name: owner && nameOf(owner) };
}

/** There is nothing to enter, so the link leads directly to the summary. */
function addRelease(app: FastifyInstance, secrets: readonly string[]): void {
  const page = { title: 'Release a hold', scope: 'holds:write' } as const;
  const task = addTask(
    app,
    { name: 'release', ...page, done: (data) => ({ goTo: `${holdUrl((data as Hold).hold_id)}?released` }) },
    secrets,
  );
  addPage(app, `${holdUrl(':hold_id')}/release`, page, async (visit) => {
    const hold = await holdOf(visit);
    const { account, owner } = await ownedOf(visit, hold.account_id);
    const { hold_id, currency } = hold;
    const left = leftOf(hold);
    if (hold.status !== 'Active') return { goTo: holdUrl(hold_id) };
    return task.summarise(visit, {
      path: `/holds/${hold_id}/release`,
      body: {},
      facts: [
        ['Amount', amountText(left, currency)],
        ['Customer', owner && nameOf(owner)],
        ['Account', account.account_number],
      ],
      changes: [
        {
          what: `${account.account_number}: available`,
          before: amountText(availableOf(account), currency),
          after: amountText(sumText(availableOf(account), left, currency, 1n), currency),
        },
      ],
      button: `Release ${amountText(left, currency)}`,
      form: holdUrl(hold_id),
      entered: {},
    });
  });
}
