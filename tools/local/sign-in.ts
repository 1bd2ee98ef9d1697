import { createHash, timingSafeEqual } from 'node:crypto';
import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http';
import type { KoaContextWithOIDC, Provider } from 'oidc-provider';
import { errors } from 'oidc-provider';
import { contentSecurityPolicy, messagePage, signInPage, signOutPage } from './sign-in-pages.ts';
import { userNamed } from './users.ts';

export const SIGN_IN_PATH = '/sign-in/';
const MAX_BODY_BYTES = 4096;

const digest = (text: string): Buffer => createHash('sha256').update(text).digest();

async function readForm(request: IncomingMessage): Promise<URLSearchParams | undefined> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of request as AsyncIterable<Buffer>) {
    bytes += chunk.length;
    if (bytes > MAX_BODY_BYTES) return undefined;
    chunks.push(chunk);
  }
  return new URLSearchParams(Buffer.concat(chunks).toString('utf8'));
}

/** Returns the headers of every page. The response to a form may redirect to `redirectUris`. */
export function pageHeaders(redirectUris: readonly string[]): Record<string, string> {
  const targets = redirectUris.map((uri) => {
    const { protocol, hostname, origin } = new URL(uri);
    // Every port of a loopback address is registered (RFC 8252, 7.3).
    return protocol === 'http:' ? `http://${hostname}:*` : origin;
  });
  return {
    'content-security-policy': contentSecurityPolicy([...new Set(targets)]),
    'cache-control': 'no-store',
    'referrer-policy': 'same-origin',
    'x-content-type-options': 'nosniff',
  };
}

/**
 * Serves SIGN_IN_PATH: the form and its submission. The sign-in of a request is identified by
 * oidc-provider's cookie (HttpOnly, SameSite=Lax, signed, only for this path), which another site
 * can neither send nor guess.
 */
export function createSignIn(provider: Provider, password: string, headers: Record<string, string>): RequestListener {
  const expected = digest(password);
  const answer = (response: ServerResponse, status: number, html: string) =>
    void response.writeHead(status, { ...headers, 'content-type': 'text/html; charset=utf-8' }).end(html);

  const handle = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    await provider.interactionDetails(request, response);
    if (request.method !== 'POST') return answer(response, 200, signInPage());
    const form = await readForm(request);
    if (form === undefined)
      return answer(response, 413, messagePage('Too much', 'That is more than a user name and a password.'));
    const name = (form.get('user_name') ?? '').trim();
    const passwordIsRight = timingSafeEqual(digest(form.get('password') ?? ''), expected);
    const user = userNamed(name);
    // Status 200, because browsers report an error status as a failure of the page itself.
    if (user === undefined || !passwordIsRight) return answer(response, 200, signInPage(name));
    await provider.interactionFinished(request, response, { login: { accountId: user.user_name, remember: false } });
  };

  return (request, response) => {
    handle(request, response).catch((error: Error) => {
      if (!(error instanceof errors.SessionNotFound)) console.error(error);
      answer(
        response,
        400,
        messagePage(
          'Start again',
          'This sign-in has expired or is finished. Go back to the dashboard and sign in from there.',
        ),
      );
    });
  };
}

async function endSession(ctx: KoaContextWithOIDC): Promise<void> {
  const { provider, session } = ctx.oidc;
  await session?.destroy();
  ctx.cookies.set(provider.cookieName('session'), null, { httpOnly: true, sameSite: 'lax', overwrite: true });
}

function leave(ctx: KoaContextWithOIDC): void {
  const { post_logout_redirect_uri: uri, state } = ctx.oidc.params as Record<string, string | undefined>;
  ctx.status = 303;
  if (uri === undefined) return ctx.redirect(ctx.oidc.urlFor('end_session_success'));
  const target = new URL(uri);
  if (state !== undefined) target.searchParams.set('state', state);
  ctx.redirect(target.href);
}

/**
 * Ends a session at the end-session endpoint: immediately if the request has the user's own ID
 * token, without a page that submits itself; otherwise after confirmation (OpenID Connect
 * RP-Initiated Logout, 2).
 */
export async function signOut(ctx: KoaContextWithOIDC, form: string): Promise<void> {
  const hint = ctx.oidc.entities.IdTokenHint as { payload: { sub?: string } } | undefined;
  if (hint === undefined || hint.payload.sub !== ctx.oidc.session?.accountId) {
    ctx.body = signOutPage(form);
    return;
  }
  await endSession(ctx);
  leave(ctx);
}

/**
 * Middleware: two pages of oidc-provider submit themselves with a script. This does their work
 * instead: one ends a session without a user; the other ends the previous user's session when
 * another user signs in.
 */
export async function withoutSelfSubmission(ctx: KoaContextWithOIDC, next: () => Promise<void>): Promise<void> {
  await next();
  const { route, session } = ctx.oidc ?? {};
  if (ctx.status !== 200 || session === undefined) return;
  if (route === 'end_session' && session.accountId === undefined) return leave(ctx);
  const returnTo = session.state?.['postLogoutRedirectUri'];
  if (route !== 'resume' || typeof returnTo !== 'string' || new URL(returnTo).pathname !== ctx.path) return;
  await endSession(ctx);
  ctx.status = 303;
  ctx.redirect(returnTo);
}
