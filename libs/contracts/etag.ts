import { hash } from 'node:crypto';

/**
 * Returns the entity tag (RFC 9110) of a resource as it is shown. It is a hash of the content, so it changes
 * with the content and needs no column.
 */
export function computeEtag(resource: object): string {
  return `"${hash('sha256', JSON.stringify(sortKeys(resource, true))).slice(0, 32)}"`;
}

/** What the ledger keeps of an account and changes. */
interface LedgerState {
  status: string;
  status_version: number;
  balance: string;
  available_balance?: string | undefined;
}

const half = (value: object) => hash('sha256', JSON.stringify(sortKeys(value, true))).slice(0, 16);

/**
 * Returns the first half of an account's entity tag, which the ledger computes, too: it decides whether a condition is met.
 * Everything else of an account only changes together with its status, or when its client is erased.
 */
export function ledgerVersion({ status, status_version, balance, available_balance = balance }: LedgerState): string {
  return half([status, status_version, balance, available_balance]);
}

/** Returns the entity tag of an account as it is shown, which changes with every posting and hold, too. */
export function accountEtag(shown: Omit<LedgerState, 'status_version'>, status_version: number): string {
  return `"${ledgerVersion({ ...shown, status_version })}${half(shown)}"`;
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
 * Reports whether If-None-Match names this tag, weak or not, or any: the client then has the current version. A proxy that
 * compresses adds `-gzip` to a tag. Pure.
 */
export function isKnown(tag: string, ifNoneMatch: string): boolean {
  const plain = (one: string) => one.trim().replace(/^W\/|-+\w+(?="$)/g, '');
  return ifNoneMatch.trim() === '*' || ifNoneMatch.split(',').some((one) => plain(one) === tag);
}

/**
 * Returns the tags of an If-Match header that have the form of ours, or undefined if any version matches. Weak
 * tags and tags of another form match no version. Pure.
 */
export function parseIfMatch(ifMatch: string | undefined): string[] | undefined {
  if (ifMatch === undefined || ifMatch.trim() === '*') return undefined;
  const tags = ifMatch.split(',').map((tag) => tag.trim());
  return tags.filter((tag) => /^"[0-9a-f]{32}"$/.test(tag)).slice(0, maxTags);
}
