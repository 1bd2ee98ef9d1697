import { decodeJwt, jwtVerify } from 'jose';
import type { JWTVerifyGetKey } from 'jose';
import { z } from 'zod';
import type { Caller } from './caller.ts';
import { KeysUnavailable } from './jwks.ts';
import type { KeySet } from './jwks.ts';

export const asymmetricAlgorithms = ['RS256', 'PS256', 'ES256', 'EdDSA'] as const;
export type TokenAlgorithm = (typeof asymmetricAlgorithms)[number];

export interface TokenOptions {
  issuer: string;
  audience: string;
  algorithms: readonly TokenAlgorithm[];
  /** undefined: tokens are refused unless hs256Secret is given. */
  keySet: KeySet | undefined;
  /** Only by explicit configuration; used for tokens of alg HS256 and for nothing else. */
  hs256Secret?: string;
}

/**
 * The caller that a bearer token stands for; undefined for a token that is not valid, for whatever reason. Rejects with
 * KeysUnavailable only.
 */
export type VerifyToken = (token: string) => Caller | Promise<Caller | undefined>;

const skewS = 30;
const maxRemembered = 10_000;
/** A token is looked at again after this time, so that a key withdrawn by the issuer ends what it signed. */
const rememberMs = 300_000;

const claimsSchema = z.object({
  iss: z.string(),
  sub: z.string().regex(/^[^\u0000-\u001f\u007f-\u009f]{1,255}$/),
  /** In seconds, up to the last moment that a date can hold. */
  exp: z.number().max(8.64e12),
  scope: z.unknown().optional(),
  /** The OAuth client: in a machine's own token it is the subject. */
  client_id: z.unknown().optional(),
  azp: z.unknown().optional(),
  /** A malformed binding is no credential: it must never turn into an unbound one. */
  bank_client_id: z.string().min(1).max(64).optional(),
});
interface Remembered {
  caller: Caller;
  untilMs: number;
}

/** Verifies tokens. Headers that bring a key (jku, x5u, jwk) are ignored. Valid tokens are remembered until they expire. */
export function createTokenVerifier(options: TokenOptions, now: () => number = Date.now): VerifyToken {
  const remembered = new Map<string, Remembered>();

  const remember = (token: string, caller: Caller, expiresMs: number): void => {
    const oldest = remembered.size >= maxRemembered ? remembered.keys().next().value : undefined;
    if (oldest !== undefined) remembered.delete(oldest);
    remembered.set(token, { caller, untilMs: Math.min(expiresMs + skewS * 1000, now() + rememberMs) });
  };

  return (token) => {
    const known = remembered.get(token);
    if (known) {
      remembered.delete(token);
      if (known.untilMs > now()) {
        // The least recently used one is the first of the map.
        remembered.set(token, known);
        return known.caller;
      }
    }
    return verifyToken(options, token, now()).then((claims) => {
      if (!claims) return undefined;
      const caller = callerOf(claims);
      remember(token, caller, claims.exp * 1000);
      return caller;
    });
  };
}

type Claims = z.output<typeof claimsSchema>;

async function verifyToken(options: TokenOptions, token: string, now: number): Promise<Claims | undefined> {
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
    return claimsSchema.parse(payload);
  } catch (error) {
    if (error instanceof KeysUnavailable) throw error;
    return undefined;
  }
}

/** A key never meets an algorithm of the other kind: that is how a public key becomes an HMAC secret. */
function keyFor({ keySet, hs256Secret }: TokenOptions): JWTVerifyGetKey {
  return (header, token) => {
    // No issuer of access tokens needs an extension of JWS (RFC 7515, 4.1.11).
    if (header.crit !== undefined) throw new Error('the token needs an extension');
    if (header.alg === 'HS256') return Buffer.from(hs256Secret ?? '');
    if (header.kid === undefined || keySet === undefined) throw new Error('the token names no key that is known');
    return keySet(header, token);
  };
}

function callerOf({ iss, sub, scope, client_id, azp, bank_client_id }: Claims): Caller {
  const scopes = new Set(typeof scope === 'string' ? scope.split(' ').filter((name) => name !== '') : []);
  return { actor: `jwt:${iss}|${sub}`, scopes, boundClientId: bank_client_id, isStaff: bank_client_id === undefined && sub !== client_id && sub !== azp };
}
