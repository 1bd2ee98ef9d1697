import type { FastifyInstance } from 'fastify';
import type { Client } from '#libs/contracts/resources.ts';
import { ApiRefused } from '../api.ts';
import type { Wrong } from '../html/forms.ts';
import { orForm } from '../html/forms.ts';
import type { Shown, Visit } from '../html/frame.ts';
import { addForm, addPage } from '../html/frame.ts';
import { correctableOf, correctionForm, meanwhileIn } from './client-views.ts';

export const pathOf = ({ id }: Visit) => `/clients/${id}`;

/**
 * Corrects a client. The form sends only changed values, for the version that it showed. If somebody else has
 * changed the client meanwhile, both versions are shown before anything is saved.
 */
export function addCorrection(app: FastifyInstance): void {
  const page = { title: 'Correct a client', scope: 'clients:write' } as const;
  const url = '/admin/ui/clients/:client_id/contact';
  const read = async (visit: Visit) => {
    const { data: client, etag = '' } = await visit.api.get<Client>(pathOf(visit));
    return { client, etag };
  };
  addPage(app, url, page, async (visit) => {
    const { client, etag } = await read(visit);
    const values = correctableOf(client);
    return { content: correctionForm(visit.person, { client, etag, values, was: values, wrong: {} }) };
  });
  addForm(app, url, page, (visit) => {
    const { fields, person } = visit;
    const was = shownIn(fields);
    const again = async (wrong: Wrong) => {
      const { client } = await read(visit);
      return correctionForm(person, { client, etag: fields.get('etag') ?? '', values: fields, was, wrong });
    };
    return orForm(async () => {
      const changes = changesIn(fields, was);
      const goTo = `/admin/ui/clients/${visit.id}?saved=corrected`;
      if (Object.keys(changes).length === 0) return { goTo };
      try {
        await visit.api.patch(pathOf(visit), changes, fields.get('etag') ?? undefined);
        return { goTo };
      } catch (error) {
        if (!(error instanceof ApiRefused) || error.problem.code !== 'version_mismatch') throw error;
        return showBoth(visit, await read(visit), was);
      }
    }, again);
  });
}

/** The form for the current version: the other person's changes, and this person's own. */
function showBoth(
  { person, fields }: Visit,
  { client, etag }: { client: Client; etag: string },
  was: URLSearchParams,
): Shown {
  const now = correctableOf(client);
  const values = new URLSearchParams(
    [...now].map(([name, value]): [string, string] => {
      const entered = fields.get(name)?.trim();
      return [name, entered === undefined || entered === (was.get(name) ?? '') ? value : entered];
    }),
  );
  const meanwhile = meanwhileIn(client, was, fields);
  return { status: 412, content: correctionForm(person, { client, etag, values, was: now, wrong: {}, meanwhile }) };
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
