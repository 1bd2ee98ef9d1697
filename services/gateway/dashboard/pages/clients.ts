import type { FastifyInstance } from 'fastify';
import type { Account, Client } from '#libs/contracts/resources.ts';
import { html } from '#libs/service/html.ts';
import { accountTable } from './account-views.ts';
import { clientFacts, clientForm, clientTable, contactForm, contactOf, nameOf } from './client-views.ts';
import { csvOf } from '../html/csv.ts';
import type { CsvColumn } from '../html/csv.ts';
import { enteredIn, idempotencyKeyOf, orForm } from '../html/forms.ts';
import { addDownload, addForm, addPage } from '../html/frame.ts';
import type { FrameOptions, Visit } from '../html/frame.ts';
import { keptFilters, parametersOf, showList } from '../html/lists.ts';
import type { List } from '../html/lists.ts';
import { pager } from '../html/show.ts';

const url = '/admin/ui/clients';
const api = '/clients';

const list: List<Client> = {
  url, path: api, hasCsv: true, show: clientTable,
  filters: [{ name: 'client_type', label: 'Type', options: ['Retail', 'Corporate'] }, { name: 'ussd_phone', label: 'USSD phone', hint: '+254700000001' }],
};

const columns: CsvColumn<Client>[] = [
  { title: 'client_id', value: (row) => row.client_id }, { title: 'client_type', value: (row) => row.client_type }, { title: 'name', value: nameOf },
  { title: 'registration_number', value: (row) => (row.client_type === 'Corporate' ? row.registration_number : null) },
  { title: 'email', value: (row) => row.email }, { title: 'contact_number', value: (row) => row.contact_number }, { title: 'address', value: (row) => row.address },
  { title: 'ussd_phone_number', value: (row) => (row.client_type === 'Retail' ? row.ussd_phone_number : null) }, { title: 'created_at', value: (row) => row.created_at },
];

/** Clients: list, open, details with accounts, change of contact fields. */
export function addClients(app: FastifyInstance, options: Pick<FrameOptions, 'origin'>): void {
  addPage(app, url, { title: 'Clients', scope: 'clients:read' }, async (visit) => {
    const { status = 200, content } = await showList(visit, list);
    return { status, content: html`${visit.person.scopes.has('clients:write') && html`<p class="actions"><a role="button" href="${url}/new">Open a Retail client</a> <a role="button" class="secondary" href="${url}/new?client_type=Corporate">Open a Corporate client</a></p>`}${content}<p class="quiet">Times are UTC.</p>` };
  });
  addDownload(app, `${url}.csv`, { title: 'Clients', scope: 'clients:read' }, (visit) => csvOf(visit.api, { path: api, parameters: parametersOf(list, keptFilters(list, visit.query)), columns }));
  addOpening(app, options);
  addPage(app, `${url}/:client_id`, { title: 'Client', scope: 'clients:read' }, async (visit) => {
    const { person, query } = visit;
    const { data: client } = await visit.api.get<Client>(pathOf(visit));
    return { title: nameOf(client), content: html`${query.has('saved') && html`<p class="notice" role="status">It is saved.</p>`}${clientFacts(client, person)}${await accountsOf(visit, client)}` };
  });
  addContactChange(app, options);
}

const pathOf = ({ params }: Visit) => `${api}/${encodeURIComponent(params['client_id'] ?? '')}`;

async function accountsOf({ api: bank, person, query }: Visit, { client_id }: Client) {
  if (!person.scopes.has('accounts:read')) return html``;
  const parameters = new URLSearchParams({ client_id, limit: '50' });
  const cursor = query.get('cursor');
  if (cursor !== null) parameters.set('cursor', cursor);
  const { data, next } = await bank.get<Account[]>(`/accounts?${parameters}`);
  return html`<h2>Accounts</h2>${person.scopes.has('accounts:write') && html`<p><a role="button" href="/admin/ui/accounts/new?client_id=${client_id}">Open an account</a></p>`}
${accountTable(data)}${pager(`${url}/${client_id}`, new URLSearchParams(cursor === null ? {} : { cursor }), next)}`;
}

const names = { Retail: ['first_name', 'last_name', 'email', 'contact_number', 'address', 'ussd_phone_number', 'ussd_status'], Corporate: ['company_name', 'registration_number', 'email', 'contact_number', 'address'] } as const;
export type ClientType = keyof typeof names;

function addOpening(app: FastifyInstance, options: Pick<FrameOptions, 'origin'>): void {
  const page = { title: 'Open a client', scope: 'clients:write' } as const;
  const typeIn = (values: URLSearchParams): ClientType => (values.get('client_type') === 'Corporate' ? 'Corporate' : 'Retail');
  addPage(app, `${url}/new`, page, ({ person, query }) => ({ title: `Open a ${typeIn(query)} client`, content: clientForm(person, typeIn(query), new URLSearchParams(), {}) }));
  addForm(app, `${url}/new`, page, ({ api: bank, person, fields }) => {
    const client_type = typeIn(fields);
    return orForm(
      async () => ({ goTo: `${url}/${(await bank.post<Client>(api, { client_type, ...enteredIn(names[client_type], fields) }, idempotencyKeyOf(fields))).data.client_id}?saved` }),
      (wrong) => clientForm(person, client_type, fields, wrong),
    );
  }, options);
}

function addContactChange(app: FastifyInstance, options: Pick<FrameOptions, 'origin'>): void {
  const page = { title: 'Change a client', scope: 'clients:write' } as const;
  const clientOf = async (visit: Visit) => (await visit.api.get<Client>(pathOf(visit))).data;
  addPage(app, `${url}/:client_id/contact`, page, async (visit) => {
    const client = await clientOf(visit);
    return { content: contactForm(visit.person, client, contactOf(client), contactOf(client), {}) };
  });
  addForm(app, `${url}/:client_id/contact`, page, (visit) => orForm(
    async () => {
      const changes = changesIn(visit.fields);
      if (Object.keys(changes).length > 0) await visit.api.patch(pathOf(visit), changes);
      return { goTo: `${url}/${encodeURIComponent(visit.params['client_id'] ?? '')}?saved` };
    },
    async (wrong) => {
      const was = new URLSearchParams([...visit.fields].filter(([name]) => name.startsWith('was_')).map(([name, value]) => [name.slice('was_'.length), value] as [string, string]));
      return contactForm(visit.person, await clientOf(visit), visit.fields, was, wrong);
    },
  ), options);
}

const emptied = ['address', 'ussd_phone_number'];

/** Only what is not as the form showed it: what somebody else has changed meanwhile stays. */
function changesIn(fields: URLSearchParams): Record<string, string | null> {
  const changed = ['email', 'contact_number', 'address', 'ussd_phone_number', 'ussd_status'].flatMap((name) => {
    const value = fields.get(name)?.trim();
    if (value === undefined || value === (fields.get(`was_${name}`) ?? '')) return [];
    return [[name, value === '' && emptied.includes(name) ? null : value] as const];
  });
  return Object.fromEntries(changed);
}
