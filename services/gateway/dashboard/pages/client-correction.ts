import type { FastifyInstance } from 'fastify';
import type { Client } from '#libs/contracts/resources.ts';
import type { Html } from '#libs/service/html.ts';
import { ApiRefused } from '../api.ts';
import { addFormPage } from '../html/forms.ts';
import type { Visit } from '../html/frame.ts';
import { correctableOf, correctionForm, meanwhileIn } from './client-views.ts';

/**
 * Corrects a client. The form sends only changed values, for the version that it showed. If somebody else has
 * changed the client meanwhile, both versions are shown before anything is saved.
 */
export function addCorrection(app: FastifyInstance): void {
  addFormPage(
    app,
    '/admin/ui/clients/:client_id/contact',
    { title: 'Correct a client', scope: 'clients:write' },
    {
      async draw(visit, entered, wrong) {
        const { client, etag } = await read(visit);
        if (entered.size > 0)
          return correctionForm(visit, {
            client,
            etag: entered.get('etag') ?? '',
            values: entered,
            was: shownIn(entered),
            wrong,
          });
        const values = correctableOf(client);
        return correctionForm(visit, { client, etag, values, was: values, wrong });
      },
      async take(visit) {
        const { fields, id } = visit;
        const was = shownIn(fields);
        const changes = changesIn(fields, was);
        const goTo = `/admin/ui/clients/${id}?saved=corrected`;
        if (Object.keys(changes).length === 0) return { goTo };
        try {
          await visit.api.patch(`/clients/${id}`, changes, fields.get('etag') ?? undefined);
          return { goTo };
        } catch (error) {
          if (!(error instanceof ApiRefused) || error.problem.code !== 'version_mismatch') throw error;
          return { status: 412, content: bothVersions(visit, await read(visit), was) };
        }
      },
    },
  );
}

async function read({ api, id }: Visit): Promise<{ client: Client; etag: string }> {
  const { data: client, etag = '' } = await api.get<Client>(`/clients/${id}`);
  return { client, etag };
}

/** The form for the current version: the other person's changes, and this person's own. */
function bothVersions(visit: Visit, { client, etag }: { client: Client; etag: string }, was: URLSearchParams): Html {
  const { fields } = visit;
  const now = correctableOf(client);
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
