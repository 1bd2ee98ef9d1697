import { createHash } from 'node:crypto';
import fastifyJwt from '@fastify/jwt';
import type { FastifyInstance } from 'fastify';
import { decodeProtectedHeader, exportSPKI, type JWTHeaderParameters, type JWTPayload } from 'jose';
import { z } from 'zod';
import { grantedScopes } from '#libs/contracts/scopes.ts';
import type { AccessToken, Caller } from './caller.ts';
import { type KeySet, KeysUnavailable } from './jwks.ts';

export const asymmetricAlgorithms = ['RS256', 'PS256', 'ES256', 'EdDSA'] as const;
type TokenAlgorithm = (typeof asymmetricAlgorithms)[number];

export interface TokenOptions {
  issuer: string;
  /** The accepted audiences. A token names at least one of them. */
  audience: string | string[];
  algorithms: readonly TokenAlgorithm[];
  /** undefined: tokens are refused. */
  keySet: KeySet | undefined;
  /** OAuth clients whose tokens need no bank_client_id; `*` for all. */
  wholeBankClients: readonly string[];
  /** The claim to use instead of `scope`: a name, or a path of names separated by dots. */
  scopesClaim?: string;
  /** Maps values of scopesClaim to scopes. Without it, the values are scopes. */
  roleScopes?: ReadonlyMap<string, readonly string[]>;
  /** The maximum time from iat to exp, in seconds. */
  maxLifetimeS: number;
  /** The accepted values of typ. */
  types: readonly TokenType[];
  /** Reports whether the token was ended before it expired. */
  isEnded?: (token: AccessToken) => boolean;
}

/**
 * The typ of RFC 9068, and JWT, which many issuers use; `none`: a token without typ, which may be any token of the
 * issuer.
 */
export const tokenTypes = ['at+jwt', 'JWT', 'none'] as const;
type TokenType = (typeof tokenTypes)[number];

/**
 * Returns the caller of a bearer token, or undefined if the token is invalid for any reason. Rejects only with
 * KeysUnavailable.
 */
export type VerifyToken = (token: string) => Caller | Promise<Caller | undefined>;

const skewS = 30;
const maxRemembered = 10_000;

const absent = z.never().optional();
const accessToken = z
  .string()
  .regex(/^(bearer|access|(at\+)?jwt|access[_-]token)$/i)
  .optional();
const notAccess = z
  .unknown()
  .refine((value) => !/^(id|refresh|logout)([_-]?token)?$/i.test(String(value)))
  .optional();
/** A visible character: two subjects that look alike must be the same. */
const visible = String.raw`[^\p{C}\p{Z}\p{Default_Ignorable_Code_Point}\u2800]`;
const claimsSchema = z.object({
  iss: z.string(),
  sub: z
    .string()
    .max(255)
    .regex(new RegExp(`^${visible}+(?: ${visible}+)*$`, 'u')),
  /** In seconds, up to the last representable date. */
  exp: z.number().max(8.64e12),
  iat: z.number(),
  nbf: z.number().optional(),
  /** The OAuth client. In a machine's own token it equals the subject. */
  client_id: z.unknown().optional(),
  azp: z.unknown().optional(),
  /** The OAuth client, as Okta and Entra ID 1.0 name it. */
  cid: z.unknown().optional(),
  appid: z.unknown().optional(),
  /** A malformed binding invalidates the token, because it must never become an unbound one. */
  bank_client_id: z.string().min(1).max(64).optional(),
  /** Only the holder of a certain key may use the token (RFC 7800), which is not verified here. */
  cnf: absent,
  // These claims occur in ID tokens and logout tokens, which some issuers sign with the same typ and audience.
  at_hash: absent,
  c_hash: absent,
  s_hash: absent,
  events: absent,
  // Keycloak, Cognito, and others name the kind of a token in a claim.
  typ: accessToken,
  token_use: accessToken,
  token_type: accessToken,
  // PingAM and Curity name it in these, which mean something else to other issuers.
  tokenName: notAccess,
  purpose: notAccess,
});
type Claims = z.output<typeof claimsSchema>;

interface Remembered {
  caller: Caller & { token: AccessToken };
  /** The key set that verified the token; a later set may lack the token's key. */
  keys: string;
}

/**
 * Returns a function that verifies tokens with @fastify/jwt, which it registers in the app. Headers that contain or refer
 * to a key (jku, x5u, jwk) are ignored. Valid tokens are cached until they expire or the keys change.
 */
export async function createTokenVerifier(
  app: FastifyInstance,
  options: TokenOptions,
  now: () => number = Date.now,
): Promise<VerifyToken> {
  const remembered = new Map<string, Remembered>();
  const keysInForce = (): string | undefined => (options.keySet ? options.keySet.current() : '');
  const key = keyFor(options);
  await app.register(fastifyJwt, {
    secret: key as never,
    verify: {
      algorithms: [...options.algorithms],
      allowedIss: options.issuer,
      allowedAud: options.audience,
      requiredClaims: ['iss', 'aud', 'exp', 'sub'],
      // They are compared with the bank's clock below. This host's may be wrong.
      ignoreExpiration: true,
      ignoreNotBefore: true,
    },
  });

  const remember = (token: string, caller: Remembered['caller'], keys: string): void => {
    const oldest = remembered.size >= maxRemembered ? remembered.keys().next().value : undefined;
    if (oldest !== undefined) remembered.delete(oldest);
    remembered.set(token, { caller, keys });
  };
  const isEnded = options.isEnded ?? (() => false);

  return (token) => {
    const keys = keysInForce();
    const known = remembered.get(token);
    if (known) {
      remembered.delete(token);
      const { caller } = known;
      if (caller.token.expiresMs > now() && known.keys === keys && !isEnded(caller.token)) {
        // The map is ordered by use, so its first token is the least recently used one.
        remembered.set(token, known);
        return caller;
      }
    }
    return verifyToken(app, options, token, now()).then((caller) => {
      if (!caller || isEnded(caller.token)) return undefined;
      if (keys !== undefined) remember(token, caller, keys);
      return caller;
    });
  };
}

async function verifyToken(
  app: FastifyInstance,
  options: TokenOptions,
  token: string,
  now: number,
): Promise<Remembered['caller'] | undefined> {
  try {
    const payload: JWTPayload = await app.jwt.verify(token);
    const claims = claimsSchema.parse(payload);
    if (payload['nonce'] !== undefined && !isNamedAccess(token, payload)) return undefined;
    const { iat, nbf = iat, exp } = claims;
    const [earliest, latest] = [now / 1000 - skewS, now / 1000 + skewS];
    if (exp <= earliest || iat > latest || nbf > latest || exp - iat > options.maxLifetimeS) return undefined;
    const caller = toCaller(options, claims, payload);
    if (!caller) return undefined;
    const id = createHash('sha256').update(token).digest('base64url');
    const named = clientIn(claims);
    const owner = `${caller.actor}|${named ?? ''}`;
    const client = typeof named === 'string' ? named : undefined;
    return { ...caller, token: { id, owner, client, issuedMs: iat * 1000, expiresMs: (exp + skewS) * 1000 } };
  } catch (error) {
    // @fastify/jwt wraps what the key function throws.
    const { originalError = error } = error as { originalError?: unknown };
    if (originalError instanceof KeysUnavailable) throw originalError;
    return undefined;
  }
}

/**
 * Reports whether a token says that it is an access token. Keycloak before 24 and PingAM copy the nonce of the sign-in into
 * access tokens, too; without a name, a token with a nonce is taken for an ID token.
 */
function isNamedAccess(token: string, claims: JWTPayload): boolean {
  const { typ, token_use, token_type, tokenName, purpose } = claims;
  const type = decodeProtectedHeader(token).typ?.replace(/^application\//i, '');
  return [type, typ, token_use, token_type, tokenName, purpose].some((name) =>
    /^(bearer|access|at\+jwt|access[_-]token)$/i.test(String(name)),
  );
}

/**
 * Returns the function that finds the key of a token, after the checks that @fastify/jwt lacks. A key is never used with
 * an algorithm of another kind; otherwise a public key could be used as an HMAC secret.
 */
function keyFor({ issuer, keySet, types }: TokenOptions) {
  const accepted = types.map((type) => type.toLowerCase());
  return async (token: { header: JWTHeaderParameters; payload: JWTPayload }): Promise<string> => {
    const { header, payload } = token;
    const type = header.typ ?? 'none';
    if (typeof type !== 'string' || !accepted.includes(type.toLowerCase().replace(/^application\//, '')))
      throw new Error('the token is not an access token');
    if (header.typ === 'none') throw new Error('the token is not an access token');
    // No access token needs a JWS extension (RFC 7515, 4.1.11).
    if (header.crit !== undefined) throw new Error('the token requires an extension');
    // A token that names another issuer must not cause a request to ours.
    if (payload.iss !== issuer) throw new Error('the token is of another issuer');
    if (header.kid === undefined || keySet === undefined) throw new Error('the token names no known key');
    return exportSPKI(await keySet.find(header));
  };
}

/** Returns undefined for a token that is neither bound to a client nor allowed to act for the whole bank. */
function toCaller(
  options: TokenOptions,
  { iss, sub, bank_client_id, ...claims }: Claims,
  payload: JWTPayload,
): Caller | undefined {
  const oauthClient = clientIn(claims);
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

/** Returns the OAuth client that requested the token. */
function clientIn({ azp, client_id, cid, appid }: Partial<Claims>): unknown {
  return azp ?? client_id ?? cid ?? appid;
}

/**
 * Reports whether a token belongs to an OAuth client itself rather than to a person. Its subject is the client
 * (RFC 9068), except with Auth0, where `gty` names the grant; Entra ID, where only an application's sub equals
 * its oid; and Keycloak, which has an account for each client, while a person with that name has a session.
 */
function isMachines({ sub, client_id, azp, cid, gty, idtyp, oid, sid, preferred_username }: JWTPayload): boolean {
  if ([client_id, azp, cid].includes(sub) || gty === 'client-credentials' || idtyp === 'app' || oid === sub)
    return true;
  return typeof azp === 'string' && sid === undefined && preferred_username === `service-account-${azp.toLowerCase()}`;
}

function namedScopes({ scopesClaim, roleScopes }: TokenOptions, payload: JWTPayload): string[] {
  const claim =
    scopesClaim === undefined
      ? payload['scope']
      : (getMember(payload, scopesClaim) ?? scopesClaim.split('.').reduce<unknown>(getMember, payload));
  const values =
    typeof claim === 'string'
      ? claim.split(' ')
      : Array.isArray(claim)
        ? claim.filter((value) => typeof value === 'string')
        : [];
  return scopesClaim !== undefined && roleScopes ? values.flatMap((role) => roleScopes.get(role) ?? []) : values;
}

function getMember(value: unknown, name: string): unknown {
  return typeof value === 'object' && value !== null && Object.hasOwn(value, name)
    ? Reflect.get(value, name)
    : undefined;
}
