import type { AuditActor } from '#libs/contracts/audit.ts';
import { isPerson } from '#libs/contracts/staff-days.ts';
import { type Html, html } from '#libs/service/html.ts';
import { inGroups, known } from '../api.ts';
import type { PageRequest } from './frame.ts';

/** Shows the actors of records by names that people know. The full name of an actor is in the title of its text. */

/** Names of API keys and of persons by their actors. */
export type ActorNames = ReadonlyMap<string, string>;

const keyPrefix = 'key:';
/** The maximum number of actors in one request. */
const mostAtOnce = 50;

/** Returns the names of the actors in these fields. What cannot be read, and a person who signed in without a name, is missing. */
export async function readActorNames<Row>(
  { api }: Pick<PageRequest, 'api'>,
  rows: readonly Row[],
  ...fields: readonly (keyof Row)[]
): Promise<ActorNames> {
  const actors = rows
    .flatMap((row) => fields.map((field) => row[field]))
    .filter((actor) => typeof actor === 'string')
    .filter((actor) => isPerson(actor) || actor.startsWith(keyPrefix));
  const found = await known(
    inGroups(actors, mostAtOnce, async (group) => {
      const asked = new URLSearchParams({ actors: group.join(',') });
      return (await api.get<AuditActor[]>(`/admin/staff-names?${asked}`)).data;
    }),
  );
  return new Map(found?.map(({ actor, name }) => [actor, name]));
}

/** Returns the name of a person or key, or the subject of a token, the id of a key, or the actor itself. Pure. */
export function actorText(actor: string, names: ActorNames = new Map()): string {
  const name = names.get(actor);
  if (actor.startsWith(keyPrefix)) return name === undefined ? actor.slice(keyPrefix.length) : `key ${name}`;
  if (actor.startsWith('system:')) return 'the bank itself';
  return name ?? /^jwt:[^|]*\|(.+)$/.exec(actor)?.[1] ?? actor;
}

/** Shows the actor by its short name. */
export function showActor(actor: string, names: ActorNames = new Map()): Html {
  const text = actorText(actor, names);
  return html`<span class="long"${text !== actor && html` title="${actor}"`}>${text}</span>`;
}
