import { randomUUID } from 'node:crypto';
import type { FastifyInstance } from 'fastify';
import { bankDay } from '#libs/service/formats.ts';
import { type Html, html } from '#libs/service/html.ts';
import { ApiRefused } from '../api.ts';
import {
  addForm,
  addPage,
  type PageContent,
  type PageOptions,
  type PageRequest,
  type PageResult,
  toPageResult,
} from './frame.ts';
import { csrfField } from './layout.ts';
import { type Choice, notice, showOptions } from './show.ts';

/** The parts of forms: an idempotency key, fields with the entered values, and error messages. */

/** Why a form was rejected: a message about the whole form, and messages per field. */
export interface Wrong {
  message?: string | undefined;
  fields?: Record<string, string>;
}

export function problem({ message, fields = {} }: Wrong): Html {
  const count = Object.keys(fields).length;
  const said =
    count === 1
      ? 'One entry is not valid. See the message at its field.'
      : `${count} entries are not valid. See the message at each field.`;
  return html`${(message !== undefined || count > 0) && notice('error', message ?? said)}`;
}

export function reason({ fields }: Wrong, name: string): { attributes: Html | false; text: Html | false } {
  const message = fields?.[name];
  if (message === undefined) return { attributes: false, text: false };
  return {
    attributes: html` aria-invalid="true" aria-describedby="${name}-reason"`,
    text: html`<small id="${name}-reason">${message}</small>`,
  };
}

/** The idempotency key of the form, created when it is rendered: sending the form twice has one effect. */
export function once(key: string = randomUUID()): Html {
  return html`<input type="hidden" name="idempotency_key" value="${key}">`;
}

/** A checkbox that must be ticked to confirm. */
export function confirmation(words: string, wrong: Wrong, isFocused = false): Html {
  const { attributes, text } = reason(wrong, 'confirmed');
  return html`<label><input type="checkbox" name="confirmed" value="yes" required${isFocused && html` autofocus`}${attributes}> ${words}${text}</label>`;
}

/** Throws if the form was sent without the tick. */
export function checkConfirmed({ fields }: PageRequest): void {
  if (fields.get('confirmed') !== 'yes') throw new WrongInput({ confirmed: ' Tick this to confirm.' });
}

export function enteredIdempotencyKey({ fields }: Pick<PageRequest, 'fields'>): string | undefined {
  return fields.get('idempotency_key') ?? undefined;
}

export interface Field {
  name: string;
  label: string;
  hint?: string;
  placeholder?: string;
  isRequired?: boolean;
  type?: 'text' | 'tel' | 'date' | 'textarea';
  inputMode?: 'decimal' | 'email';
  maxLength?: number;
  /** The latest day. */
  max?: string;
  /** True if the field has the focus when the page opens. */
  isFocused?: boolean;
  /** The id of a datalist with suggestions. */
  suggestions?: string;
  /** The choices of a select: value and text. */
  options?: readonly Choice[];
}

/** Shows a field with its label, hint, value, and error message. */
export function showField(field: Field, values: URLSearchParams, wrong: Wrong): Html {
  const message = wrong.fields?.[field.name];
  // Names the field by its label.
  const said =
    message?.startsWith(`${field.name} `) === true ? `${field.label}${message.slice(field.name.length)}` : message;
  const { attributes, text } = reason(said === undefined ? {} : { fields: { [field.name]: said } }, field.name);
  const value = values.get(field.name);
  const focus = field.isFocused === true && html` autofocus`;
  const list = field.suggestions !== undefined && html` list="${field.suggestions}"`;
  const required = field.isRequired === true && html` required`;
  const length = field.maxLength !== undefined && html` maxlength="${field.maxLength}"`;
  return html`<label>${field.label} ${control()}${field.hint !== undefined && said === undefined && html`<small>${field.hint}</small>`}${text}</label>`;

  function control(): Html {
    if (field.options)
      return html`<select name="${field.name}"${required}${attributes}>${showOptions(field.options, value)}</select>`;
    if (field.type === 'textarea')
      return html`<textarea name="${field.name}" rows="3"${length}${required}${attributes}>${value}</textarea>`;
    return html`<input type="${field.type ?? 'text'}" name="${field.name}" value="${value}" placeholder="${field.placeholder}" autocomplete="off"${field.inputMode !== undefined && html` inputmode="${field.inputMode}"`}${list}${length}${field.max !== undefined && html` max="${field.max}"`}${required}${focus}${attributes}>`;
  }
}

/** Shows these fields, with the focus on the first invalid one, otherwise on the first that must still be filled in. */
export function showFields(fields: readonly Field[], values: URLSearchParams, wrong: Wrong): Html {
  const first =
    fields.find(({ name }) => wrong.fields?.[name] !== undefined) ??
    fields.find(({ name, isRequired }) => isRequired === true && !values.get(name)) ??
    fields[0];
  return html`${fields.map((field) => showField({ ...field, isFocused: field === first }, values, wrong))}`;
}

/** The fields of every form about money. */
export const amountField = (currency: string, hint = 'For example 1500, 1,500 or 1 500,50.'): Field => ({
  name: 'amount',
  label: `Amount in ${currency}`,
  isRequired: true,
  inputMode: 'decimal',
  maxLength: 40,
  hint,
});
export const referenceField: Field = {
  name: 'reference',
  label: 'Reference',
  maxLength: 100,
  hint: 'Your slip or voucher number, if there is one.',
};
export const descriptionField = (hint: string): Field => ({
  name: 'description',
  label: 'Description',
  maxLength: 255,
  hint,
});

/** The value date of a posting, for people who may give another day than the current one. */
export const valueDateField = ({ person, now }: PageRequest): Field[] =>
  person.scopes.has('transactions:backdate')
    ? [
        {
          name: 'effective_date',
          label: 'Value date',
          type: 'date',
          max: bankDay(now),
          hint: 'Empty: today. An earlier day may need a second person.',
        },
      ]
    : [];

/** Returns the trimmed values of these fields that are not empty. The API decides what is valid. */
export function enteredIn(names: readonly string[], values: URLSearchParams): Record<string, string> {
  return Object.fromEntries(
    names.map((name) => [name, (values.get(name) ?? '').trim()] as const).filter(([, value]) => value !== ''),
  );
}

/** If the request must be approved first, returns a redirect to the page of its approval. */
export function waitingFor(data: unknown): PageResult | undefined {
  const { approval_id } = Object(data) as { approval_id?: unknown };
  return typeof approval_id === 'string' ? { redirectTo: `/admin/ui/approvals/${approval_id}?asked` } : undefined;
}

export interface FormParts {
  /** Where it is sent; by default the address of the page. */
  action?: string;
  wrong: Wrong;
  button: string;
  cancel: string;
  /** `Cancel` by default. */
  cancelText?: string;
  isDangerous?: boolean;
  /** Its idempotency key, if it is not a new one. */
  key?: string | undefined;
}

/** A form with its idempotency key, errors, and buttons. */
export function showForm(
  { person, path }: PageRequest,
  { action = path, wrong, button, cancel, cancelText = 'Cancel', isDangerous, key }: FormParts,
  content: Html,
): Html {
  return html`<form class="narrow" method="post" action="${action}">${csrfField(person.csrf)}${once(key)}${problem(wrong)}
${content}
<div class="actions"><button${isDangerous === true && html` class="danger"`}>${button}</button> <a href="${cancel}">${cancelText}</a></div>
</form>`;
}

/** Thrown for input that is not sent to the API. */
export class WrongInput extends Error {
  override name = 'WrongInput';
  readonly fields: Record<string, string>;

  constructor(fields: Record<string, string>) {
    super('the input is not valid');
    this.fields = fields;
  }
}

type Valid<T> = { [Name in keyof T]: Exclude<T[Name], { wrong: string }> };

/** Returns the values if all are valid; otherwise throws WrongInput with every reason. */
export function accepted<T extends Record<string, object | undefined>>(values: T): Valid<T> {
  const wrong = Object.entries(values).flatMap(([name, value]) =>
    value && 'wrong' in value ? [[name, String(value.wrong)] as const] : [],
  );
  if (wrong.length > 0) throw new WrongInput(Object.fromEntries(wrong));
  return values as Valid<T>;
}

export interface Form {
  /** Shows the form. `values`: the entered ones, or none when it is opened. */
  draw(visit: PageRequest, values: URLSearchParams, wrong: Wrong): PageContent | Promise<PageContent>;
  /** Carries out what was entered. Throws WrongInput, or passes on a refusal of the API. */
  take(visit: PageRequest): PageContent | Promise<PageContent>;
}

/** Adds a page with a form. `scope`: the one that is required to send it, if the page itself requires another. */
export function addFormPage(
  app: FastifyInstance,
  url: string,
  page: PageOptions,
  form: Form,
  scope: PageOptions['scope'] = page.scope,
): void {
  addPage(app, url, page, (visit) => form.draw(visit, visit.fields, {}));
  addForm(app, url, { ...page, scope }, (visit) => takeForm(visit, form));
}

/** Carries out what was entered. If it is rejected, shows the form again with the reasons. */
async function takeForm(visit: PageRequest, { draw, take }: Form): Promise<PageContent> {
  try {
    return await take(visit);
  } catch (error) {
    const { status, wrong } = toRejection(error);
    const shown = toPageResult(await draw(visit, visit.fields, wrong));
    if (error instanceof WrongInput) visit.logRefused();
    return 'redirectTo' in shown ? shown : { ...shown, status };
  }
}

function toRejection(error: unknown): { status: number; wrong: Wrong } {
  if (error instanceof WrongInput) return { status: 400, wrong: { fields: error.fields } };
  const isInput = error instanceof ApiRefused && [400, 403, 404, 409, 410, 422].includes(error.status);
  if (!isInput) throw error;
  const { message, errors = [] } = error.problem;
  const fields = Object.fromEntries(
    errors.map((violation) => [violation.field.split(/[.[]/, 1)[0] ?? '', violation.message]),
  );
  return { status: error.status, wrong: { message: errors.length > 0 ? undefined : message, fields } };
}
