import { withHomeCountry } from '#libs/contracts/phones.ts';
import type { Scope } from '#libs/contracts/scopes.ts';
import type { SearchHit, SearchKind } from '#libs/contracts/search.ts';
import { requireData } from './answer.ts';
import type { ReadDependencies, ReadInput } from './reads.ts';

const requiredScopes: Record<SearchKind, Scope> = {
  client: 'clients:read',
  account: 'accounts:read',
  transaction: 'transactions:read',
  transfer: 'transactions:read',
  audit_record: 'audit:read',
};

/** Returns the hits of both services, of the kinds that the caller's scopes allow. No query is sent for other kinds. */
export async function search(
  { query, origin }: ReadInput,
  { forwarder, homeCountry }: ReadDependencies,
): Promise<SearchHit[]> {
  const { scopes } = origin.caller;
  const q = String(query['q']);
  const phone = homeCountry === undefined ? q : withHomeCountry(q.trim(), homeCountry);
  const allowed = (kind: SearchKind): boolean => scopes.has(requiredScopes[kind]);
  const kinds = (['client', 'account', 'audit_record'] as const).filter(allowed);
  const found = await Promise.all([
    kinds.length > 0 && forwarder.query('search_records', { q, phone, kinds }, origin.requestId, origin),
    allowed('transaction') && forwarder.query('search_postings', { q }, origin.requestId, origin),
  ]);
  return found.flatMap((outcome) => (outcome === false ? [] : requireData(outcome)));
}
