import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import type { Logger } from 'pino';
import { z } from 'zod';
import type { ErrorCode } from '#libs/contracts/errors.ts';
import { maxIdTokenLength, type SignIn } from '#libs/contracts/sign-ins.ts';
import { fullTimeText } from '#libs/service/formats.ts';
import { type Html, html } from '#libs/service/html.ts';
import { ApiRefused, type createApi } from '../api.ts';
import { requireVisit, sendPage } from '../html/frame.ts';
import { renderPage } from '../html/layout.ts';
import { notice } from '../html/show.ts';
import { logRefused } from '../refusals.ts';
import type { Cookies } from '../session/cookies.ts';
import { type Issuer, SignInFailed, type SignInFault } from '../session/issuer.ts';
import { createSealer } from '../session/seal.ts';
import type { Sessions } from '../session/session.ts';
import { keptFormUrl } from './kept-form.ts';

export interface SignInDependencies {
  issuer: Issuer;
  sessions: Sessions;
  cookie: Cookies;
  /** The cookies that are set while the person is at the issuer: several, because tabs can sign in side by side. */
  loginCookie(slot: number): Cookies;
  /** Reports whether the browser keeps a form that was sent after the end of its session. */
  hasKeptForm(request: FastifyRequest): boolean;
  sessionSecrets: readonly string[];
  publicUrl: string;
  callApi: ReturnType<typeof createApi>;
  now: () => number;
  logger: Logger;
}

const loginSchema = z.object({
  verifier: z.string(),
  state: z.string(),
  nonce: z.string(),
  to: z.string(),
  until_ms: z.number(),
});
const loginSeconds = 600;
/** Sign-ins that a browser can begin side by side. Together, their cookies must fit into the headers of a request. */
const loginSlots = 16;
/** Returns the same slot for the same state, and any of them for another, because the issuer's library makes it at random. */
const slotOf = (state: string): number => (Buffer.from(state, 'base64url')[0] ?? 0) % loginSlots;

/**
 * Adds the routes for sign-in at the issuer, its callback, and sign-out. The dashboard reports each to the API, which
 * records it for auditors, ends earlier tokens of the person, and limits failures per address. A sign-in that the API
 * does not take gets 503, so nobody is signed in without a record. A wrong password is not recorded, because the person
 * enters it at the issuer.
 */
export function addSignIn(app: FastifyInstance, deps: SignInDependencies): void {
  const { issuer, sessions, cookie, loginCookie, callApi, now, logger } = deps;
  const sealer = createSealer(deps.sessionSecrets, 'login');
  const open = { config: { open: true } };

  app.get('/admin', open, async (_request, reply) => reply.redirect('/admin/ui', 303));
  // A page only where there is something to say. After signing out, nobody is signed in without asking for it.
  app.get('/admin/login', open, async (request, reply) => {
    const given = request.query as Record<string, unknown>;
    const isKept = given['to'] === keptFormUrl && deps.hasKeptForm(request);
    const news = isKept ? signInNews.kept : Object.entries(signInNews).find(([name]) => name in given)?.[1];
    if (news === undefined) return reply.redirect(startUrl(given['to']), 303);
    const content = html`${notice(news === signInNews.lost ? 'warning' : 'info', news)}
<p>You will be asked for your name and password by the bank's identity provider.</p>
<p>${startLink(given['to'])}</p>`;
    return sendPage(reply, 200, renderPage({ title: 'Sign in', content }));
  });
  app.get('/admin/login/start', open, async (request, reply) => {
    const { to, moved } = request.query as Record<string, unknown>;
    // The issuer redirects to the public URL, so the cookie must be set there. Redirect only once, because a
    // proxy may hide that name from us.
    if (request.headers.host !== new URL(deps.publicUrl).host && moved === undefined)
      return reply.redirect(`${deps.publicUrl}/admin/login/start?moved&to=${encodeURIComponent(ownPath(to))}`, 303);
    try {
      const { url, ...begun } = await issuer.begin();
      const login = { ...begun, to: ownPath(to), until_ms: now() + loginSeconds * 1000 };
      loginCookie(slotOf(begun.state)).write(reply, sealer.seal(JSON.stringify(login)), loginSeconds);
      return reply.redirect(url, 303);
    } catch (error) {
      return signInFailed(reply, error, logger);
    }
  });
  app.get('/admin/callback', open, async (request, reply) => {
    const { state } = request.query as Record<string, unknown>;
    const begunHere = loginCookie(slotOf(typeof state === 'string' ? state : ''));
    begunHere.clear(reply);
    try {
      const login = readLogin(begunHere.read(request.headers));
      const { idToken, ...person } = await issuer.finish(new URL(request.url, deps.publicUrl), login);
      const begun = await begin(request, person.token, idToken);
      const earlier = sessions.read(cookie.read(request.headers) ?? '');
      // A form that this person opened before, in another tab, is accepted, so nothing entered is lost.
      const csrf = earlier?.actor === begun.actor ? earlier.csrf : undefined;
      const session = sessions.begin({ ...person, ...begun, csrf });
      const sealed = sessions.seal(session);
      if (sealed === undefined)
        throw new Error("the issuer's access token does not fit into a cookie: it must have less than about 2.2 KB");
      cookie.write(reply, sealed);
      return reply.redirect(login.to, 303);
    } catch (error) {
      const isTooMany = isRefusal(error) && (await isOneTooMany(request));
      return signInFailed(reply, isTooMany ? new SignInFailed('too_many', error) : error, logger);
    }
  });
  app.post('/admin/logout', { config: { action: 'form:logout', signsOut: true } }, async (request, reply) => {
    const { api, session, secrets } = requireVisit(request);
    cookie.clear(reply);
    secrets.forget();
    try {
      await api.post('/admin/sign-outs', { session_id: session.id });
    } catch (error) {
      // A token that the API refuses has ended already.
      if (!(error instanceof ApiRefused)) throw error;
      if (error.status !== 401)
        return sendPage(
          reply,
          503,
          renderPage({ title: 'Signed out in this browser only', content: halfSignedOut(session.expires_ms) }),
        );
    }
    return reply.redirect('/admin/login?signed_out', 303);
  });
  // Asked by session-end.js, which is use. A session that the API has ended is over.
  app.get('/admin/ui/session', async (request) => {
    const { api, person } = requireVisit(request);
    await api.checkToken();
    return person.left;
  });

  /** Reports the sign-in, and returns the session's id with the person of the token. */
  async function begin(request: FastifyRequest, token: string, idToken: string | undefined) {
    try {
      const session_id = sessions.newId();
      const { data } = await callApi(request, token).post<SignIn>('/admin/sign-ins', {
        session_id,
        ...(idToken !== undefined && idToken.length <= maxIdTokenLength && { id_token: idToken }),
      });
      return { id: session_id, actor: data.actor, scopes: data.scopes.join(' ') };
    } catch (error) {
      if (!(error instanceof ApiRefused)) throw error;
      if (error.status === 403) throw new SignInFailed('refused', error);
      if (error.status === 401)
        throw new Error('the API does not accept the access token of the issuer: is its audience JWT_AUDIENCE?', {
          cause: error,
        });
      throw new SignInFailed(error.status === 429 ? 'too_many' : 'unrecorded', error);
    }
  }

  /** Reports a failed sign-in, as a request without a valid token, and returns whether its address has too many. */
  async function isOneTooMany(request: FastifyRequest): Promise<boolean> {
    const answer = callApi(request, 'none').post('/admin/sign-ins', { session_id: sessions.newId() });
    const status = await answer.then(
      () => 200,
      (error: unknown) => (error instanceof ApiRefused ? error.status : Promise.reject(error)),
    );
    if (status !== 401 && status !== 429)
      logger.warn({ status, request_id: request.id }, 'a failed sign-in was not recorded');
    return status === 429;
  }

  function readLogin(sealed = '') {
    const text = sealer.open(sealed);
    if (text === undefined) throw new SignInFailed('mismatch', 'no sign-in was started in this browser');
    const login = loginSchema.parse(JSON.parse(text));
    if (login.until_ms <= now()) throw new SignInFailed('mismatch', 'the sign-in took too long');
    return login;
  }
}

/** The failures that are attempts of a person or browser to sign in. */
const isRefusal = (error: unknown): error is SignInFailed =>
  error instanceof SignInFailed && (error.fault === 'refused' || error.fault === 'mismatch');

/** Returns the page to show after sign-in: a page of the dashboard, otherwise the first one. */
export function ownPath(to: unknown): string {
  return typeof to === 'string' && /^\/admin\/ui(?:[/?][\x21-\x5b\x5d-\x7e]*)?$/.test(to) ? to : '/admin/ui';
}

/** What a person is told before signing in, by the name of the parameter. */
const signInNews = {
  kept: html`Your session had ended before your form was sent. <strong>Nothing has been done yet, and the form is kept</strong> for ten minutes: sign in, and you get it back.`,
  lost: html`You are not signed in, so <strong>the form that you sent was not carried out</strong>. It could not be kept: it is too long, or you signed out meanwhile, for example in another tab. Sign in and enter it again.`,
  signed_out: html`You are signed out.`,
  ended: html`Your session has ended, because nothing was done for 30 minutes, you signed out or in again elsewhere, or your sign-in has expired.`,
};

function startUrl(to: unknown): string {
  const path = ownPath(to);
  return path === '/admin/ui' ? '/admin/login/start' : `/admin/login/start?to=${encodeURIComponent(path)}`;
}

const startLink = (to: unknown): Html => html`<a role="button" autofocus href="${startUrl(to)}">Sign in</a>`;

function halfSignedOut(expiresMs: number): Html {
  return html`<p role="alert">The bank could not be informed. This browser has deleted your session. If anybody has a copy of it, the copy works until ${fullTimeText(new Date(expiresMs).toISOString())}. Tell operations if that is possible.</p>
<p>${startLink(undefined)}</p>`;
}

const faults: Record<SignInFault, { status: number; code: ErrorCode; title: string; text: string }> = {
  issuer_away: {
    status: 503,
    code: 'service_unavailable',
    title: 'The identity provider does not answer',
    text: 'Nobody can sign in at the moment. Try again in a minute; if the problem remains, tell operations.',
  },
  refused: {
    status: 403,
    code: 'invalid_credentials',
    title: 'Sign-in was refused',
    text: 'The identity provider did not let you in, or the sign-in was cancelled there. Try again, or ask an administrator whether your account may use this dashboard.',
  },
  unrecorded: {
    status: 503,
    code: 'service_unavailable',
    title: 'Not available now',
    text: 'The bank cannot record your sign-in at the moment, and lets nobody in without. Try again in a few seconds; if it stays so, tell operations.',
  },
  too_many: {
    status: 429,
    code: 'rate_limited',
    title: 'Too many failed sign-ins',
    text: 'There were too many from your address. Wait a minute, then begin again.',
  },
  mismatch: {
    status: 400,
    code: 'invalid_credentials',
    title: 'Sign-in did not work',
    text: 'The answer does not belong to a sign-in that this browser has begun, or it came too late. That happens when a page is reloaded or two sign-ins run side by side. Begin again.',
  },
};

const ownFault = {
  status: 500,
  code: 'internal_error',
  title: 'Sign-in did not work',
  text: 'It is our fault, and has been logged. Tell operations the request id below.',
} as const;

function signInFailed(reply: FastifyReply, error: unknown, logger: Logger): FastifyReply {
  const { status, code, title, text } = error instanceof SignInFailed ? faults[error.fault] : ownFault;
  logRefused(logger, reply.request, code, { status, error });
  const content = html`<p role="alert">${text}</p>
<p>${startLink(undefined)}</p>
<p class="quiet">Request id: <code>${reply.request.id}</code></p>`;
  return sendPage(reply, status, renderPage({ title, content }));
}
