import { randomUUID } from 'node:crypto';
import type { FastifyInstance } from 'fastify';
import { z } from 'zod';
import type { Scope } from '#libs/contracts/scopes.ts';
import type { Html } from '#libs/service/html.ts';
import { html } from '#libs/service/html.ts';
import type { ApiProblem } from '../api.ts';
import { ApiRefused } from '../api.ts';
import { jsonNumber } from '../html/amounts.ts';
import { idempotencyKeyOf, waitingFor } from '../html/forms.ts';
import type { Shown, Visit } from '../html/frame.ts';
import { addForm, addPage } from '../html/frame.ts';
import type { Person } from '../html/layout.ts';
import { csrfField } from '../html/layout.ts';
import { facts, table } from '../html/show.ts';
import { createSealedInstructions } from './sealed-instructions.ts';

/**
 * Tasks that staff do outside the counter and that another click cannot undo. Each leads from a
 * form to a summary, and after confirmation to its result. As at the counter, an accepted form
 * redirects to a page, and a refused one is shown again. The idempotency key is created with the
 * form, so that nothing is done twice.
 */

const url = '/admin/ui/summary';

const changeSchema = z.object({ what: z.string(), before: z.string(), after: z.string() });
export type Change = z.infer<typeof changeSchema>;

const instructionSchema = z.object({
  /** The actor who made it; nobody else can confirm it. */
  actor: z.string(),
  /** The request to the API. Amounts are decimal strings. */
  path: z.string(),
  body: z.record(z.string(), z.union([z.string(), z.boolean()])),
  idempotency_key: z.string(),
  /** The lines of the summary. */
  facts: z.array(z.tuple([z.string(), z.string()])),
  changes: z.array(changeSchema),
  warning: z.string().optional(),
  /** The text of the button that confirms it. */
  button: z.string(),
  /** The page of the form and the values entered in it. */
  form: z.string(),
  entered: z.record(z.string(), z.string()),
});
type Instruction = z.infer<typeof instructionSchema>;

/** An instruction, as the page of the form creates it. */
export type Entered = Omit<Instruction, 'actor' | 'idempotency_key'>;

type Said = Html | string | false | undefined;

export interface Task {
  /** Its name in addresses. */
  name: string;
  title: string;
  scope: Scope;
  isDangerous?: boolean;
  /** Returns the page to show after success. */
  done(data: unknown): Shown;
  /** The reason of a refusal, in words for a clerk; undefined for reasons that all tasks share. */
  refusal?(problem: ApiProblem, visit: Visit): Said | Promise<Said>;
}

export interface AddedTask {
  /** Redirects to the summary of the entered values, with the form's idempotency key. */
  summarise(visit: Visit, entered: Entered): Shown;
  /** The values entered before, if the form is opened again to change them. */
  enteredBefore(visit: Visit): URLSearchParams;
}

export function addTask(app: FastifyInstance, task: Task, secrets: readonly string[]): AddedTask {
  const { name, title, scope } = task;
  const sealed = createSealedInstructions(instructionSchema, `task ${name}`, secrets);
  const address = `${url}/${name}`;
  const of = (text: string) => new URLSearchParams({ of: text });
  addPage(app, address, { title, scope }, ({ query, actor, person }) => {
    const text = query.get('of') ?? '';
    const instruction = sealed.open(text, actor);
    return instruction
      ? { title: `${title}: is this right?`, content: summary(person, task, address, text, instruction) }
      : unreadable;
  });
  addPage(app, `${address}/outcome`, { title: 'Not known yet', scope }, ({ query, actor, person }) => {
    const text = query.get('of') ?? '';
    const instruction = sealed.open(text, actor);
    return instruction ? { content: unknownOutcome(person, address, text, instruction) } : unreadable;
  });
  addForm(app, address, { title, scope }, async (visit) => {
    const text = visit.fields.get('of') ?? '';
    const instruction = sealed.open(text, visit.actor);
    if (!instruction) return unreadable;
    return carryOut(visit, task, instruction, {
      unknown: `${address}/outcome?${of(text)}`,
      again: `${instruction.form}?${of(text)}`,
    });
  });
  return {
    summarise: (visit, entered) => {
      const idempotency_key = idempotencyKeyOf(visit) ?? randomUUID();
      return { goTo: `${address}?${of(sealed.seal({ ...entered, actor: visit.actor, idempotency_key }))}` };
    },
    enteredBefore: ({ query, actor }) => new URLSearchParams(sealed.open(query.get('of'), actor)?.entered ?? {}),
  };
}

/** Shown for an instruction that is invalid or belongs to somebody else. */
const unreadable: Shown = {
  status: 404,
  title: 'Not found',
  content: html`<p role="alert">This page belongs to somebody else or has expired. Opening it changed nothing.</p>
<p><a href="/admin/ui" role="button">To the start page</a></p>`,
};

/**
 * Calls the API with the form's idempotency key. If the response is not about this request, the
 * outcome is unknown, because the bank may have accepted an earlier click.
 */
async function carryOut(
  visit: Visit,
  task: Task,
  { path, body, idempotency_key }: Instruction,
  { unknown, again }: { unknown: string; again: string },
): Promise<Shown> {
  try {
    const { amount, ...rest } = body;
    const sent = amount === undefined ? rest : { ...rest, amount: jsonNumber(String(amount)) };
    const { data } = await visit.api.post<{ status?: string }>(path, sent, idempotency_key);
    return waitingFor(data) ?? (data.status === 'Pending' ? { goTo: unknown } : task.done(data));
  } catch (error) {
    if (!(error instanceof ApiRefused) || error.status === 401) throw error;
    if (error.status >= 500 || error.status === 408 || error.status === 429) return { goTo: unknown };
    const { status, problem } = error;
    const said = await task.refusal?.(problem, visit);
    return { status, title: `${task.title}: refused`, content: refused(said || reasons[problem.code], again) };
  }
}

function changeTable(changes: readonly Change[]): Html {
  return table<Change>(
    'What will change',
    [
      { title: 'What', show: ({ what }) => html`<strong>${what}</strong>` },
      { title: 'Now', isNumber: true, show: ({ before }) => before },
      { title: 'Then', isNumber: true, show: ({ after }) => html`<strong>${after}</strong>` },
    ],
    changes,
    '',
  );
}

/** Shows what will be done and what it changes. A form shows it too if it is known before anything is entered. */
export function consequences({ facts: known, changes, warning }: Pick<Entered, 'facts' | 'changes' | 'warning'>): Html {
  return html`${facts(known)}${changes.length > 0 && html`<h2>What will change</h2>${changeTable(changes)}`}
${warning !== undefined && html`<p class="notice wrong" role="alert">${warning}</p>`}`;
}

function summary(person: Person, task: Task, address: string, sealed: string, instruction: Instruction): Html {
  return html`${consequences(instruction)}
<form method="post" action="${address}">${csrfField(person.csrf)}<input type="hidden" name="of" value="${sealed}">
<div class="actions"><button autofocus${task.isDangerous === true && html` class="danger"`}>${instruction.button}</button>
<a href="${instruction.form}?${new URLSearchParams({ of: sealed }).toString()}">Change or cancel</a></div>
</form>`;
}

/** Shown while the outcome is unknown. */
function unknownOutcome(person: Person, address: string, sealed: string, instruction: Instruction): Html {
  return html`<p class="notice" role="alert">The bank has not confirmed yet whether it was done.
<strong>Do not enter it again.</strong> Ask again here: however often you ask, it is done at most once.</p>
${facts([['What', instruction.button], ...instruction.facts])}
<form method="post" action="${address}">${csrfField(person.csrf)}<input type="hidden" name="of" value="${sealed}">
<div class="actions"><button autofocus>Ask again</button> <a href="/admin/ui">To the start page</a></div>
</form>`;
}

/** The meaning of refusals that all tasks share. */
const reasons: Record<string, string> = {
  insufficient_funds: 'There is not enough money in the account.',
  inactive_account: 'An account is frozen or inactive: no money can be moved until it is made active again.',
  invalid_account_type: 'This cannot be done with an account of this type.',
  currency_mismatch: 'The accounts have different currencies.',
  same_account: 'The money would go to the account that it comes from. Choose another account.',
  amount_exceeds_outstanding: 'This is more than is still owed on the loan.',
  balance_limit_exceeded: 'The balance would be larger than the bank allows.',
  account_not_found: 'The account is no longer there.',
  amount_exceeds_hold: 'This is more than is left of the hold.',
  hold_not_active: 'The hold has ended meanwhile, so it reserves nothing any more.',
  not_reversible: 'It cannot be reversed: it moved no money, or is a reversal itself.',
  already_reversed: 'It was already reversed.',
  client_erased: 'The client was erased and can no longer be changed.',
  insufficient_scope: 'Your permissions do not allow this. Ask an administrator if you need it.',
  deadline_exceeded: 'The bank could not do this in time and will not do it later. Enter it again.',
  idempotency_key_reused: 'This form has already been used for something else. Enter it again.',
};

function refused(said: Html | string | undefined, again: string): Html {
  const text = said ?? 'The bank did not accept this. Check what you entered. If the problem remains, tell operations.';
  return html`<div class="notice wrong" role="alert"><strong>It was refused, and nothing was done.</strong> ${text}</div>
<p class="actions"><a href="${again}" role="button" autofocus>Go back</a></p>`;
}
