import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import type { Logger } from 'pino';
import { z } from 'zod';
import type { ErrorCode } from '#libs/contracts/errors.ts';
import { type Html, html } from '#libs/service/html.ts';
import type { Caller } from '../../gateway/access/caller.ts';
import type { Limiter } from '../../gateway/access/limits.ts';
import type { VerifyToken } from '../../gateway/access/tokens.ts';
import type { AuditRecords } from '../../gateway/audit/audit-records.ts';
import { logRefused } from '../../gateway/http/errors.ts';
import { networkOf } from '../../gateway/http/network.ts';
import { sendPage, visitOf } from '../html/frame.ts';
import { renderPage } from '../html/layout.ts';
import type { Cookies } from '../session/cookies.ts';
import type { EndedSessions } from '../session/ended-sessions.ts';
import { type Issuer, SignInFailed, type SignInFault } from '../session/issuer.ts';
import { createSealer } from '../session/seal.ts';
import type { Session, Sessions } from '../session/session.ts';

export interface SignInDependencies {
  issuer: Issuer;
  sessions: Sessions;
  ended: Pick<EndedSessions, 'end' | 'endEarlier'>;
  cookie: Cookies;
  /** The cookie that is set while the person is at the issuer. */
  loginCookie: Cookies;
  sessionSecrets: readonly string[];
  publicUrl: string;
  verifyToken: VerifyToken;
  auditRecords: AuditRecords;
  /** The limit of failed authentications per address; undefined: no limit. */
  failureLimit: Limiter | undefined;
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

/**
 * Adds the routes for sign-in at the issuer, its callback, and sign-out. Each is audited. As with every write
 * by staff (decision 14), a sign-in whose audit record the broker does not accept gets 503, so nobody is signed
 * in without a record. A record may exist of a sign-in that got 503. Signing out never waits for its record. A
 * failed sign-in is recorded like a refused call, without waiting for the record; attempts above the limit of
 * their address get 429 and are not recorded. A wrong password is not recorded, because the person enters it at
 * the issuer.
 */
export function addSignIn(app: FastifyInstance, deps: SignInDependencies): void {
  const { issuer, sessions, cookie, loginCookie, now, logger } = deps;
  const sealer = createSealer(deps.sessionSecrets, 'login');
  const open = { config: { open: true } };

  app.get('/admin', open, async (_request, reply) => reply.redirect('/admin/ui', 303));
  app.get('/admin/login', open, async (request, reply) => {
    const { to, signed_out } = request.query as Record<string, unknown>;
    const content = html`${signed_out !== undefined && html`<p role="status">You are signed out.</p>`}
<p>For staff of the bank. You will be asked for your name and password by the bank's identity provider.</p>
<p>${startLink(to)}</p>`;
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
      loginCookie.write(reply, sealer.seal(JSON.stringify(login)), loginSeconds);
      return reply.redirect(url, 303);
    } catch (error) {
      return signInFailed(reply, error, logger);
    }
  });
  app.get('/admin/callback', open, async (request, reply) => {
    loginCookie.clear(reply);
    try {
      const login = loginOf(request);
      const person = await issuer.finish(new URL(request.url, deps.publicUrl), login);
      const caller = await callerOf(person.token);
      if (!caller)
        throw new Error("the issuer's access token is not accepted by this gateway: is its audience JWT_AUDIENCE?");
      const session = sessions.begin({ ...person, actor: caller.actor });
      const sealed = sessions.seal(session);
      if (sealed === undefined)
        throw new Error("the issuer's access token does not fit into a cookie: it must have less than about 2.5 KB");
      await begin(request, session);
      request.caller = caller;
      deps.auditRecords.done(request, 'sign_in');
      cookie.write(reply, sealed);
      return reply.redirect(login.to, 303);
    } catch (error) {
      const isTooMany = isRefusal(error) && isOneTooMany(request);
      return signInFailed(reply, isTooMany ? new SignInFailed('too_many', error) : error, logger);
    }
  });
  app.post('/admin/logout', { config: { action: 'sign_out' } }, async (request, reply) => {
    const visit = visitOf(request);
    cookie.clear(reply);
    deps.auditRecords.note(request, actOf('sign_out', visit.session));
    deps.auditRecords.done(request, 'sign_out');
    try {
      await deps.ended.end(visit.session);
    } catch (error) {
      logRefused(logger, request, 'service_unavailable', { error });
      return sendPage(
        reply,
        503,
        renderPage({ title: 'Signed out in this browser only', content: halfSignedOut(visit.session.expires_ms) }),
      );
    }
    return reply.redirect('/admin/login?signed_out', 303);
  });

  /** Records the sign-in. From then on, copies of the person's older cookies are rejected. */
  async function begin(request: FastifyRequest, session: Session): Promise<void> {
    try {
      await deps.auditRecords.record(request, actOf('sign_in', session));
      await deps.ended.endEarlier(session);
    } catch (error) {
      throw new SignInFailed('unrecorded', error);
    }
  }

  async function callerOf(token: string): Promise<Caller | undefined> {
    try {
      return await deps.verifyToken(token);
    } catch (error) {
      throw new SignInFailed('issuer_away', error);
    }
  }

  /** Records a failed sign-in and counts it against the limit of its address. */
  function isOneTooMany(request: FastifyRequest): boolean {
    const taken = deps.failureLimit?.take(networkOf(request.ip));
    const isTooMany = taken !== undefined && taken.left < 0;
    deps.auditRecords.refused(request, isTooMany ? 'rate_limited' : 'invalid_credentials', 'sign_in');
    return isTooMany;
  }

  function loginOf(request: FastifyRequest) {
    const text = sealer.open(loginCookie.read(request.headers) ?? '');
    if (text === undefined) throw new SignInFailed('mismatch', 'no sign-in was started in this browser');
    const login = loginSchema.parse(JSON.parse(text));
    if (login.until_ms <= now()) throw new SignInFailed('mismatch', 'the sign-in took too long');
    return login;
  }
}

const actOf = (action: string, { actor, id: resource_id }: Session) =>
  ({ actor, action, resource_id, outcome: 'success', details: {} }) as const;

/** The failures that are attempts of a person or browser to sign in. */
const isRefusal = (error: unknown): error is SignInFailed =>
  error instanceof SignInFailed && (error.fault === 'refused' || error.fault === 'mismatch');

/** Returns the page to show after sign-in: a page of the dashboard, otherwise the first one. */
export function ownPath(to: unknown): string {
  return typeof to === 'string' && /^\/admin\/ui(?:[/?][\x21-\x5b\x5d-\x7e]*)?$/.test(to) ? to : '/admin/ui';
}

function startLink(to: unknown): Html {
  const path = ownPath(to);
  return html`<a role="button" href="/admin/login/start${path !== '/admin/ui' && html`?to=${encodeURIComponent(path)}`}">Sign in</a>`;
}

function halfSignedOut(expiresMs: number): Html {
  return html`<p role="alert">The other gateways could not be informed. This browser has deleted your session. If anybody has a copy of it, the copy works until ${new Date(expiresMs).toISOString()}. Tell operations if that is possible.</p>
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
