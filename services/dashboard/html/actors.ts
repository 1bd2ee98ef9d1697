import type { ApiKey } from '#libs/contracts/api-keys.ts';
import type { AuditActor } from '#libs/contracts/audit.ts';
import { isPerson } from '#libs/contracts/staff-days.ts';
import { type Html, html } from '#libs/service/html.ts';
import { inGroups, known } from '../api.ts';
import type { PageRequest } from './frame.ts';

/** Shows the actors of records by names that people know. The full name of an actor is in the title of its text. */

/** Names of API keys and of persons by their actors. */
export type ActorNames = ReadonlyMap<string, string>;

type Asker = Pick<PageRequest, 'api' | 'person'>;

const keyPrefix = 'key:';
/** The maximum number of persons in one request. */
const mostAtOnce = 50;

/**
 * Returns the names of the actors in these fields: those of keys if the person may read keys, those of persons if they have
 * signed in with one. What cannot be read is missing.
 */
export async function readActorNames<Row>(
  asker: Asker,
  rows: readonly Row[],
  ...fields: readonly (keyof Row)[]
): Promise<ActorNames> {
  const actors = rows.flatMap((row) => fields.map((field) => row[field])).filter((actor) => typeof actor === 'string');
  const [keys, persons] = await Promise.all([
    actors.some((actor) => actor.startsWith(keyPrefix)) && readKeyNames(asker),
    known(readPersonNames(asker, actors.filter(isPerson))),
  ]);
  return new Map([...(keys || []), ...(persons ?? [])]);
}

async function readKeyNames({ api, person }: Asker): Promise<[string, string][]> {
  if (!person.scopes.has('keys:manage')) return [];
  const keys = await known(api.get<ApiKey[]>('/admin/api-keys?limit=500'));
  return keys?.data.map(({ key_id, name }) => [`${keyPrefix}${key_id}`, name]) ?? [];
}

async function readPersonNames({ api }: Asker, actors: readonly string[]): Promise<[string, string][]> {
  const found = await inGroups(actors, mostAtOnce, async (group) => {
    const asked = new URLSearchParams({ actors: group.join(',') });
    return (await api.get<AuditActor[]>(`/admin/staff-names?${asked}`)).data;
  });
  return found.map(({ actor, name }) => [actor, name]);
}

/** Returns the name of a person or key, or the subject of a token, the id of a key, or the actor itself. Pure. */
export function actorText(actor: string, names: ActorNames = new Map()): string {
  const name = names.get(actor);
  if (actor.startsWith(keyPrefix)) return name === undefined ? actor.slice(keyPrefix.length) : `key ${name}`;
  if (actor.startsWith('system:')) return 'the bank itself';
  return name ?? /^jwt:[^|]*\|(.+)$/.exec(actor)?.[1] ?? actor;
}

/** Shows the actor by its short name; a known key is a link to its page. */
export function showActor(actor: string, names: ActorNames = new Map()): Html {
  const text = actorText(actor, names);
  if (actor.startsWith(keyPrefix) && names.has(actor))
    return html`<a class="long" href="/admin/ui/api-keys/${actor.slice(keyPrefix.length)}" title="${actor}">${text}</a>`;
  return html`<span class="long"${text !== actor && html` title="${actor}"`}>${text}</span>`;
}
