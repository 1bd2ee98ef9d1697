import { scopes as allScopes, type Scope } from '#libs/contracts/scopes.ts';

/** An authenticated caller. The object is the same while its credential is cached. */
export interface Caller {
  /** `key:<family_id>` or `jwt:<iss>|<sub>`. Idempotency keys and rate limits are scoped to it. */
  actor: string;
  scopes: ReadonlySet<string>;
  /** The client to which the credential is bound; undefined if none. */
  boundClientId: string | undefined;
  /** True for a staff user: a signed-in person, bound to no client, and not the OAuth client itself. */
  isStaff?: boolean;
  /** The API key, if the caller used one. */
  keyId?: string;
  /** The access token, if the caller used one. */
  token?: AccessToken;
}

export interface AccessToken {
  /** The SHA-256 of the token. */
  id: string;
  /** The person and the OAuth client. */
  owner: string;
  /** The OAuth client that requested the token; undefined: the token does not say. */
  client?: string | undefined;
  issuedMs: number;
  /** The time from which the token is refused anyway. */
  expiresMs: number;
}

/** Returns the known scopes of a caller, for messages. */
export function listScopes({ scopes }: Caller): Scope[] {
  return allScopes.filter((scope) => scopes.has(scope));
}
