import { randomUUID } from 'node:crypto';
import type { FastifyInstance } from 'fastify';
import { z } from 'zod';
import { limitNames } from '#libs/contracts/limits.ts';
import type { Scope } from '#libs/contracts/scopes.ts';
import { amountText } from '#libs/service/formats.ts';
import { type Html, html } from '#libs/service/html.ts';
import type { ApiProblem } from '../api.ts';
import { jsonNumber } from '../html/amounts.ts';
import { enteredIdempotencyKey } from '../html/forms.ts';
import type { PageRequest, PageResult } from '../html/frame.ts';
import { changeTable, type Fact, facts, notice } from '../html/show.ts';
import { addConfirmation, confirmForm } from './confirmation.ts';
import { refusalText } from './counter-instructions.ts';
import { announce, askedSchema } from './needs-approval.ts';

/** Tasks that staff do outside the counter and that another click cannot undo. */

const url = '/admin/ui/summary';

const changeSchema = z.object({ what: z.string(), before: z.string(), after: z.string() });
export type Change = z.infer<typeof changeSchema>;

export function amountChange(what: string, before: string, after: string, currency: string): Change {
  return { what, before: amountText(before, currency), after: amountText(after, currency) };
}

const instructionSchema = z.object({
  /** The actor who made it; nobody else can confirm it. */
  actor: z.string(),
  /** The request to the API. Amounts are decimal strings. */
  method: z.enum(['post', 'put', 'patch']).optional(),
  path: z.string(),
  body: z.record(z.string(), z.union([z.string(), z.boolean(), z.null()])),
  if_match: z.string().optional(),
  idempotency_key: z.string(),
  /** The lines of the summary. */
  facts: z.array(z.tuple([z.string(), z.string()])),
  changes: z.array(changeSchema),
  warning: z.string().optional(),
  /** What may need an approval. */
  asked: askedSchema.optional(),
  /** The text of the button that confirms it. */
  button: z.string(),
  /** The page of the form and the values entered in it. */
  form: z.string(),
  entered: z.record(z.string(), z.string()),
});
type Instruction = z.infer<typeof instructionSchema>;

/** An instruction, as the page of the form creates it. */
export interface Entered extends Omit<Instruction, 'actor' | 'idempotency_key' | 'facts'> {
  facts: readonly Fact<string>[];
}

type Said = Html | string | false | undefined;

export interface Task {
  /** Its name in addresses. */
  name: string;
  title: string;
  scope: Scope;
  isDangerous?: boolean;
  /** Returns the page to show after success. */
  done(data: unknown): PageResult;
  /** Returns what the summary says before the button. */
  warn?(visit: PageRequest): Promise<Html>;
  /** The reason of a refusal, in words for a clerk; undefined for reasons that all tasks share. */
  refusal?(problem: ApiProblem, visit: PageRequest): Said | Promise<Said>;
}

export function addTask(app: FastifyInstance, task: Task, secrets: readonly string[]) {
  const { name, title, scope } = task;
  const toStart = html`<a href="/admin/ui">To the home page</a>`;
  const address = `${url}/${name}`;
  const again = (instruction: Instruction, sealed: string) =>
    `${instruction.form}?${new URLSearchParams({ of: sealed }).toString()}`;
  const added = addConfirmation<Instruction>(
    app,
    {
      address,
      page: { title, scope },
      schema: instructionSchema,
      purpose: `task ${name}`,
      home: html`<p><a href="/admin/ui" role="button">To the home page</a></p>`,
      leave: toStart,
      caution: 'Do not enter it again.',
      listFacts: (instruction) => [['What', instruction.button], ...instruction.facts],
      async summary(visit, instruction, sealed) {
        const { says, button } = await announce(visit, instruction.asked, instruction.button);
        const leave = html`<a href="${again(instruction, sealed)}">Change</a>`;
        return {
          title: `${title}: is this right?`,
          content: html`<article class="narrow">${consequences(instruction)}</article>${await task.warn?.(visit)}${says}
${confirmForm(visit, { action: address, sealed, button, leave, isDangerous: task.isDangerous })}`,
        };
      },
      toRequest: ({ method, path, body, if_match }) => ({ method, path, body: withNumbers(body), ifMatch: if_match }),
      done: (data) => task.done(data),
      async refused(visit, instruction, { status, problem }, sealed) {
        const said = (await task.refusal?.(problem, visit)) || (reasons[problem.code] ?? refusalText(problem.code, {}));
        return { status, title: `${title}: refused`, content: refused(said, again(instruction, sealed)) };
      },
    },
    secrets,
  );
  return {
    /** Redirects to the summary of the entered values, with the form's idempotency key. */
    summarise(visit: PageRequest, entered: Entered): PageResult {
      const facts = entered.facts.flatMap(([name, value]): [string, string][] => (value ? [[name, value]] : []));
      const idempotency_key = enteredIdempotencyKey(visit) ?? randomUUID();
      return added.summarise({ ...entered, facts, actor: visit.actor, idempotency_key });
    },
    /** Returns the values to show in the form: those just sent, or those sent before if it is opened again to change them. */
    getValues: ({ query, actor }: PageRequest, sent: URLSearchParams): URLSearchParams =>
      sent.size > 0 ? sent : new URLSearchParams(added.open(query.get('of'), actor)?.entered ?? {}),
  };
}

const amounts: readonly string[] = ['amount', 'initial_deposit', ...limitNames];

const withNumbers = (body: Instruction['body']): object =>
  Object.fromEntries(
    Object.entries(body).map(([name, value]) => [name, amounts.includes(name) ? jsonNumber(String(value)) : value]),
  );

/** Shows what will be done and what it changes. A form shows it too if it is known before anything is entered. */
export function consequences({ facts: known, changes, warning }: Pick<Entered, 'facts' | 'changes' | 'warning'>): Html {
  const rows = changes.map((change) => ({ ...change, what: html`<strong>${change.what}</strong>` }));
  const shown = changeTable('What will change', ['Now', 'Then'], rows);
  return html`${facts(known)}${changes.length > 0 && html`<h2>What will change</h2>${shown}`}
${warning !== undefined && notice('warning', warning)}`;
}

/** The meaning of refusals that all tasks share, where it differs from the counter. */
const reasons: Record<string, string> = {
  inactive_account: 'An account is frozen or inactive: no money can be moved until it is active again.',
  invalid_account_type: 'This cannot be done with an account of this type.',
  currency_mismatch: 'The accounts have different currencies.',
  amount_exceeds_outstanding: 'This is more than is still owed on the loan.',
  account_not_found: 'The account is no longer there.',
  hold_not_active: 'The hold has ended meanwhile, so it reserves nothing any more.',
  not_reversible: 'It cannot be reversed: it moved no money, or is itself a reversal.',
  already_reversed: 'It was already reversed.',
  client_erased: 'The client was erased and can no longer be changed.',
  idempotency_key_reused: 'This form has already been used for something else. Enter it again.',
};

function refused(said: Html | string, again: string): Html {
  return html`${notice('error', html`<strong>It was refused, and nothing was done.</strong> ${said}`)}
<p class="actions"><a href="${again}" role="button" autofocus>Go back</a></p>`;
}
