import type { FastifyInstance } from 'fastify';
import type { ApiKey } from '#libs/contracts/resources.ts';
import { keyNamesOf } from '../html/actors.ts';
import { orForm } from '../html/forms.ts';
import type { Shown, Visit } from '../html/frame.ts';
import { addForm, addPage } from '../html/frame.ts';
import type { List } from '../html/lists.ts';
import { addListFile, showList } from '../html/lists.ts';
import type { KeyFields } from './api-key-views.ts';
import { keyForm, keyList, keyPage, keyTable, revocationForm, rotationForm, shownOnce } from './api-key-views.ts';
import { waitingFor } from './approval-views.ts';

type NewKey = ApiKey & { api_key?: string };

const url = '/admin/ui/api-keys';
const scope = 'keys:manage';

const list: List<ApiKey> = {
  url,
  path: '/admin/api-keys',
  filters: [],
  csv: [
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
  ],
  show: async (keys, sort, visit) =>
    keyTable(
      keys,
      await keyNamesOf(
        visit,
        keys.map(({ created_by }) => created_by),
      ),
      sort,
    ),
};

/** Adds the pages of API keys: list, create, rotate, revoke. Sending a form twice has one effect. */
export function addApiKeys(app: FastifyInstance): void {
  addPage(app, url, { title: 'API keys', scope }, async (visit) => {
    const { status = 200, content } = await showList(visit, list);
    return {
      status,
      content: keyList(
        content,
        visit.query.has('revoked') ? 'The key is revoked: every gateway refuses it within two seconds.' : undefined,
      ),
    };
  });

  addListFile(app, url, { title: 'API keys', scope }, () => list);

  const create = { title: 'Create an API key', scope } as const;
  addPage(app, `${url}/new`, create, ({ person }) => ({ content: keyForm(person, noFields, {}) }));
  addForm(app, `${url}/new`, create, async ({ api, person, fields }) => {
    const given = fieldsOf(fields);
    return orForm(
      async () => shown((await api.post<NewKey>('/admin/api-keys', bodyOf(given), given.idempotency_key)).data),
      (wrong) => keyForm(person, given, wrong),
    );
  });

  addPage(app, `${url}/:key_id`, { title: 'API key', scope }, async (visit) => {
    const key = await keyOf(visit);
    return { title: key.name, content: keyPage(key, await keyNamesOf(visit, [key.created_by]), visit.person) };
  });

  const rotate = { title: 'Rotate an API key', scope } as const;
  addPage(app, `${url}/:key_id/rotation`, rotate, async (visit) => ({
    content: rotationForm(visit.person, await keyOf(visit), {}),
  }));
  addForm(app, `${url}/:key_id/rotation`, rotate, async (visit) => {
    const overlap = Number(visit.fields.get('overlap_seconds'));
    return orForm(
      async () =>
        shown(
          (
            await visit.api.post<NewKey>(
              `${pathOf(visit)}/rotation`,
              { overlap_seconds: overlap },
              visit.fields.get('idempotency_key') ?? undefined,
            )
          ).data,
        ),
      async (wrong) => rotationForm(visit.person, await keyOf(visit), wrong),
    );
  });

  const revoke = { title: 'Revoke an API key', scope } as const;
  addPage(app, `${url}/:key_id/revocation`, revoke, async (visit) => ({
    content: revocationForm(visit.person, await keyOf(visit)),
  }));
  addForm(app, `${url}/:key_id/revocation`, revoke, async (visit) => {
    await visit.api.post(`${pathOf(visit)}/revocation`, { descendants: visit.fields.get('descendants') === 'yes' });
    return { goTo: `${url}?revoked` };
  });
}

const pathOf = ({ id }: Visit) => `/admin/api-keys/${id}`;

async function keyOf(visit: Visit): Promise<ApiKey> {
  return (await visit.api.get<ApiKey>(pathOf(visit))).data;
}

function shown(made: NewKey): Shown {
  const { api_key, ...key } = made;
  return waitingFor(made) ?? { title: 'The new API key', content: shownOnce(key, api_key) };
}

const noFields: KeyFields = { name: '', scopes: [], environment: 'live', expires_on: '', client_id: '' };

function fieldsOf(fields: URLSearchParams): KeyFields {
  const text = (name: string) => fields.get(name) ?? '';
  return {
    name: text('name'),
    scopes: fields.getAll('scopes'),
    environment: text('environment'),
    expires_on: text('expires_on').trim(),
    client_id: text('client_id').trim(),
    idempotency_key: fields.get('idempotency_key') ?? undefined,
  };
}

/** The API decides what is valid; malformed values are sent to it unchanged. */
function bodyOf({ name, scopes, environment, expires_on, client_id }: KeyFields): object {
  const expires_at = /^\d{4}-\d{2}-\d{2}$/.test(expires_on) ? `${expires_on}T23:59:59.000Z` : expires_on;
  return {
    name,
    scopes,
    environment,
    ...(expires_on === '' ? {} : { expires_at }),
    ...(client_id === '' ? {} : { client_id }),
  };
}
