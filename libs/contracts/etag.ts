import { hash } from 'node:crypto';

/**
 * Returns the entity tag (RFC 9110) of a resource as it is shown. It is a hash of the content, so it changes
 * with the content and needs no column.
 */
export function etagOf(resource: object): string {
  return `"${hash('sha256', JSON.stringify(resource, sorted)).slice(0, 32)}"`;
}

function sorted(_name: string, value: unknown): unknown {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return value;
  return Object.fromEntries(Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1)));
}

/** The maximum number of tags in an If-Match. No client needs more. */
const maxTags = 100;

/**
 * Returns the tags of an If-Match header that have the form of ours, or undefined if any version matches. Weak
 * tags and tags of another form match no version. Pure.
 */
export function tagsOf(ifMatch: string | undefined): string[] | undefined {
  if (ifMatch === undefined || ifMatch.trim() === '*') return undefined;
  const tags = ifMatch.split(',').map((tag) => tag.trim());
  return tags.filter((tag) => /^"[0-9a-f]{32}"$/.test(tag)).slice(0, maxTags);
}
