import type { JWTPayload, JWTVerifyGetKey } from 'jose';
import { decodeJwt, jwtVerify } from 'jose';
import { z } from 'zod';
import { grantedScopes } from '#libs/contracts/scopes.ts';
import type { Caller } from './caller.ts';
import type { KeySet } from './jwks.ts';
import { KeysUnavailable } from './jwks.ts';

export const asymmetricAlgorithms = ['RS256', 'PS256', 'ES256', 'EdDSA'] as const;
type TokenAlgorithm = (typeof asymmetricAlgorithms)[number];

export interface TokenOptions {
  issuer: string;
  audience: string;
  algorithms: readonly TokenAlgorithm[];
  /** undefined: tokens are refused unless hs256Secret is given. */
  keySet: KeySet | undefined;
  /** Only by explicit configuration; used for tokens of alg HS256 and for nothing else. */
  hs256Secret?: string;
  /** OAuth clients whose tokens need no bank_client_id; `*`: all of them. */
  wholeBankClients: readonly string[];
  /** Instead of `scope`; a name, or names from member to member with dots between. */
  scopesClaim?: string;
  /** Scopes by the values of scopesClaim; without it these are scopes themselves. */
  roleScopes?: ReadonlyMap<string, readonly string[]>;
  /** Longest time from iat to exp. */
  maxLifetimeS: number;
}

/**
 * The caller that a bearer token stands for; undefined for a token that is not valid, for whatever reason. Rejects with
 * KeysUnavailable only.
 */
export type VerifyToken = (token: string) => Caller | Promise<Caller | undefined>;

const skewS = 30;
const maxRemembered = 10_000;

const absent = z.never().optional();
const claimsSchema = z.object({
  iss: z.string(),
  sub: z.string().regex(/^[^\u0000-\u001f\u007f-\u009f]{1,255}$/),
  /** In seconds, up to the last moment that a date can hold. */
  exp: z.number().max(8.64e12),
  iat: z.number(),
  /** The OAuth client: in a machine's own token it is the subject. */
  client_id: z.unknown().optional(),
  azp: z.unknown().optional(),
  /** A malformed binding is no credential: it must never turn into an unbound one. */
  bank_client_id: z.string().min(1).max(64).optional(),
  /** Only whoever holds a certain key may use it (RFC 7800), and nothing here proves who holds it. */
  cnf: absent,
  // Of ID tokens and logout tokens, which some issuers sign with the same typ and audience.
  nonce: absent,
  at_hash: absent,
  c_hash: absent,
  events: absent,
});
type Claims = z.output<typeof claimsSchema>;

interface Remembered {
  caller: Caller;
  untilMs: number;
  /** With which keys it was verified: another set may not have the token's key any more. */
  keys: object;
}

/**
 * Verifies tokens. Headers that bring a key (jku, x5u, jwk) are ignored. Valid tokens are
 * remembered until they expire or the keys change.
 */
export function createTokenVerifier(options: TokenOptions, now: () => number = Date.now): VerifyToken {
  const remembered = new Map<string, Remembered>();
  const keysInForce = (): object | undefined => (options.keySet ? options.keySet.current() : options);

  const remember = (token: string, caller: Caller, expiresMs: number, keys: object): void => {
    const oldest = remembered.size >= maxRemembered ? remembered.keys().next().value : undefined;
    if (oldest !== undefined) remembered.delete(oldest);
    remembered.set(token, { caller, untilMs: expiresMs + skewS * 1000, keys });
  };

  return (token) => {
    const keys = keysInForce();
    const known = remembered.get(token);
    if (known) {
      remembered.delete(token);
      if (known.untilMs > now() && known.keys === keys) {
        // The least recently used one is the first of the map.
        remembered.set(token, known);
        return known.caller;
      }
    }
    return verifyToken(options, token, now()).then((verified) => {
      if (verified && keys) remember(token, verified.caller, verified.exp * 1000, keys);
      return verified?.caller;
    });
  };
}

async function verifyToken(
  options: TokenOptions,
  token: string,
  now: number,
): Promise<{ caller: Caller; exp: number } | undefined> {
  try {
    // A token that does not even claim to be from our issuer does not make us ask it for keys.
    if (decodeJwt(token).iss !== options.issuer) return undefined;
    const { payload } = await jwtVerify(token, keyFor(options), {
      algorithms: options.hs256Secret === undefined ? [...options.algorithms] : ['HS256', ...options.algorithms],
      issuer: options.issuer,
      audience: options.audience,
      requiredClaims: ['iss', 'aud', 'exp', 'sub'],
      clockTolerance: skewS,
      currentDate: new Date(now),
    });
    const claims = claimsSchema.parse(payload);
    const { iat, exp } = claims;
    if (iat > now / 1000 + skewS || exp - iat > options.maxLifetimeS) return undefined;
    const caller = callerOf(options, claims, payload);
    return caller && { caller, exp };
  } catch (error) {
    if (error instanceof KeysUnavailable) throw error;
    return undefined;
  }
}

/** RFC 9068; many issuers write JWT. What says nothing of itself may be any token of the issuer. */
const accessToken = /^(?:(?:application\/)?at\+jwt|jwt)$/i;

/** A key never meets an algorithm of the other kind: that is how a public key becomes an HMAC secret. */
function keyFor({ keySet, hs256Secret }: TokenOptions): JWTVerifyGetKey {
  return (header, token) => {
    if (typeof header.typ !== 'string' || !accessToken.test(header.typ)) throw new Error('it is no access token');
    // No issuer of access tokens needs an extension of JWS (RFC 7515, 4.1.11).
    if (header.crit !== undefined) throw new Error('the token needs an extension');
    if (header.alg === 'HS256') return Buffer.from(hs256Secret ?? '');
    if (header.kid === undefined || keySet === undefined) throw new Error('the token names no key that is known');
    return keySet.find(header, token);
  };
}

/** Undefined for a token that neither is bound to a client nor may act for the whole bank. */
function callerOf(
  options: TokenOptions,
  { iss, sub, client_id, azp, bank_client_id }: Claims,
  payload: JWTPayload,
): Caller | undefined {
  const oauthClient = azp ?? client_id;
  const isWholeBanks = options.wholeBankClients.some((name) => name === '*' || name === oauthClient);
  if (bank_client_id === undefined && !isWholeBanks) return undefined;
  const scopes = grantedScopes(namedScopes(options, payload), bank_client_id);
  return {
    actor: `jwt:${iss}|${sub}`,
    scopes,
    boundClientId: bank_client_id,
    isStaff: bank_client_id === undefined && !isMachines(payload),
  };
}

/**
 * Whether a token is an OAuth client's own, and nobody's in person. Its subject is the client (RFC
 * 9068), but with Auth0, whose
 * `gty` says how it was granted, Entra ID, where only an application's sub is its oid, and Keycloak, which has an account for
 * each client; a person of that name has a session.
 */
function isMachines({ sub, client_id, azp, gty, idtyp, oid, sid, preferred_username }: JWTPayload): boolean {
  if (sub === client_id || sub === azp || gty === 'client-credentials' || idtyp === 'app' || oid === sub) return true;
  return typeof azp === 'string' && sid === undefined && preferred_username === `service-account-${azp.toLowerCase()}`;
}

function namedScopes({ scopesClaim, roleScopes }: TokenOptions, payload: JWTPayload): string[] {
  if (scopesClaim === undefined) return typeof payload['scope'] === 'string' ? payload['scope'].split(' ') : [];
  const claim = memberOf(payload, scopesClaim) ?? scopesClaim.split('.').reduce<unknown>(memberOf, payload);
  const values =
    typeof claim === 'string'
      ? claim.split(' ')
      : Array.isArray(claim)
        ? claim.filter((value) => typeof value === 'string')
        : [];
  return roleScopes ? values.flatMap((role) => roleScopes.get(role) ?? []) : values;
}

function memberOf(value: unknown, name: string): unknown {
  return typeof value === 'object' && value !== null && Object.hasOwn(value, name)
    ? Reflect.get(value, name)
    : undefined;
}
