import { type JWTHeaderParameters, type JWTPayload, jwtVerify } from 'jose';
import type { Caller } from './caller.ts';
import type { TokenOptions } from './tokens.ts';

/**
 * Returns the display name in an ID token; null if it has none, or is not the issuer's for this person and the OAuth
 * client of their access token. Never rejects, because a name is not worth refusing a sign-in.
 */
export type ReadDisplayName = (idToken: string, caller: Pick<Caller, 'actor' | 'token'>) => Promise<string | null>;

const maxNameLength = 100;
const skewS = 30;
/** Controls, and those of the direction of text, with which a name could look like another. */
const unprintable = /[\p{Cc}\p{Cs}\u200e\u200f\u202a-\u202e\u2066-\u2069]/gu;

export function createDisplayNames(
  { issuer, algorithms, keySet, hs256Secret }: Pick<TokenOptions, 'issuer' | 'algorithms' | 'keySet' | 'hs256Secret'>,
  now: () => number,
): ReadDisplayName {
  const findKey = (header: JWTHeaderParameters) => {
    if (header.alg === 'HS256' && hs256Secret !== undefined) return Buffer.from(hs256Secret);
    if (keySet === undefined || header.alg === 'HS256') throw new Error('the token names no known key');
    return keySet.find(header);
  };
  return async (idToken, { actor, token }) => {
    if (token?.client === undefined) return null;
    try {
      const { payload } = await jwtVerify(idToken, findKey, {
        issuer,
        audience: token.client,
        algorithms: ['HS256', ...algorithms],
        requiredClaims: ['sub', 'exp'],
        clockTolerance: skewS,
        currentDate: new Date(now()),
      });
      return `jwt:${payload.iss}|${payload.sub}` === actor ? nameIn(payload) : null;
    } catch {
      return null;
    }
  };
}

function nameIn({ name, preferred_username }: JWTPayload): string | null {
  const shown = [name, preferred_username]
    .map((text) => (typeof text === 'string' ? text.replace(unprintable, '').trim() : ''))
    .find((text) => text !== '');
  return shown === undefined ? null : Array.from(shown).slice(0, maxNameLength).join('');
}
