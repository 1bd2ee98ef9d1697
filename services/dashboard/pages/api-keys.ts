import type { FastifyInstance } from 'fastify';
import type { ApiKey } from '#libs/contracts/api-keys.ts';
import { type Scope, scopes } from '#libs/contracts/scopes.ts';
import { endOfDay } from '#libs/service/formats.ts';
import { type Html, html } from '#libs/service/html.ts';
import { type ActorNames, readActorNames, showActor } from '../html/actors.ts';
import type { CsvColumn } from '../html/csv.ts';
import {
  addFormPage,
  enteredIdempotencyKey,
  enteredIn,
  reason,
  showField,
  showForm,
  type Wrong,
  waitingFor,
} from '../html/forms.ts';
import { addPage, type PageRequest, type PageResult } from '../html/frame.ts';
import type { Person } from '../html/layout.ts';
import { addListPage, type List, type Sorting } from '../html/lists.ts';
import { facts, notice, pill, showFullTime, showOptions, showTime, showUntil, table, tags } from '../html/show.ts';
import { type MadeBy, makerFacts, readMaker } from './made-by.ts';
import { type Announced, type Asked, announce } from './needs-approval.ts';
import { scopeGroups, scopePresets, showMark, showScopes } from './scope-words.ts';
import { showSecret } from './secrets.ts';

const url = '/admin/ui/api-keys';
const scope = 'keys:manage';
const asked: Asked = { action: 'create_key' };

const columns: CsvColumn<ApiKey>[] = [
  'key_id',
  'name',
  'status',
  'environment',
  'scopes',
  'client_id',
  'created_at',
  'created_by',
  'expires_at',
  'last_used_at',
  'revoked_at',
  'rotated_from',
];

const keyList = (visit: PageRequest): List<ApiKey> => ({
  path: '/admin/api-keys',
  above:
    () => html`${visit.query.has('revoked') && notice('success', html`The key is revoked: every gateway refuses it within two seconds.${Number(visit.query.get('revoked')) > 0 && html` Webhooks that it had set are disabled: ${visit.query.get('revoked')}.`}`)}
<p><a role="button" href="${url}/new">Create an API key</a></p>`,
  show: async (keys, sort) => keyTable(keys, await readActorNames(visit, keys, 'created_by'), sort),
  note: 'Only a hash of each key is stored, so a key cannot be shown again.',
});

/** Adds the pages of API keys: list, create, rotate, revoke. Sending a form twice has one effect. */
export function addApiKeys(app: FastifyInstance): void {
  addListPage(app, url, { title: 'API keys', scope }, keyList, columns);
  const creation = { title: 'Create an API key', scope } as const;
  addFormPage(app, `${url}/new`, creation, {
    draw: async (visit, values, wrong) => keyForm(visit, await announce(visit, asked, 'Create'), values, wrong),
    take: (visit) => make(visit, '', toBody(visit.fields)),
  });
  addPage(app, `${url}/:key_id`, { title: 'API key', scope }, async (visit) => {
    const key = await readKey(visit);
    const [names, maker] = await Promise.all([
      readActorNames(visit, [key], 'created_by'),
      key.rotated_from === null ? readMaker(visit, key.key_id) : undefined,
    ]);
    return { title: key.name, content: keyPage(key, names, maker, visit.person) };
  });
  const rotation = { title: 'Rotate an API key', scope } as const;
  addFormPage(app, `${url}/:key_id/rotation`, rotation, {
    draw: async (visit, _values, wrong) =>
      rotationForm(visit, await readKey(visit), await announce(visit, asked, 'Rotate'), wrong),
    take: (visit) =>
      make(visit, `/${visit.id}/rotation`, { overlap_seconds: Number(visit.fields.get('overlap_seconds')) }),
  });
  const revocation = { title: 'Revoke an API key', scope } as const;
  addFormPage(app, `${url}/:key_id/revocation`, revocation, {
    draw: async (visit, _values, wrong) => revocationForm(visit, await readKey(visit), wrong),
    async take({ api, id, fields }) {
      const body = { descendants: fields.get('descendants') === 'yes' };
      const { data } = await api.post<{ disabled_webhooks?: string[] }>(`/admin/api-keys/${id}/revocation`, body);
      return { redirectTo: `${url}?revoked=${data.disabled_webhooks?.length ?? ''}` };
    },
  });
}

const readKey = async ({ api, id }: PageRequest) => (await api.get<ApiKey>(`/admin/api-keys/${id}`)).data;

/** Creates a key, and leads to it unless it waits for an approval. */
async function make(visit: PageRequest, action: string, body: object): Promise<PageResult> {
  const path = `/admin/api-keys${action}`;
  const { data } = await visit.api.post<ApiKey & { api_key?: string }>(path, body, enteredIdempotencyKey(visit));
  return waitingFor(data) ?? showSecret(visit, data.key_id, data.api_key);
}

/** The API decides what is valid; malformed values are sent to it unchanged. */
function toBody(fields: URLSearchParams): object {
  const { expires_at, ...rest } = enteredIn(['environment', 'expires_at', 'client_id'], fields);
  return {
    ...rest,
    name: fields.get('name') ?? '',
    scopes: fields.getAll('scopes'),
    ...(expires_at !== undefined && { expires_at: endOfDay(expires_at) }),
  };
}

const isTaken = (key: ApiKey) => key.status === 'active';

function keyTable(keys: readonly ApiKey[], names: ActorNames, sort: Sorting): Html {
  return table<ApiKey>(
    'API keys',
    [
      {
        title: 'Name',
        show: (key) => html`<strong><a href="${url}/${key.key_id}">${key.name}</a></strong>`,
      },
      {
        title: 'Status',
        show: ({ status, environment }) => html`${pill(status)}<br>${environment}`,
      },
      {
        title: 'Scopes',
        show: (key) =>
          html`${scopeList(key)}${key.client_id !== null && html`<br>only client <code>${key.client_id}</code>`}`,
      },
      { title: 'Last used', show: (key) => (key.last_used_at === null ? 'never' : showTime(key.last_used_at)) },
      {
        title: 'Expires',
        show: (key) => (key.revoked_at === null ? showUntil(key.expires_at) : showTime(key.revoked_at)),
      },
      {
        title: 'Created',
        sort,
        show: (key) =>
          html`${showTime(key.created_at)}<br><span class="quiet by">by ${showActor(key.created_by, names)}</span>`,
      },
      {
        title: 'Change',
        show: (key) =>
          isTaken(key)
            ? html`<span class="actions"><a role="button" class="secondary" href="${url}/${key.key_id}/rotation" aria-label="Rotate ${key.name}">Rotate</a> <a role="button" class="secondary" href="${url}/${key.key_id}/revocation" aria-label="Revoke ${key.name}">Revoke</a></span>`
            : '',
      },
    ],
    keys,
    'There is no API key yet.',
  );
}

const fewScopes = 4;

function scopeList({ scopes: own }: ApiKey): Html {
  return own.length <= fewScopes
    ? tags(own)
    : html`<details><summary>${own.length === scopes.length ? 'every scope' : `${own.length} scopes`}</summary>${tags(own)}</details>`;
}

const environments = {
  live: 'For programs of the bank and its partners.',
  test: 'For trials. It works only in a trial of the bank, with the same accounts.',
};

function keyForm(visit: PageRequest, { says, button }: Announced, values: URLSearchParams, wrong: Wrong): Html {
  const own = visit.person.scopes;
  const chosen = values.get('environment') ?? 'live';
  const preset = scopePresets[visit.query.get('preset') ?? '']?.scopes ?? [];
  const isChosen = (scope: Scope) =>
    values.getAll('scopes').includes(scope) || (!values.has('name') && preset.includes(scope));
  const checkbox = ({ scope, what, mark }: (typeof scopeGroups)[number][1][number]) =>
    html`<label class="explained"><input type="checkbox" name="scopes" value="${scope}"${isChosen(scope) && html` checked`}> <code>${scope}</code>${showMark(mark)}<small>${what}</small></label>`;
  const group = ([title, all]: (typeof scopeGroups)[number]) => {
    const given = all.filter(({ scope }) => own.has(scope));
    return (
      given.length > 0 &&
      html`<fieldset><legend>${title}</legend><div class="checks">${given.map(checkbox)}</div></fieldset>`
    );
  };
  const fields = html`${showField({ name: 'name', label: 'Name', isRequired: true, maxLength: 100, placeholder: 'What the key is for' }, values, wrong)}
<fieldset><legend>Environment</legend>${Object.entries(environments).map(([value, about]) => html`<label class="explained"><input type="radio" name="environment" value="${value}"${chosen === value && html` checked`}> <span>${value}</span><small>${about}</small></label>`)}${reason(wrong, 'environment').text}</fieldset>
<h2>What it may do</h2><p class="quiet">Only what you may do. Give as little as the program needs.</p>
<nav class="actions" aria-label="Usual choices"><span class="quiet">Usual choices:</span> ${Object.entries(scopePresets).map(([name, { title, scopes: preset }]) => html`<a href="${url}/new?preset=${name}" data-ticks="${preset.join(' ')}">${title}</a> `)}</nav>
${scopeGroups.map(group)}${reason(wrong, 'scopes').text}
${showField({ name: 'expires_at', label: 'Expires at the end of', type: 'date', hint: 'Empty: as late as the bank allows.' }, values, wrong)}
${showField({ name: 'client_id', label: 'Restrict to client', placeholder: 'cli_…', hint: 'Empty: for the whole bank, within its scopes.' }, values, wrong)}`;
  return showForm(visit, { wrong, button, cancel: url }, html`${fields}${says}`);
}

/**
 * The page of one API key. It shows its properties, the possible actions, and links to the audit records of
 * calls made with the key (which are recorded for the first key of its family) and of changes to it.
 */
function keyPage(key: ApiKey, names: ActorNames, maker: MadeBy | undefined, { scopes: own }: Person): Html {
  const trail = (name: string, value: string, text: string) =>
    html`<a href="/admin/ui/audit?${new URLSearchParams({ [name]: value }).toString()}">${text}</a>`;
  return html`${isTaken(key) && html`<p class="actions"><a role="button" href="${url}/${key.key_id}/rotation">Rotate</a> <a role="button" class="secondary" href="${url}/${key.key_id}/revocation">Revoke</a></p>`}
${keyFacts(key)}
<p>Created ${showFullTime(key.created_at)} by ${showActor(key.created_by, names)}${key.rotated_from !== null && html`, to replace <a href="${url}/${key.rotated_from}">the previous key</a>`}.</p>${facts(makerFacts(maker).slice(1))}
${own.has('audit:read') && html`<p class="actions">${key.rotated_from === null && trail('actor', `key:${key.key_id}`, 'Audit records of its calls')} ${trail('resource_id', key.key_id, 'Audit records of its changes')}</p>`}
<p><a href="${url}">To the list</a></p>`;
}

export function keyFacts(key: ApiKey): Html {
  return facts([
    ['Name', key.name],
    ['Id', html`<code>${key.key_id}</code>`],
    ['Status', pill(key.status)],
    ['Environment', key.environment],
    ['Scopes', showScopes(key.scopes)],
    ['Only client', key.client_id !== null && html`<code>${key.client_id}</code>`],
    ['Expires', showUntil(key.expires_at)],
    ['Revoked', key.revoked_at !== null && showFullTime(key.revoked_at)],
    ['Last used', key.last_used_at === null ? 'never' : showFullTime(key.last_used_at)],
  ]);
}

const overlaps = [
  [0, 'ends at once'],
  [3_600, 'works for one more hour'],
  [86_400, 'works for one more day'],
  [604_800, 'works for one more week'],
  [2_592_000, 'works for 30 more days'],
] as const;

function rotationForm(visit: PageRequest, key: ApiKey, { says, button }: Announced, wrong: Wrong): Html {
  const fields = html`<p>A new key with the same name, scopes and client replaces this one. Both work until the old one ends, so that the program can be changed in the meantime.</p>
${keyFacts(key)}
<label>The old key <select name="overlap_seconds">${showOptions(overlaps, 86_400)}</select></label>${says}`;
  return showForm(visit, { wrong, button, cancel: url }, fields);
}

function revocationForm(visit: PageRequest, key: ApiKey, wrong: Wrong): Html {
  const fields = html`<p role="alert">Every program that uses this key, or a key that it was rotated from or to, stops working within two seconds. This cannot be undone.</p>
${keyFacts(key)}
<label><input type="checkbox" name="descendants" value="yes"> Also revoke every key that was created or rotated with it</label>`;
  return showForm(visit, { wrong, button: 'Revoke the key', cancel: url, isDangerous: true }, fields);
}
