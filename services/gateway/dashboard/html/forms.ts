import { randomUUID } from 'node:crypto';
import type { Html } from '#libs/service/html.ts';
import { html } from '#libs/service/html.ts';
import { ApiRefused } from '../api.ts';
import type { Shown } from './frame.ts';

/** The parts of forms: an idempotency key, fields with the entered values, and error messages. */

/** Why a form was rejected: a message about the whole form, and messages per field. */
export interface Wrong {
  message?: string | undefined;
  fields?: Record<string, string>;
}

export function problem(wrong: Wrong): Html {
  const isWrong = wrong.message !== undefined || Object.keys(wrong.fields ?? {}).length > 0;
  return html`${isWrong && html`<p class="notice wrong" role="alert">${wrong.message ?? 'Some entries are not valid. See the message at each field.'}</p>`}`;
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
export function once(): Html {
  return html`<input type="hidden" name="idempotency_key" value="${randomUUID()}">`;
}

/** A checkbox that must be ticked to confirm. */
export function confirmation(words: string, wrong: Wrong): Html {
  const { attributes, text } = reason(wrong, 'confirmed');
  return html`<label><input type="checkbox" name="confirmed" value="yes" required${attributes}> ${words}${text}</label>`;
}

/** Returns the error of a form that was sent without the tick. */
export function unconfirmed(fields: URLSearchParams): Wrong | undefined {
  return fields.get('confirmed') === 'yes' ? undefined : { fields: { confirmed: ' Tick this to confirm.' } };
}

export function idempotencyKeyOf(fields: URLSearchParams): string | undefined {
  return fields.get('idempotency_key') ?? undefined;
}

export interface Field {
  name: string;
  label: string;
  hint?: string;
  placeholder?: string;
  isRequired?: boolean;
  type?: 'text' | 'email' | 'tel' | 'date' | 'textarea';
  inputMode?: 'decimal';
  maxLength?: number;
  /** True if the field has the focus when the page opens. */
  isFocused?: boolean;
  /** The id of a datalist with suggestions. */
  suggestions?: string;
  /** The choices of a select: value and text. */
  options?: readonly (readonly [value: string, text: string])[];
}

/** Shows a field with its label, hint, value, and error message. */
export function inputOf(field: Field, values: URLSearchParams, wrong: Wrong): Html {
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
      return html`<select name="${field.name}"${required}${attributes}>${field.options.map(([option, said]) => html`<option value="${option}"${option === value && html` selected`}>${said}</option>`)}</select>`;
    if (field.type === 'textarea')
      return html`<textarea name="${field.name}" rows="3"${length}${required}${attributes}>${value}</textarea>`;
    return html`<input type="${field.type ?? 'text'}" name="${field.name}" value="${value}" placeholder="${field.placeholder}" autocomplete="off"${field.inputMode !== undefined && html` inputmode="${field.inputMode}"`}${list}${length}${required}${focus}${attributes}>`;
  }
}

/** Returns the trimmed values of these fields that are not empty. The API decides what is valid. */
export function enteredIn(names: readonly string[], values: URLSearchParams): Record<string, string> {
  return Object.fromEntries(
    names.map((name) => [name, (values.get(name) ?? '').trim()] as const).filter(([, value]) => value !== ''),
  );
}

/** Returns what `work` shows. If the API rejects the input, shows the form again with the reasons. */
export async function orForm(work: () => Promise<Shown>, form: (wrong: Wrong) => Html | Promise<Html>): Promise<Shown> {
  try {
    return await work();
  } catch (error) {
    const isInput = error instanceof ApiRefused && [400, 403, 404, 409, 410, 422].includes(error.status);
    if (!isInput) throw error;
    const { message, errors = [] } = error.problem;
    const fields = Object.fromEntries(
      errors.map((violation) => [violation.field.split(/[.[]/, 1)[0] ?? '', violation.message]),
    );
    return { status: error.status, content: await form({ message: errors.length > 0 ? undefined : message, fields }) };
  }
}
