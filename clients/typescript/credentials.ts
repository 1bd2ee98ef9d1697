/** Returns an access token for each request; `renew` is set if the bank refused the last one. */
export type TokenProvider = (renew: boolean) => string | Promise<string>;

export interface ClientCredentials {
  tokenEndpoint: string;
  clientId: string;
  clientSecret: string;
  /** Separated by spaces. Default: all scopes of the client. */
  scope?: string;
}

/** A token is renewed this long before it expires. */
const earlyMs = 30_000;
const timeoutMs = 10_000;

/**
 * Tokens by OAuth client credentials (RFC 6749, 4.4): requested when first needed, cached until
 * shortly before they expire, with one request for all waiting calls. Throws an Error with the
 * identity provider's code if it refuses.
 */
export function clientCredentials(credentials: ClientCredentials): TokenProvider {
  let kept: Token | undefined;
  let asked: Promise<Token> | undefined;
  return async (renew) => {
    if (!renew && kept !== undefined && Date.now() < kept.goodUntil) return kept.value;
    asked ??= requestToken(credentials).finally(() => {
      asked = undefined;
    });
    kept = await asked;
    return kept.value;
  };
}

interface Token {
  value: string;
  goodUntil: number;
}

async function requestToken({ tokenEndpoint, clientId, clientSecret, scope }: ClientCredentials): Promise<Token> {
  const askedAt = Date.now();
  const response = await fetch(tokenEndpoint, {
    method: 'POST',
    headers: { authorization: `Basic ${btoa(`${encodeURIComponent(clientId)}:${encodeURIComponent(clientSecret)}`)}` },
    body: new URLSearchParams({ grant_type: 'client_credentials', ...(scope === undefined ? {} : { scope }) }),
    redirect: 'error',
    signal: AbortSignal.timeout(timeoutMs),
  });
  const answer = (await response.json().catch(() => ({}))) as {
    access_token?: string;
    expires_in?: number;
    error?: string;
    error_description?: string;
  };
  if (answer.access_token === undefined)
    throw new Error(`no token: ${response.status} ${answer.error ?? ''} ${answer.error_description ?? ''}`.trim());
  const lifetimeMs = (answer.expires_in ?? 300) * 1000;
  return { value: answer.access_token, goodUntil: askedAt + Math.max(lifetimeMs - earlyMs, lifetimeMs / 2) };
}
