import { type Client, clientName } from '#libs/contracts/clients.ts';
import { type Html, html } from '#libs/service/html.ts';
import { type Field, showField, showForm, type Wrong } from '../html/forms.ts';
import type { PageRequest } from '../html/frame.ts';
import type { Person } from '../html/layout.ts';
import type { Sorting } from '../html/lists.ts';
import {
  emptyState,
  facts,
  idLink,
  idText,
  notice,
  ownNames,
  showDay,
  showFullTime,
  table,
  technical,
} from '../html/show.ts';

/** The client pages. */

const url = '/admin/ui/clients';

/** The address in its lines. */
export const showAddress = ({ address }: Client): Html | null =>
  address === null ? null : html`<span class="lines">${address}</span>`;

/** An address that is too long for its line is broken before its @. */
export const showEmail = ({ email }: Pick<Client, 'email'>): Html => {
  const at = email.lastIndexOf('@');
  return html`${email.slice(0, at)}<wbr>${email.slice(at)}`;
};

export function clientTable(rows: readonly Client[], sort: Sorting): Html {
  return table<Client>(
    'Clients',
    [
      { title: 'Name', show: (row) => html`<strong class="name">${idLink(row.client_id, clientName(row))}</strong>` },
      { title: 'Phone', show: (row) => row.contact_number },
      { title: 'E-mail', show: (row) => html`<span class="text">${showEmail(row)}</span>` },
      { title: 'Type', show: (row) => row.client_type },
      { title: 'Since', sort, isMinor: true, show: (row) => showDay(row.created_at) },
    ],
    rows,
    emptyState('No client matches. Enter fewer words of the name.', { href: url, text: 'Clear the filters' }),
  );
}

/** What kind of client it is. */
export const clientLine = ({ client_type, created_at }: Client): Html =>
  html`<p class="under">${client_type} <span>client since ${showDay(created_at)}</span></p>`;

export function clientFacts(client: Client, { scopes }: Person): Html {
  const isRetail = client.client_type === 'Retail';
  return html`${facts([
    ['Registration number', !isRetail && client.registration_number],
    ['Phone', client.contact_number],
    ['E-mail', showEmail(client)],
    ['Address', showAddress(client)],
    ['USSD phone', isRetail && client.ussd_phone_number],
    ['USSD', isRetail && client.ussd_status],
  ])}
${client.erased_at === undefined && scopes.has('clients:write') && html`<p><a role="button" class="secondary" href="${url}/${client.client_id}/contact">Correct names or contact</a></p>`}${technical(
  [
    ['Id', idText(client.client_id)],
    ...ownNames(client),
    ['Client since', showFullTime(client.created_at)],
    ['Last changed', showFullTime(client.updated_at)],
  ],
)}`;
}

const contactFields: readonly Field[] = [
  // A browser refuses an address beyond ASCII in an input of the type email.
  { name: 'email', label: 'E-mail', inputMode: 'email', isRequired: true, maxLength: 254 },
  {
    name: 'contact_number',
    label: 'Phone',
    type: 'tel',
    isRequired: true,
    placeholder: '+254700000001',
    hint: 'With its country code.',
  },
  { name: 'address', label: 'Address', type: 'textarea', maxLength: 500 },
];
const ussdFields: readonly Field[] = [
  {
    name: 'ussd_phone_number',
    label: 'USSD phone',
    type: 'tel',
    placeholder: '+254700000001',
    hint: 'The mobile number with which the client banks by short codes such as *384#. It belongs to one client.',
  },
  { name: 'ussd_status', label: 'USSD', options: ['inactive', 'active'] },
];
export type ClientType = Client['client_type'];
const openingFields: Record<ClientType, readonly Field[]> = {
  Retail: [
    { name: 'first_name', label: 'First name', isRequired: true, maxLength: 100 },
    { name: 'last_name', label: 'Last name', isRequired: true, maxLength: 100 },
    ...contactFields,
    ...ussdFields,
  ],
  Corporate: [
    { name: 'company_name', label: 'Company', isRequired: true, maxLength: 200 },
    { name: 'registration_number', label: 'Registration number', isRequired: true, maxLength: 64 },
    ...contactFields,
  ],
};

export const openingFieldNames = (type: ClientType): string[] => openingFields[type].map(({ name }) => name);

/** An existing client, and what this client has in common with the new one. */
export interface Duplicate {
  client_id: string;
  name: string;
  same: readonly string[];
  /** Undefined if the person may not read clients. */
  client: Client | undefined;
}

export function clientForm(
  visit: PageRequest,
  type: ClientType,
  values: URLSearchParams,
  wrong: Wrong,
  duplicates: readonly Duplicate[] = [],
): Html {
  const kind = html`<input type="hidden" name="client_type" value="${type}"><input type="hidden" name="made_at" value="${new Date(visit.now).toISOString()}">`;
  const fields = html`${openingFields[type].map((field) => showField(field, values, wrong))}`;
  if (duplicates.length === 0)
    return showForm(visit, { wrong, button: 'Create the client', cancel: url }, html`${kind}${fields}`);
  const button = 'It is somebody else: create the client';
  return showForm(
    visit,
    { wrong, button, cancel: url },
    html`${kind}${warning(duplicates)}<details><summary>What you entered</summary>${fields}</details>`,
  );
}

/** The first of them has the focus, so that Enter creates nobody. */
function warning(duplicates: readonly Duplicate[]): Html {
  const ids = duplicates.map(({ client_id }) => client_id).join(',');
  const link = (one: Duplicate) =>
    html`<strong><a href="${url}/${one.client_id}"${one === duplicates[0] && html` autofocus`}>${one.name}</a></strong>`;
  return html`${notice('warning', 'This client may already exist. Nothing has been created yet. Is it one of these?', true)}
<input type="hidden" name="others" value="${ids}">${table<Duplicate>(
    'Clients that may be the same',
    [
      { title: 'Client', show: link },
      { title: 'The same', show: ({ same }) => same.join(', ') },
      { title: 'Phone', show: ({ client }) => client?.contact_number ?? '' },
      { title: 'E-mail', show: ({ client }) => html`<span class="text">${client?.email ?? ''}</span>` },
      { title: 'Since', show: ({ client }) => (client ? showDay(client.created_at) : '') },
    ],
    duplicates,
    '',
  )}`;
}

/** The fields of a client that a form can correct. */
export function correctableFields(client: Client): URLSearchParams {
  const known = client as unknown as Record<string, string | null>;
  return new URLSearchParams(
    openingFields[client.client_type].map(({ name }): [string, string] => [name, known[name] ?? '']),
  );
}

/** A field that somebody else has changed since the form was opened. */
export interface Meanwhile {
  label: string;
  was: string;
  now: string;
  /** The value that the person has entered; undefined if unchanged. */
  yours: string | undefined;
}

export function meanwhileIn(client: Client, was: URLSearchParams, entered: URLSearchParams): Meanwhile[] {
  const now = correctableFields(client);
  return openingFields[client.client_type].flatMap(({ name, label }) => {
    const [before, after, yours] = [was.get(name) ?? '', now.get(name) ?? '', entered.get(name)?.trim() ?? ''];
    return before === after ? [] : [{ label, was: before, now: after, yours: yours === before ? undefined : yours }];
  });
}

/** The values that the form changes, before and after. */
export function changesInWords(client: Client, was: URLSearchParams, entered: URLSearchParams) {
  return openingFields[client.client_type].flatMap(({ name, label }) => {
    const [before, after] = [was.get(name) ?? '', entered.get(name)?.trim() ?? ''];
    return before === after ? [] : [{ what: label, before: before || '–', after: after || '–' }];
  });
}

export interface CorrectionParts {
  client: Client;
  /** The version that the form shows. */
  etag: string;
  values: URLSearchParams;
  /** The values shown first, from which changes are determined. */
  was: URLSearchParams;
  wrong: Wrong;
  /** The changes that somebody else has saved meanwhile. */
  meanwhile?: readonly Meanwhile[];
}

export function correctionForm(
  visit: PageRequest,
  { client, etag, values, was, wrong, meanwhile }: CorrectionParts,
): Html {
  const fields = openingFields[client.client_type];
  const content = html`<input type="hidden" name="etag" value="${etag}">${fields.map(({ name }) => html`<input type="hidden" name="was_${name}" value="${was.get(name)}">`)}
${meanwhile && bothVersions(meanwhile)}
<p>${idLink(client.client_id, clientName(client))}</p>
${fields.map((field) => showField(field, values, wrong))}`;
  return showForm(visit, { wrong, button: 'Save', cancel: `${url}/${client.client_id}` }, content);
}

function bothVersions(meanwhile: readonly Meanwhile[]): Html {
  return html`${notice('warning', html`<strong>Somebody else has changed this client since you opened the form.</strong> Your changes are not saved yet. The form contains their changes and yours: check it, then save.`, true)}
${table<Meanwhile>(
  'Changed meanwhile',
  [
    { title: 'Field', show: ({ label }) => html`<strong>${label}</strong>` },
    { title: 'The version that you opened', show: ({ was }) => html`<span class="long">${was || '–'}</span>` },
    {
      title: 'Their version, which is the current one',
      show: ({ now }) => html`<span class="long">${now || '–'}</span>`,
    },
    {
      title: 'Yours',
      show: ({ yours }) => html`<span class="long">${yours === undefined ? 'not changed' : yours || '–'}</span>`,
    },
  ],
  meanwhile,
  'The change concerns data that this form does not show.',
)}`;
}
