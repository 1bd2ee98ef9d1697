import type { FastifyInstance } from 'fastify';
import type { Account } from '#libs/contracts/accounts.ts';
import type { Note } from '#libs/contracts/notes.ts';
import { type Html, html } from '#libs/service/html.ts';
import { readActorNames, showActor } from '../html/actors.ts';
import { addFormPage, enteredIdempotencyKey, type Form, once, showField, type Wrong } from '../html/forms.ts';
import type { PageRequest } from '../html/frame.ts';
import { csrfField, type Person } from '../html/layout.ts';
import { showList } from '../html/lists.ts';
import { notice, showTime } from '../html/show.ts';

/** Notes of staff about clients and accounts. */

export type NotesOn = 'clients' | 'accounts';

const latest = 3;
const notesUrl = (on: NotesOn, id: string) => `/admin/ui/${on}/${id}/notes`;

async function noteList(visit: PageRequest, rows: readonly Note[]): Promise<Html> {
  const names = await readActorNames(visit, rows, 'actor');
  if (rows.length === 0) return html`<p class="quiet" role="status">Nothing has been noted yet.</p>`;
  return html`<ul class="notes">${rows.map(({ note, actor, created_at }) => html`<li><p class="lines">${note}</p><small class="quiet">${showActor(actor, names)}, ${showTime(created_at)}</small></li>`)}</ul>`;
}

function noteForm({ scopes, csrf }: Person, on: NotesOn, id: string, values: URLSearchParams, wrong: Wrong): Html {
  const field = {
    name: 'note',
    label: 'New note',
    type: 'textarea',
    isRequired: true,
    maxLength: 500,
    hint: 'For your colleagues: customers never see it. It cannot be changed afterwards.',
  } as const;
  return html`${
    scopes.has(`${on}:write`) &&
    html`<form method="post" action="${notesUrl(on, id)}">${csrfField(csrf)}${once()}${showField(field, values, wrong)}
<p class="actions"><button class="secondary">Add the note</button></p></form>`
  }`;
}

/** The latest notes, with a link to all of them if there are more; undefined if there is none. */
async function latestNotes(visit: PageRequest, on: NotesOn, id: string): Promise<Html | undefined> {
  const { data, next } = await visit.api.get<Note[]>(`/${on}/${id}/notes?limit=${latest}`);
  if (data.length === 0) return undefined;
  return html`${await noteList(visit, data)}${next !== undefined && html`<p><a href="${notesUrl(on, id)}">All notes</a></p>`}`;
}

/** The latest notes on an account and on its client, which a clerk reads before money is moved. */
export async function notesFor(visit: PageRequest, { client_id, account_id }: Account): Promise<Html> {
  const { scopes } = visit.person;
  const [client, account] = await Promise.all([
    scopes.has('clients:read') ? latestNotes(visit, 'clients', client_id) : undefined,
    scopes.has('accounts:read') ? latestNotes(visit, 'accounts', account_id) : undefined,
  ]);
  return html`${client && html`<h2>Notes on the customer</h2>${client}`}${account && html`<h2>Notes on the account</h2>${account}`}`;
}

/** The latest notes about one client or account under its name, if there are any and the person may read them. */
export async function notesAbout(visit: PageRequest, on: NotesOn, id: string, name: string): Promise<Html> {
  const notes = visit.person.scopes.has(`${on}:read`) ? await latestNotes(visit, on, id) : undefined;
  return html`${notes && html`<h2>Notes: ${name}</h2>${notes}`}`;
}

/** The section of a client's or account's page with the latest notes and the form for a new one. */
export async function showNotes(visit: PageRequest, on: NotesOn, id: string): Promise<Html> {
  return html`<section id="notes" aria-label="Notes"><h2>Notes</h2>${visit.query.get('saved') === 'noted' && notice('success', 'The note is added.')}
${(await latestNotes(visit, on, id)) ?? (await noteList(visit, []))}
${noteForm(visit.person, on, id, new URLSearchParams(), {})}</section>`;
}

/** Adds the pages with all notes, and the targets of their forms. */
export function addNotes(app: FastifyInstance): void {
  for (const [on, parameter, what] of [
    ['clients', 'client_id', 'client'],
    ['accounts', 'account_id', 'account'],
  ] as const) {
    const url = notesUrl(on, `:${parameter}`);
    const form: Form = {
      draw: (visit, values, wrong) =>
        showList<Note>(visit, {
          path: `/${on}/${visit.id}/notes`,
          above: () =>
            html`<p><a href="/admin/ui/${on}/${visit.id}">To the ${what}</a></p>${noteForm(visit.person, on, visit.id, values, wrong)}`,
          show: (rows) => noteList(visit, rows),
        }),
      async take(visit) {
        const { api, id, fields } = visit;
        await api.post(`/${on}/${id}/notes`, { note: fields.get('note')?.trim() ?? '' }, enteredIdempotencyKey(visit));
        return { redirectTo: `/admin/ui/${on}/${id}?saved=noted#notes` };
      },
    };
    addFormPage(app, url, { title: `Notes on the ${what}`, scope: `${on}:read` }, form, `${on}:write`);
  }
}
