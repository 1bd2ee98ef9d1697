import type { ApiKey } from '#libs/contracts/resources.ts';
import type { Html } from '#libs/service/html.ts';
import { html } from '#libs/service/html.ts';
import { ApiRefused } from '../api.ts';
import type { Visit } from './frame.ts';

/** Who did something, as people know them; the whole name of an actor is always at hand. */

/** Names of API keys by their ids. */
export type KeyNames = ReadonlyMap<string, string>;

const keyUrl = '/admin/ui/api-keys';

/** The names of the keys among these actors, as far as the person may see keys; one call of the API at most. */
export async function keyNamesOf(
  { api, person }: Pick<Visit, 'api' | 'person'>,
  actors: readonly (string | null | undefined)[],
): Promise<KeyNames> {
  const isAsked = person.scopes.has('keys:manage') && actors.some((actor) => actor?.startsWith('key:') === true);
  if (!isAsked) return new Map();
  try {
    const { data } = await api.get<ApiKey[]>('/admin/api-keys?limit=500');
    return new Map(data.map(({ key_id, name }) => [key_id, name]));
  } catch (error) {
    // A page is worth showing without them.
    if (error instanceof ApiRefused) return new Map();
    throw error;
  }
}

/** PURE: what an actor is called: the subject of a token, the name of a key, else the actor itself. */
export function actorText(actor: string, names: KeyNames = new Map()): string {
  if (actor.startsWith('key:')) {
    const id = actor.slice('key:'.length);
    const name = names.get(id);
    return name === undefined ? id : `key ${name}`;
  }
  const subject = /^jwt:[^|]*\|(.+)$/.exec(actor)?.[1];
  return subject ?? actor;
}

/** The actor by its short name, the whole one on demand; a known key leads to its page. */
export function actorOf(actor: string, names: KeyNames = new Map()): Html {
  const text = actorText(actor, names);
  const keyId = actor.startsWith('key:') ? actor.slice('key:'.length) : undefined;
  if (keyId !== undefined && names.has(keyId))
    return html`<a class="long" href="${keyUrl}/${keyId}" title="${actor}">${text}</a>`;
  return html`<span class="long"${text !== actor && html` title="${actor}"`}>${text}</span>`;
}
