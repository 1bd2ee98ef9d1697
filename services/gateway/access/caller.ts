/** Who asks, after authentication. The same object for as long as its credential is remembered. */
export interface Caller {
  /** `key:<family_id>` or `jwt:<iss>|<sub>`: the scope of Idempotency-Keys and of the rate limit. */
  actor: string;
  scopes: ReadonlySet<string>;
  /** The one client that the credential is bound to; undefined for none. */
  boundClientId: string | undefined;
  /** A member of staff, in person: signed in, bound to no client, and not the OAuth client itself. */
  isStaff?: boolean;
  /** The API key, where it is one. */
  keyId?: string;
}
