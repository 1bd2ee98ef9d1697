import type { IncomingHttpHeaders } from 'node:http';
import { Refused, refuse, unavailable } from '../http/errors.ts';
import type { ApiKeys } from './api-keys.ts';
import type { Caller } from './caller.ts';
import { KeysUnavailable } from './jwks.ts';
import type { VerifyToken } from './tokens.ts';

/**
 * Returns the caller, immediately if the credential is known, otherwise as a promise. Throws or rejects with a
 * Refused.
 */
export type Authenticate = (headers: IncomingHttpHeaders) => Caller | Promise<Caller>;

// The message is the same for every reason, because only the owner of a credential may learn why it is refused.
const invalid = () => refuse('invalid_credentials', 'the credentials are not valid');

/** Accepts a bearer token or an API key, but not both (contract: permission-4). */
export function createAuthenticate(verifyToken: VerifyToken, apiKeys: Pick<ApiKeys, 'find'>): Authenticate {
  return (headers) => {
    const { authorization } = headers;
    const apiKey = headers['x-api-key'];
    if (authorization !== undefined && apiKey !== undefined)
      throw refuse('ambiguous_credentials', 'send either Authorization or x-api-key, not both');
    if (apiKey !== undefined) {
      const caller = typeof apiKey === 'string' ? apiKeys.find(apiKey) : undefined;
      if (!caller) throw invalid();
      return caller;
    }
    if (authorization === undefined)
      throw refuse('missing_credentials', 'credentials are required: Authorization: Bearer <token>, or x-api-key');
    const token = /^Bearer +([A-Za-z0-9._-]+)$/i.exec(authorization)?.[1];
    if (token === undefined) throw invalid();
    const caller = verifyToken(token);
    return caller instanceof Promise ? caller.then(present, unverifiable) : caller;
  };
}

function present(caller: Caller | undefined): Caller {
  if (!caller) throw invalid();
  return caller;
}

function unverifiable(error: unknown): never {
  throw error instanceof KeysUnavailable ? new Refused(unavailable) : invalid();
}
