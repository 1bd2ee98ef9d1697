import { createHash, randomBytes } from 'node:crypto';

/**
 * Signs in at the identity provider like a browser, with fetch: cookies are stored by path, and redirects are followed
 * one by one.
 */

export class Browser {
  readonly #cookies = new Map<string, { value: string; path: string }>();

  /**
   * Sends one request with the cookies of its path and stores those of the response. Does not
   * follow redirects.
   */
  async send(url: string, form?: Record<string, string>): Promise<Response> {
    const { pathname } = new URL(url);
    const sent = [...this.#cookies]
      .filter(([, { path }]) => pathname.startsWith(path))
      .map(([name, { value }]) => `${name}=${value}`);
    const answer = await fetch(url, {
      redirect: 'manual',
      headers: { cookie: sent.join('; '), accept: 'text/html' },
      ...(form && { method: 'POST', body: new URLSearchParams(form) }),
    });
    for (const line of answer.headers.getSetCookie()) {
      const [, name = '', value = ''] = /^([^=]+)=([^;]*)/.exec(line) ?? [];
      if (/expires=Thu, 01 Jan 1970/i.test(line)) this.#cookies.delete(name);
      else this.#cookies.set(name, { value, path: /;\s*path=([^;]+)/i.exec(line)?.[1] ?? '/' });
    }
    return answer;
  }

  /**
   * Follows redirects until a page is returned (`page`) or a redirect leaves its original origin
   * (`left`).
   */
  async visit(url: string, form?: Record<string, string>): Promise<{ url: string; page?: Response; left?: URL }> {
    let at = url;
    let answer = await this.send(at, form);
    for (let hops = 0; answer.status >= 300 && answer.status < 400; hops++) {
      const next = new URL(answer.headers.get('location') ?? '', at);
      if (next.origin !== new URL(url).origin) return { url: at, left: next };
      if (hops === 10) throw new Error(`too many redirects: ${next.href}`);
      at = next.href;
      answer = await this.send(at);
    }
    return { url: at, page: answer };
  }
}

/** Parameters of an authorization request; undefined omits one. */
export type Parameters = Record<string, string | undefined>;

export const redirectUri = 'http://127.0.0.1:43210/admin/callback';

/** Returns a valid authorization request of the dashboard, modified by `changes`, and the values that belong to it. */
export function authorization(issuer: string, changes: Parameters = {}) {
  const verifier = randomBytes(32).toString('base64url');
  const parameters: Parameters = {
    client_id: 'dashboard',
    response_type: 'code',
    redirect_uri: redirectUri,
    scope: 'openid profile',
    state: randomBytes(8).toString('hex'),
    nonce: randomBytes(8).toString('hex'),
    code_challenge: createHash('sha256').update(verifier).digest('base64url'),
    code_challenge_method: 'S256',
    ...changes,
  };
  const given = Object.entries(parameters).filter((entry): entry is [string, string] => entry[1] !== undefined);
  return { url: `${issuer}/auth?${new URLSearchParams(given)}`, parameters, verifier };
}

export type Tokens = { access_token: string; id_token: string; scope: string; expires_in: number };

/** Redeems a code with the dashboard's secret; `changes` modify the request. */
export async function redeem(
  issuer: string,
  clientSecret: string,
  code: string,
  verifier: string,
  changes: Record<string, string> = {},
): Promise<Response> {
  const authorization = `Basic ${Buffer.from(`dashboard:${clientSecret}`).toString('base64')}`;
  const body = new URLSearchParams({
    grant_type: 'authorization_code',
    code,
    redirect_uri: redirectUri,
    code_verifier: verifier,
    ...changes,
  });
  return await fetch(`${issuer}/token`, { method: 'POST', headers: { authorization }, body });
}

/** Returns the claims of a JWT without verifying it. */
export function decodeClaims(jwt: string): Record<string, unknown> {
  return JSON.parse(Buffer.from(jwt.split('.')[1] ?? '', 'base64url').toString('utf8')) as Record<string, unknown>;
}
