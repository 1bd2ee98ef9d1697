import { type JWTHeaderParameters, type JWTPayload, jwtVerify } from 'jose';
import { nameText } from '#libs/contracts/texts.ts';
import type { Caller } from './caller.ts';
import type { TokenOptions } from './tokens.ts';

/**
 * Returns the display name in an ID token; null if it has none, or is not the issuer's for this person and the OAuth
 * client of their access token. Never rejects, because a name is not worth refusing a sign-in.
 */
export type ReadDisplayName = (idToken: string, caller: Pick<Caller, 'actor' | 'token'>) => Promise<string | null>;

const skewS = 30;
/** Without characters with which a name could look like another. */
const shownName = nameText(1, 100);

export function createDisplayNames(
  { issuer, algorithms, keySet }: Pick<TokenOptions, 'issuer' | 'algorithms' | 'keySet'>,
  now: () => number,
): ReadDisplayName {
  const findKey = (header: JWTHeaderParameters) => {
    if (keySet === undefined) throw new Error('the token names no known key');
    return keySet.find(header);
  };
  return async (idToken, { actor, token }) => {
    if (token?.client === undefined) return null;
    try {
      const { payload } = await jwtVerify(idToken, findKey, {
        issuer,
        audience: token.client,
        algorithms: [...algorithms],
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

/** Returns the first of both that keeps the rules of names. */
function nameIn({ name, preferred_username }: JWTPayload): string | null {
  const isKept = (given: unknown) => typeof given === 'string' && given.isWellFormed();
  return (
    [name, preferred_username]
      .filter(isKept)
      .map((given) => shownName.safeParse(given).data)
      .find(Boolean) ?? null
  );
}
