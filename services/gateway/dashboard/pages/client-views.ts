import type { Client } from '#libs/contracts/resources.ts';
import { html } from '#libs/service/html.ts';
import type { Html } from '#libs/service/html.ts';
import type { ClientType } from './clients.ts';
import { inputOf, once, problem } from '../html/forms.ts';
import type { Field, Wrong } from '../html/forms.ts';
import { csrfField } from '../html/layout.ts';
import type { Person } from '../html/layout.ts';
import type { Sorting } from '../html/lists.ts';
import { facts, idLink, table, timeOf } from '../html/show.ts';

/** The client pages. */

const url = '/admin/ui/clients';

export function nameOf(client: Client): string {
  return client.client_type === 'Corporate' ? client.company_name : `${client.first_name} ${client.last_name}`;
}

export function clientTable(rows: readonly Client[], sort: Sorting): Html {
  return table<Client>('Clients', [
    { title: 'Name', show: (row) => html`<strong>${idLink(row.client_id, nameOf(row))}</strong>` },
    { title: 'Type', show: (row) => row.client_type },
    { title: 'Phone', show: (row) => row.contact_number },
    { title: 'E-mail', show: (row) => html`<span class="long">${row.email}</span>` },
    { title: 'Since', sort, show: (row) => timeOf(row.created_at) },
  ], rows, 'No client fits.');
}

export function clientFacts(client: Client, { scopes }: Person): Html {
  const own = client.client_type === 'Corporate'
    ? [['Company', client.company_name], ['Registration number', client.registration_number]] as const
    : [['First name', client.first_name], ['Last name', client.last_name]] as const;
  const ussd = client.client_type === 'Retail' && ([['USSD phone', client.ussd_phone_number], ['USSD', client.ussd_status]] as const);
  return html`${facts([['Id', html`<code>${client.client_id}</code>`], ['Type', client.client_type], ...own, ['E-mail', client.email], ['Phone', client.contact_number], ['Address', client.address], ...(ussd || []), ['Client since', html`${timeOf(client.created_at)} UTC`], ['Last changed', html`${timeOf(client.updated_at)} UTC`]])}
${scopes.has('clients:write') && html`<p><a role="button" class="secondary" href="${url}/${client.client_id}/contact">Change contact</a></p>`}`;
}

const contactFields: readonly Field[] = [
  { name: 'email', label: 'E-mail', type: 'email', isRequired: true, maxLength: 254 },
  { name: 'contact_number', label: 'Phone', type: 'tel', isRequired: true, placeholder: '+254700000001', hint: 'With its country code.' },
  { name: 'address', label: 'Address', type: 'textarea', maxLength: 500 },
];
const ussdFields: readonly Field[] = [
  { name: 'ussd_phone_number', label: 'USSD phone', type: 'tel', placeholder: '+254700000001', hint: 'No two clients have the same one.' },
  { name: 'ussd_status', label: 'USSD', options: [['inactive', 'inactive'], ['active', 'active']] },
];
const openingFields: Record<ClientType, readonly Field[]> = {
  Retail: [{ name: 'first_name', label: 'First name', isRequired: true, maxLength: 100 }, { name: 'last_name', label: 'Last name', isRequired: true, maxLength: 100 }, ...contactFields, ...ussdFields],
  Corporate: [{ name: 'company_name', label: 'Company', isRequired: true, maxLength: 200 }, { name: 'registration_number', label: 'Registration number', isRequired: true, maxLength: 64 }, ...contactFields],
};

export function clientForm(person: Person, type: ClientType, values: URLSearchParams, wrong: Wrong): Html {
  return html`<form class="narrow" method="post" action="${url}/new">${csrfField(person.csrf)}${once()}<input type="hidden" name="client_type" value="${type}">
${problem(wrong)}
${openingFields[type].map((field) => inputOf(field, values, wrong))}
<div class="actions"><button>Open the client</button> <a href="${url}">Cancel</a></div>
</form>`;
}

/** What of a client can be changed, as a form holds it. */
export function contactOf(client: Client): URLSearchParams {
  const { email, contact_number, address } = client;
  const ussd: Record<string, string> = client.client_type === 'Retail' ? { ussd_phone_number: client.ussd_phone_number ?? '', ussd_status: client.ussd_status } : {};
  return new URLSearchParams({ email, contact_number, address: address ?? '', ...ussd });
}

/** `was`: what the person was shown first, by which changes are told. */
export function contactForm(person: Person, client: Client, values: URLSearchParams, was: URLSearchParams, wrong: Wrong): Html {
  const fields = client.client_type === 'Retail' ? [...contactFields, ...ussdFields] : contactFields;
  return html`<form class="narrow" method="post" action="${url}/${client.client_id}/contact">${csrfField(person.csrf)}
${fields.map(({ name }) => html`<input type="hidden" name="was_${name}" value="${was.get(name)}">`)}
${problem(wrong)}
<p>${idLink(client.client_id, nameOf(client))}</p>
${fields.map((field) => inputOf(field, values, wrong))}
<div class="actions"><button>Save</button> <a href="${url}/${client.client_id}">Cancel</a></div>
</form>`;
}
