import { hash } from 'node:crypto';

/**
 * The entity tag (RFC 9110) of a resource as it is shown: it changes with anything that changes in
 * it, and needs no column.
 */
export function etagOf(resource: object): string {
  return `"${hash('sha256', JSON.stringify(resource, sorted)).slice(0, 32)}"`;
}

function sorted(_name: string, value: unknown): unknown {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return value;
  return Object.fromEntries(Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1)));
}

/** More of them than anybody has. */
const maxTags = 100;

/**
 * PURE: the tags of an If-Match that may be ours; undefined where any version will do. One that is
 * weak or of another form matches none.
 */
export function tagsOf(ifMatch: string | undefined): string[] | undefined {
  if (ifMatch === undefined || ifMatch.trim() === '*') return undefined;
  const tags = ifMatch.split(',').map((tag) => tag.trim());
  return tags.filter((tag) => /^"[0-9a-f]{32}"$/.test(tag)).slice(0, maxTags);
}
