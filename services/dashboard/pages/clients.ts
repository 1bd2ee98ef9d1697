import type { FastifyInstance } from 'fastify';
import type { Account } from '#libs/contracts/accounts.ts';
import { type Client, clientName, isContact } from '#libs/contracts/clients.ts';
import type { SearchHit } from '#libs/contracts/search.ts';
import { type Html, html } from '#libs/service/html.ts';
import { ApiRefused } from '../api.ts';
import type { CsvColumn } from '../html/csv.ts';
import { addFormPage, enteredIdempotencyKey, enteredIn, waitingFor } from '../html/forms.ts';
import { addPage, type PageRequest } from '../html/frame.ts';
import { addListPage, externalId, type List, pager } from '../html/lists.ts';
import { readClients } from '../html/owners.ts';
import { desk, notice } from '../html/show.ts';
import { accountTable } from './account-views.ts';
import {
  type ClientType,
  changesInWords,
  clientFacts,
  clientForm,
  clientLine,
  clientTable,
  correctableFields,
  correctionForm,
  type Duplicate,
  meanwhileIn,
  openingFieldNames,
} from './client-views.ts';
import { erasureAction, erasureNotice } from './erasure.ts';
import { auditLink } from './made-by.ts';
import { needsApproval } from './needs-approval.ts';
import { showNotes } from './notes.ts';
import { addTask } from './tasks.ts';

const url = '/admin/ui/clients';
const api = '/clients';

const columns: CsvColumn<Client>[] = [
  'client_id',
  'client_type',
  { title: 'name', value: clientName },
  { title: 'registration_number', value: (row) => (row.client_type === 'Corporate' ? row.registration_number : null) },
  'email',
  'contact_number',
  'address',
  { title: 'ussd_phone_number', value: (row) => (row.client_type === 'Retail' ? row.ussd_phone_number : null) },
  'created_at',
];

const clientList = ({ person }: PageRequest): List<Client> => ({
  path: api,
  above: () =>
    html`${person.scopes.has('clients:write') && html`<p class="actions"><a role="button" href="${url}/new">Create a Retail client</a> <a role="button" class="secondary" href="${url}/new?client_type=Corporate">Create a Corporate client</a></p>`}`,
  show: clientTable,
  filters: [
    { name: 'q', label: 'Words of the name', hint: 'love ada', isMain: true },
    { name: 'client_type', label: 'Type', options: ['Retail', 'Corporate'], isMain: true },
    { name: 'email', label: 'E-mail', hint: 'ada@example.com' },
    { name: 'registration_number', label: 'Registration number', hint: 'C-1842' },
    { name: 'ussd_phone', label: 'USSD phone', hint: '+254700000001' },
    externalId,
  ],
});

/** Adds the pages of clients: the list, creation, one client with accounts, and corrections. */
export function addClients(app: FastifyInstance, secrets: readonly string[]): void {
  addListPage(app, url, { title: 'Clients', scope: 'clients:read' }, clientList, columns);
  addCreation(app);
  addPage(app, `${url}/:client_id`, { title: 'Client', scope: 'clients:read' }, async (visit) => {
    const { person, query } = visit;
    const { data: client } = await visit.api.get<Client>(`${api}/${visit.id}`);
    const said = saved[query.get('saved') ?? ''];
    const [accounts, notes] = await Promise.all([
      showAccounts(visit, client),
      showNotes(visit, 'clients', client.client_id),
    ]);
    return {
      title: clientName(client),
      content: html`${clientLine(client)}${said !== undefined && notice('success', said)}${erasureNotice(client)}
${desk('The client', html`${clientFacts(client, person)}${erasureAction(client, person)}`, html`${accounts}${notes}${auditLink(client.client_id, person)}`)}`,
    };
  });
  addCorrection(app, secrets);
}

/** The message after the redirect of a form. */
const saved: Record<string, string | undefined> = {
  opened: 'The client was created. Now open an account for them below.',
  corrected: 'The changes are saved.',
};

async function showAccounts({ api: bank, person, query }: PageRequest, { client_id, erased_at }: Client) {
  if (!person.scopes.has('accounts:read')) return html``;
  const parameters = new URLSearchParams({ client_id, limit: '50' });
  const cursor = query.get('cursor');
  if (cursor !== null) parameters.set('cursor', cursor);
  const { data, next } = await bank.get<Account[]>(`/accounts?${parameters}`);
  const isServed =
    data.length > 0 && ['transactions:write', 'transfers:write'].some((scope) => person.scopes.has(scope));
  const mayOpen = erased_at === undefined && person.scopes.has('accounts:write');
  return html`<h2>Accounts</h2><p class="actions">${isServed && html`<a role="button" href="/admin/ui/counter?q=${client_id}">To the counter</a> `}${mayOpen && html`<a role="button"${isServed && html` class="secondary"`}${query.get('saved') === 'opened' && html` data-next`} href="/admin/ui/accounts/new?client_id=${client_id}">Open an account</a>`}</p>
${accountTable(data)}${pager(`${url}/${client_id}`, new URLSearchParams(cursor === null ? {} : { cursor }), next)}`;
}

function addCreation(app: FastifyInstance): void {
  const typeIn = (values: URLSearchParams): ClientType =>
    values.get('client_type') === 'Corporate' ? 'Corporate' : 'Retail';
  const page = { title: 'Create a client', scope: 'clients:write' } as const;
  addFormPage(app, `${url}/new`, page, {
    draw(visit, values, wrong) {
      const type = typeIn(values.size > 0 ? values : visit.query);
      return { title: `Create a ${type} client`, content: clientForm(visit, type, values, wrong) };
    },
    async take(visit) {
      const client_type = typeIn(visit.fields);
      const duplicates = await findDuplicates(visit);
      const others = (visit.fields.get('others') ?? '').split(',');
      if (duplicates.some(({ client_id }) => !others.includes(client_id)))
        return { status: 409, content: clientForm(visit, client_type, visit.fields, {}, duplicates) };
      const body = { client_type, ...enteredIn(openingFieldNames(client_type), visit.fields) };
      const { data } = await visit.api.post<Client>(api, body, enteredIdempotencyKey(visit));
      return { redirectTo: `${url}/${data.client_id}?saved=opened` };
    },
  });
}

const telling = [
  ['contact_number', 'phone', 'phone'],
  ['ussd_phone_number', 'phone', 'phone'],
  ['email', 'email', 'e-mail'],
  ['registration_number', 'registration_number', 'registration number'],
] as const;

/**
 * Returns clients with the same phone, email, or registration number, or names that begin alike, if the person may read
 * clients.
 */
async function findDuplicates(visit: PageRequest): Promise<Duplicate[]> {
  const { api: bank, fields } = visit;
  // A client that this form has already created is not a duplicate.
  const made = fields.get('made_at') ?? '';
  const found = await Promise.all(
    telling.map(async ([field, matched, said]) => {
      const q = fields.get(field)?.trim() ?? '';
      if (q === '') return [];
      const { data } = await bank.get<SearchHit[]>(`/admin/search?${new URLSearchParams({ q })}`);
      return data
        .filter((hit) => hit.kind === 'client' && hit.matched === matched && hit.created_at < made)
        .map(({ id, title }) => ({ client_id: id, name: title, said: said as string }));
    }),
  );
  const all = [...found.flat(), ...(await findNamesakes(visit, made))];
  const clients = await readClients(visit, all);
  return [...Map.groupBy(all, ({ client_id }) => client_id)].map(([client_id, same]) => ({
    client_id,
    client: clients.get(client_id),
    name: same[0]?.name ?? client_id,
    same: [...new Set(same.map(({ said }) => said))],
  }));
}

const mostNamesakes = 5;

async function findNamesakes({ api: bank, fields, person }: PageRequest, made: string) {
  const q = ['first_name', 'last_name', 'company_name'].map((field) => fields.get(field) ?? '').join(' ');
  if (!/[\p{L}\p{N}]/u.test(q) || !person.scopes.has('clients:read')) return [];
  const { data } = await bank.get<Client[]>(`${api}?${new URLSearchParams({ q, limit: String(mostNamesakes) })}`);
  return data
    .filter((client) => client.created_at < made)
    .map((client) => ({ client_id: client.client_id, name: clientName(client), said: 'name, or its beginning' }));
}

/**
 * Corrects a client. The form sends only changed values, for the version that it showed. If somebody else has
 * changed the client meanwhile, both versions are shown before anything is saved.
 */
function addCorrection(app: FastifyInstance, secrets: readonly string[]): void {
  const page = { title: 'Correct a client', scope: 'clients:write' } as const;
  const corrected = (client_id: string) => ({ redirectTo: `${url}/${client_id}?saved=corrected` });
  const task = addTask(
    app,
    {
      name: 'correction',
      title: 'Correction',
      scope: page.scope,
      done: (data) => corrected((data as Client).client_id),
      refusal: ({ code, message }) =>
        code === 'version_mismatch' ? 'Somebody else has changed this client meanwhile. Go back to see both.' : message,
    },
    secrets,
  );
  addFormPage(app, `${url}/:client_id/contact`, page, {
    async draw(visit, sent, wrong) {
      const entered = task.getValues(visit, sent);
      const { client, etag } = await read(visit);
      const shown = correctableFields(client);
      return entered.size === 0
        ? correctionForm(visit, { client, etag, values: shown, was: shown, wrong })
        : correctionForm(visit, {
            client,
            etag: entered.get('etag') ?? '',
            values: entered,
            was: shownIn(entered),
            wrong,
          });
    },
    async take(visit) {
      const { fields, id } = visit;
      const was = shownIn(fields);
      const changes = changesIn(fields, was);
      if (Object.keys(changes).length === 0) return corrected(id);
      const path = `${api}/${id}`;
      const etag = fields.get('etag') ?? undefined;
      const asked = { action: 'client_contact' as const };
      if (Object.entries(changes).some(isContact) && (await needsApproval(visit, asked))) {
        const current = await read(visit);
        const { client } = current;
        if (etag && etag !== current.etag) return { status: 412, content: bothVersions(visit, current, was) };
        return task.summarise(visit, {
          method: 'patch',
          path,
          body: changes,
          if_match: etag,
          facts: [['Client', clientName(client)]],
          changes: changesInWords(client, was, fields),
          button: 'Save',
          form: `${url}/${id}/contact`,
          entered: Object.fromEntries([...fields].filter(([name]) => name !== 'csrf_token')),
          asked,
        });
      }
      try {
        const { data } = await visit.api.patch(path, changes, etag);
        return waitingFor(data) ?? corrected(id);
      } catch (error) {
        if (!(error instanceof ApiRefused) || error.problem.code !== 'version_mismatch') throw error;
        return { status: 412, content: bothVersions(visit, await read(visit), was) };
      }
    },
  });
}

async function read({ api, id }: PageRequest): Promise<{ client: Client; etag: string }> {
  const { data: client, etag = '' } = await api.get<Client>(`/clients/${id}`);
  return { client, etag };
}

/** The form for the current version: the other person's changes, and this person's own. */
function bothVersions(
  visit: PageRequest,
  { client, etag }: { client: Client; etag: string },
  was: URLSearchParams,
): Html {
  const { fields } = visit;
  const now = correctableFields(client);
  const values = new URLSearchParams(
    [...now].map(([name, value]): [string, string] => {
      const entered = fields.get(name)?.trim();
      return [name, entered === undefined || entered === (was.get(name) ?? '') ? value : entered];
    }),
  );
  const meanwhile = meanwhileIn(client, was, fields);
  return correctionForm(visit, { client, etag, values, was: now, wrong: {}, meanwhile });
}

/** Returns the values that the form showed when it was opened. */
function shownIn(fields: URLSearchParams): URLSearchParams {
  return new URLSearchParams(
    [...fields]
      .filter(([name]) => name.startsWith('was_'))
      .map(([name, value]): [string, string] => [name.slice('was_'.length), value]),
  );
}

const emptied = ['address', 'ussd_phone_number'];

/** Returns only the changed values. */
function changesIn(fields: URLSearchParams, was: URLSearchParams): Record<string, string | null> {
  const changed = [...was.keys()].flatMap((name) => {
    const value = fields.get(name)?.trim();
    if (value === undefined || value === was.get(name)) return [];
    return [[name, value === '' && emptied.includes(name) ? null : value] as const];
  });
  return Object.fromEntries(changed);
}
