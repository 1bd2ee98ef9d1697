import type { ApiKey } from '#libs/contracts/api-keys.ts';
import { type Html, html } from '#libs/service/html.ts';
import { known } from '../api.ts';
import type { PageRequest } from './frame.ts';

/** Shows the actors of records by names that people know. The full name of an actor is in the title of its text. */

/** Names of API keys by their ids. */
export type KeyNames = ReadonlyMap<string, string>;

const parseKeyId = (actor: unknown): string | undefined =>
  typeof actor === 'string' && actor.startsWith('key:') ? actor.slice('key:'.length) : undefined;

/** Returns the names of the keys in these fields if the person may read keys. Makes at most one API request. */
export async function readKeyNames<Row>(
  { api, person }: Pick<PageRequest, 'api' | 'person'>,
  rows: readonly Row[],
  ...fields: readonly (keyof Row)[]
): Promise<KeyNames> {
  const hasKey = rows.some((row) => fields.some((field) => parseKeyId(row[field]) !== undefined));
  if (!hasKey || !person.scopes.has('keys:manage')) return new Map();
  const keys = await known(api.get<ApiKey[]>('/admin/api-keys?limit=500'));
  return new Map(keys?.data.map(({ key_id, name }) => [key_id, name]));
}

/** Returns the subject of a token, the name of a key, or the actor itself. Pure. */
export function actorText(actor: string, names: KeyNames = new Map()): string {
  const keyId = parseKeyId(actor);
  if (keyId === undefined) return /^jwt:[^|]*\|(.+)$/.exec(actor)?.[1] ?? actor;
  const name = names.get(keyId);
  return name === undefined ? keyId : `key ${name}`;
}

/** Shows the actor by its short name; a known key is a link to its page. */
export function showActor(actor: string, names: KeyNames = new Map()): Html {
  const text = actorText(actor, names);
  const keyId = parseKeyId(actor);
  if (keyId !== undefined && names.has(keyId))
    return html`<a class="long" href="/admin/ui/api-keys/${keyId}" title="${actor}">${text}</a>`;
  return html`<span class="long"${text !== actor && html` title="${actor}"`}>${text}</span>`;
}
