import type { ApiKey } from '#libs/contracts/resources.ts';
import { scopes } from '#libs/contracts/scopes.ts';
import type { Html } from '#libs/service/html.ts';
import { html } from '#libs/service/html.ts';
import type { KeyNames } from '../html/actors.ts';
import { actorOf } from '../html/actors.ts';
import { zoneText } from '../html/formats.ts';
import type { Wrong } from '../html/forms.ts';
import { once, problem, reason } from '../html/forms.ts';
import type { Person } from '../html/layout.ts';
import { csrfField } from '../html/layout.ts';
import type { Sorting } from '../html/lists.ts';
import { fullTimeOf, table, timeOf } from '../html/show.ts';

/** The API key pages. */

export interface KeyFields {
  name: string;
  scopes: readonly string[];
  environment: string;
  /** A day, or empty for the default. */
  expires_on: string;
  client_id: string;
  idempotency_key?: string | undefined;
}

const url = '/admin/ui/api-keys';
const isTaken = (key: ApiKey) => key.status === 'active';

export function keyTable(keys: readonly ApiKey[], names: KeyNames, sort: Sorting): Html {
  return table<ApiKey>(
    'API keys',
    [
      {
        title: 'Name',
        show: (key) =>
          html`<strong><a href="${url}/${key.key_id}">${key.name}</a></strong><br><code>${key.key_id}</code>`,
      },
      {
        title: 'Status',
        show: ({ status, environment }) => html`<span class="status ${status}">${status}</span><br>${environment}`,
      },
      {
        title: 'Scopes',
        show: (key) =>
          html`${scopeList(key)}${key.client_id !== null && html`<br>only client <code>${key.client_id}</code>`}`,
      },
      { title: 'Last used', show: (key) => (key.last_used_at === null ? 'never' : timeOf(key.last_used_at)) },
      { title: 'Expires', show: (key) => timeOf(key.revoked_at ?? key.expires_at) },
      {
        title: 'Created',
        sort,
        show: (key) =>
          html`${timeOf(key.created_at)}<br><span class="quiet by">by ${actorOf(key.created_by, names)}</span>`,
      },
      {
        title: 'Change',
        isPlain: true,
        show: (key) =>
          isTaken(key)
            ? html`<span class="actions"><a href="${url}/${key.key_id}/rotation" aria-label="Rotate ${key.name}">Rotate</a> <a href="${url}/${key.key_id}/revocation" aria-label="Revoke ${key.name}">Revoke</a></span>`
            : '',
      },
    ],
    keys,
    'There is no API key yet.',
  );
}

/** The page around the list. */
export function keyList(list: Html, notice: string | undefined): Html {
  return html`${notice !== undefined && html`<p class="notice" role="status">${notice}</p>`}
<p><a role="button" href="${url}/new">Create an API key</a></p>
${list}
<p class="quiet">Times are ${zoneText()}. Only a hash of each key is stored, so a key cannot be shown again.</p>`;
}

const fewScopes = 4;

function scopeList({ scopes: own }: ApiKey): Html {
  const tags = html`<span class="tags">${own.map((scope) => html`<code>${scope}</code> `)}</span>`;
  return own.length <= fewScopes
    ? tags
    : html`<details><summary>${own.length === scopes.length ? 'every scope' : `${own.length} scopes`}</summary>${tags}</details>`;
}

export function keyForm(person: Person, fields: KeyFields, wrong: Wrong): Html {
  const own = scopes.filter((scope) => person.scopes.has(scope));
  const of = (name: string) => reason(wrong, name);
  const environment = (value: string, label: string) =>
    html`<label><input type="radio" name="environment" value="${value}"${fields.environment === value && html` checked`}> ${label}</label>`;
  return html`<form class="narrow" method="post" action="${url}/new">${csrfField(person.csrf)}${once()}
${problem(wrong)}
<label>Name <input name="name" value="${fields.name}" required maxlength="100" autocomplete="off" placeholder="What the key is for"${of('name').attributes}>${of('name').text}</label>
<fieldset><legend>Environment</legend>${environment('live', 'live')}${environment('test', 'test')}${of('environment').text}</fieldset>
<fieldset><legend>Scopes, at most those that you have yourself</legend>
<div class="checks">${own.map((scope) => html`<label><input type="checkbox" name="scopes" value="${scope}"${fields.scopes.includes(scope) && html` checked`}> <code>${scope}</code></label>`)}</div>${of('scopes').text}</fieldset>
<label>Expires at the end of (UTC) <input type="date" name="expires_on" value="${fields.expires_on}"${of('expires_at').attributes}><small>Empty: in one year.</small>${of('expires_at').text}</label>
<label>Only for the client with the id <input name="client_id" value="${fields.client_id}" autocomplete="off" placeholder="cli_…"${of('client_id').attributes}><small>Empty: for the whole bank, within its scopes.</small>${of('client_id').text}</label>
<div class="actions"><button>Create</button> <a href="${url}">Cancel</a></div>
</form>`;
}

/** Shows the key itself, once. */
export function shownOnce(key: ApiKey, apiKey: string | undefined): Html {
  if (apiKey === undefined) {
    return html`<p class="notice" role="status">This form has already created the key and shown it. It cannot be shown again: rotate it if it was lost.</p>
${facts(key)}<p><a role="button" href="${url}">To the list</a></p>`;
  }
  return html`<div class="narrow"><p class="notice" role="status">Copy the key now and hand it over safely. It is shown only once.</p>
<label for="api-key">API key</label>
<textarea id="api-key" class="secret" readonly rows="3" spellcheck="false" autocomplete="off">${apiKey}</textarea>
<p class="actions"><button type="button" data-copy="api-key" aria-describedby="copied" hidden>Copy</button> <span id="copied" role="status"></span></p>
${facts(key)}
<p><a role="button" class="secondary" href="${url}">I have copied it</a></p></div>`;
}

/**
 * The page of one API key. It shows its properties, the possible actions, and links to the audit records of
 * calls made with the key (which are recorded for the first key of its family) and of changes to it.
 */
export function keyPage(key: ApiKey, names: KeyNames, { scopes: own }: Person): Html {
  const trail = (name: string, value: string, text: string) =>
    html`<a href="/admin/ui/audit?${new URLSearchParams({ [name]: value }).toString()}">${text}</a>`;
  return html`${isTaken(key) && html`<p class="actions"><a role="button" href="${url}/${key.key_id}/rotation">Rotate</a> <a role="button" class="secondary" href="${url}/${key.key_id}/revocation">Revoke</a></p>`}
${facts(key)}
<p>Created ${fullTimeOf(key.created_at)} by ${actorOf(key.created_by, names)}${key.rotated_from !== null && html`, to replace <a href="${url}/${key.rotated_from}">the previous key</a>`}.</p>
${own.has('audit:read') && html`<p class="actions">${key.rotated_from === null && trail('actor', `key:${key.key_id}`, 'Audit records of its calls')} ${trail('resource_id', key.key_id, 'Audit records of its changes')}</p>`}
<p><a href="${url}">To the list</a></p>`;
}

function facts(key: ApiKey): Html {
  return html`<dl class="facts"><dt>Name</dt><dd>${key.name}</dd><dt>Id</dt><dd><code>${key.key_id}</code></dd><dt>Status</dt><dd><span class="status ${key.status}">${key.status}</span></dd><dt>Environment</dt><dd>${key.environment}</dd>
<dt>Scopes</dt><dd class="tags">${key.scopes.map((scope) => html`<code>${scope}</code> `)}</dd>${key.client_id !== null && html`<dt>Only client</dt><dd><code>${key.client_id}</code></dd>`}
<dt>Expires</dt><dd>${fullTimeOf(key.expires_at)}</dd>${key.revoked_at !== null && html`<dt>Revoked</dt><dd>${fullTimeOf(key.revoked_at)}</dd>`}<dt>Last used</dt><dd>${key.last_used_at === null ? 'never' : fullTimeOf(key.last_used_at)}</dd></dl>`;
}

const overlaps = [
  [0, 'ends at once'],
  [3_600, 'works for one more hour'],
  [86_400, 'works for one more day'],
  [604_800, 'works for one more week'],
  [2_592_000, 'works for 30 more days'],
] as const;

export function rotationForm(person: Person, key: ApiKey, wrong: Wrong): Html {
  return html`<form class="narrow" method="post" action="${url}/${key.key_id}/rotation">${csrfField(person.csrf)}${once()}
${problem(wrong)}
<p>A new key with the same name, scopes and client replaces this one. Both work until the old one ends, so that the program can be changed in the meantime.</p>
${facts(key)}
<label>The old key <select name="overlap_seconds">${overlaps.map(([seconds, text]) => html`<option value="${seconds}"${seconds === 86_400 && html` selected`}>${text}</option>`)}</select></label>
<div class="actions"><button>Rotate</button> <a href="${url}">Cancel</a></div>
</form>`;
}

export function revocationForm(person: Person, key: ApiKey): Html {
  return html`<form class="narrow" method="post" action="${url}/${key.key_id}/revocation">${csrfField(person.csrf)}
<p role="alert">Every program that uses this key, or a key that it was rotated from or to, stops working within two seconds. This cannot be undone.</p>
${facts(key)}
<label><input type="checkbox" name="descendants" value="yes"> Also revoke every key that was created or rotated with it</label>
<div class="actions"><button class="danger">Revoke the key</button> <a href="${url}">Cancel</a></div>
</form>`;
}
