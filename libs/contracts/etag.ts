import { hash } from 'node:crypto';

/**
 * Returns the entity tag (RFC 9110) of a resource as it is shown. It is a hash of the content, so it changes
 * with the content and needs no column.
 */
export function computeEtag(resource: object): string {
  return `"${hash('sha256', JSON.stringify(sortKeys(resource, true))).slice(0, 32)}"`;
}

/** Returns JSON with the keys of every object in order, and without those that are null unless `keepsNull`. */
export function sortKeys(value: unknown, keepsNull: boolean): unknown {
  if (typeof value !== 'object' || value === null) return value;
  if (Array.isArray(value)) return value.map((item) => sortKeys(item, keepsNull));
  const copy: Record<string, unknown> = {};
  for (const key of Object.keys(value).sort()) {
    const item: unknown = Reflect.get(value, key);
    if (item !== null || keepsNull) copy[key] = sortKeys(item, keepsNull);
  }
  return copy;
}

/** The maximum number of tags in an If-Match. No client needs more. */
const maxTags = 100;

/**
 * Returns the tags of an If-Match header that have the form of ours, or undefined if any version matches. Weak
 * tags and tags of another form match no version. Pure.
 */
export function parseIfMatch(ifMatch: string | undefined): string[] | undefined {
  if (ifMatch === undefined || ifMatch.trim() === '*') return undefined;
  const tags = ifMatch.split(',').map((tag) => tag.trim());
  return tags.filter((tag) => /^"[0-9a-f]{32}"$/.test(tag)).slice(0, maxTags);
}
