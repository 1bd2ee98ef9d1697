import type { FastifyInstance } from 'fastify';
import type { z } from 'zod';
import { type Html, html } from '#libs/service/html.ts';
import { ApiRefused } from '../api.ts';
import { waitingFor } from '../html/forms.ts';
import {
  addForm,
  addPage,
  type PageContent,
  type PageOptions,
  type PageRequest,
  type PageResult,
} from '../html/frame.ts';
import { csrfField } from '../html/layout.ts';
import { type Fact, facts, notice } from '../html/show.ts';
import { createSealer } from '../session/seal.ts';

/**
 * Instructions that staff confirm on a page of its own before they are executed. An accepted form redirects to the
 * summary, and a confirmed summary to the result. The idempotency key is created with the form, so that nothing is
 * done twice.
 */

interface Sealable {
  /** The actor who made it; nobody else can confirm it. */
  actor: string;
  /** Created with the form, so that confirming it several times has one effect. */
  idempotency_key: string;
}

/**
 * Instructions are passed between pages in the URL, so that each page can be reloaded. They are sealed, so that
 * the confirmed instruction is the one that was shown, and nobody can forge a link with an instruction.
 */
export function createSealed<T extends Sealable>(schema: z.ZodType<T>, purpose: string, secrets: readonly string[]) {
  const sealer = createSealer(secrets, purpose);
  return {
    seal: (instruction: T): string => sealer.seal(JSON.stringify(instruction)),
    /** Returns undefined if the text was not sealed by a gateway of this bank for this purpose and this person. */
    open(sealed: string | null, actor: string): T | undefined {
      const text = sealer.open(sealed ?? '');
      const instruction = text === undefined ? undefined : schema.parse(JSON.parse(text));
      return instruction?.actor === actor ? instruction : undefined;
    },
  };
}

export interface ConfirmForm {
  action: string;
  sealed: string;
  button: string;
  leave: Html;
  /** Further fields, above the button. */
  fields?: Html | undefined;
  isDangerous?: boolean | undefined;
  /** It is known that the bank would refuse it: `leave` is the next step, and has the focus. */
  isRefused?: boolean | undefined;
}

/** The button that confirms an instruction. It has the focus, unless the bank would refuse it. */
export function confirmForm(
  { person }: PageRequest,
  { action, sealed, button, leave, fields, isDangerous, isRefused }: ConfirmForm,
): Html {
  return html`<form method="post" action="${action}">${csrfField(person.csrf)}<input type="hidden" name="of" value="${sealed}">${fields}
<div class="actions">${
    isRefused === true
      ? html`${leave} <button class="secondary">${button}</button>`
      : html`<button autofocus${isDangerous === true && html` class="danger"`}>${button}</button> ${leave}`
  }</div>
</form>`;
}

/** True if the response is not about the request, because the bank may have accepted an earlier click. */
export const isUnknown = ({ status }: ApiRefused): boolean => status >= 500 || status === 408 || status === 429;

type Method = 'post' | 'put' | 'patch';

export interface Confirmation<T> {
  /** The address of its summary. */
  address: string;
  page: PageOptions;
  schema: z.ZodType<T>;
  purpose: string;
  /** The link on a page that cannot be opened, and the one beside the question for the outcome. */
  home: Html;
  leave: Html;
  /** What not to do while the outcome is unknown. */
  caution: string;
  listFacts(instruction: T): readonly Fact[];
  summary(visit: PageRequest, instruction: T, sealed: string): PageResult | Promise<PageResult>;
  /** A POST has the idempotency key of the instruction. */
  toRequest(instruction: T): { method?: Method | undefined; path: string; body: object; ifMatch?: string | undefined };
  /** `isReplayed`: it had been done before, so that nothing was done now. */
  done(data: unknown, visit: PageRequest, isReplayed: boolean): PageResult;
  refused(visit: PageRequest, instruction: T, error: ApiRefused, sealed: string): PageResult | Promise<PageResult>;
}

/** Adds the summary, the confirmation, and the page for an unknown outcome. */
export function addConfirmation<T extends Sealable>(
  app: FastifyInstance,
  confirmation: Confirmation<T>,
  secrets: readonly string[],
) {
  const { address, page, home, leave } = confirmation;
  const { seal, open } = createSealed(confirmation.schema, confirmation.purpose, secrets);
  const of = (sealed: string) => new URLSearchParams({ of: sealed });
  const unreadable: PageResult = {
    status: 404,
    title: 'Not found',
    content: html`<p role="alert">This page belongs to somebody else or has expired. Opening it changed nothing.</p>
${home}`,
  };
  const withOne =
    (show: (visit: PageRequest, instruction: T, sealed: string) => PageContent | Promise<PageContent>) =>
    (visit: PageRequest): PageContent | Promise<PageContent> => {
      const sealed = visit.query.get('of') ?? visit.fields.get('of') ?? '';
      const instruction = open(sealed, visit.actor);
      return instruction ? show(visit, instruction, sealed) : unreadable;
    };
  // Only a POST has a key by which the bank knows an approval that it has asked for already.
  const askAgain = ({ method = 'post' }: { method?: Method | undefined }) =>
    method === 'post'
      ? html`Ask again here: however often you ask, it is done at most once.`
      : html`Look at <a href="/admin/ui/approvals/mine">Asked by me</a> first: if a second person must approve it, and it is not there, ask again here.`;
  const unknown = (visit: PageRequest, instruction: T, sealed: string) =>
    html`${notice(
      'warning',
      html`The bank has not confirmed yet whether it was done.
<strong>${confirmation.caution}</strong> ${askAgain(confirmation.toRequest(instruction))}`,
      true,
    )}
${facts(confirmation.listFacts(instruction))}
${confirmForm(visit, { action: address, sealed, button: 'Ask again', leave })}`;
  const call = ({ api }: PageRequest, instruction: T) => {
    const { method = 'post', path, body, ifMatch } = confirmation.toRequest(instruction);
    if (method === 'put') return api.put<{ status?: string }>(path, body);
    if (method === 'patch') return api.patch<{ status?: string }>(path, body, ifMatch);
    return api.post<{ status?: string }>(path, body, instruction.idempotency_key);
  };
  const carryOut = async (visit: PageRequest, instruction: T, sealed: string) => {
    const notKnown = { redirectTo: `${address}/outcome?${of(sealed)}` };
    try {
      const { data, replayed } = await call(visit, instruction);
      return (
        waitingFor(data) ?? (data.status === 'Pending' ? notKnown : confirmation.done(data, visit, replayed === true))
      );
    } catch (error) {
      if (!(error instanceof ApiRefused) || error.status === 401) throw error;
      return isUnknown(error) ? notKnown : confirmation.refused(visit, instruction, error, sealed);
    }
  };
  addPage(app, address, page, withOne(confirmation.summary));
  addPage(app, `${address}/outcome`, { ...page, title: 'Not known yet' }, withOne(unknown));
  addForm(app, address, page, withOne(carryOut));
  return {
    summarise: (instruction: T): PageResult => ({ redirectTo: `${address}?${of(seal(instruction))}` }),
    open,
  };
}
