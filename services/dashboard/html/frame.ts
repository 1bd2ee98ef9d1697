import { Readable } from 'node:stream';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import type { Logger } from 'pino';
import { sameHash } from '#libs/contracts/api-key.ts';
import { queryNames } from '#libs/contracts/endpoints.ts';
import type { Scope } from '#libs/contracts/scopes.ts';
import type { Html } from '#libs/service/html.ts';
import type { Api, ApiDocument, createApi } from '../api.ts';
import { logRefused, Refused } from '../refusals.ts';
import type { Cookies } from '../session/cookies.ts';
import type { createKeptSecrets, KeptSecrets } from '../session/kept-secrets.ts';
import type { Looked } from '../session/looked.ts';
import type { Session, Sessions } from '../session/session.ts';
import { type Person, renderPage } from './layout.ts';
import { hasAny } from './navigation.ts';

/** The common part of every page and form of a signed-in person. */

declare module 'fastify' {
  interface FastifyContextConfig {
    /** The form that signs out, which an ended session need not. */
    signsOut?: boolean;
    /** A route of the dashboard that is served without a session. It contains no data. */
    open?: boolean;
    page?: PageOptions;
    /** What the audit calls a refusal of this page or form. */
    action?: string;
  }
  interface FastifyRequest {
    visit: PageRequest | null;
    /** The ended session of a form that was sent too late (kept-form.ts). In that case there is no visit. */
    expiredSession: Session | null;
  }
}

export interface PageOptions {
  title: string;
  /** null: everybody who is signed in. If there are several, any of them is sufficient. */
  scope: Scope | readonly Scope[] | null;
  /** The maximum size in bytes of a form that may be larger than others. */
  bodyLimit?: number;
}

/** One request of a signed-in person. */
export interface PageRequest {
  person: Person;
  session: Session;
  /** The person's name in approvals and the audit. */
  actor: string;
  api: Api;
  /** Logs that the dashboard rejected a form. The API logs its own refusals. */
  logRefused(): void;
  /** The time of the request, in milliseconds. */
  now: number;
  /** The path of its page, and the id in it: encoded for other paths, or empty. */
  path: string;
  id: string;
  params: Record<string, string>;
  query: URLSearchParams;
  /** When the person last looked at what was decided about their requests, in ms; undefined: unknown (looked.ts). */
  lookedMs: number | undefined;
  /** Secrets that the API has shown once, until they are copied (kept-secrets.ts). */
  secrets: KeptSecrets;
  /** The fields that a form sent; empty for a page. */
  fields: URLSearchParams;
}

/** The response: a page or a redirect. */
export type PageResult =
  | { content: Html; title?: string; heading?: Html | undefined; status?: number }
  | { redirectTo: string };
/** A response, or only the content of a page. */
export type PageContent = Html | PageResult;
export const toPageResult = (drawn: PageContent): PageResult => ('text' in drawn ? { content: drawn } : drawn);
type Show = (visit: PageRequest) => PageContent | Promise<PageContent>;

const contentPolicy = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "img-src 'self' data:",
  "connect-src 'self'",
  "font-src 'self'",
  "form-action 'self'",
  "base-uri 'none'",
  "frame-ancestors 'none'",
].join('; ');

export interface FrameOptions {
  sessions: Sessions;
  cookie: Cookies;
  looked: Looked;
  keptSecrets: ReturnType<typeof createKeptSecrets>;
  callApi: ReturnType<typeof createApi>;
  logger: Logger;
  now: () => number;
}

/**
 * Returns a hook that sets the headers of every page, and opens the session where one is required. Whether its token is
 * still valid is for the API to say, which every page asks (problems.ts).
 */
export function openSession({ sessions, cookie, looked, keptSecrets, callApi, logger, now }: FrameOptions) {
  return async (request: FastifyRequest, reply: FastifyReply): Promise<void> => {
    // With no-referrer, browsers send `Origin: null` with our own forms.
    reply.headers({
      'content-security-policy': contentPolicy,
      'referrer-policy': 'same-origin',
      'cross-origin-opener-policy': 'same-origin',
    });
    if (request.routeOptions.config.open === true) return;
    const sealed = cookie.read(request.headers);
    const session = sealed === undefined ? undefined : sessions.open(sealed);
    if (!session) {
      // The cookie of an ended session is left, so that a form in this or another window is still kept. A request without
      // it may be of another site, which must not remove it.
      const ended = sealed === undefined ? undefined : sessions.read(sealed);
      const { page, signsOut } = request.routeOptions.config;
      if (sealed !== undefined && (!ended || signsOut)) cookie.clear(reply);
      if (signsOut) return void reply.redirect('/admin/login?signed_out', 303);
      const isForm = request.method === 'POST' && page !== undefined;
      request.expiredSession = isForm && ended ? ended : null;
      return request.expiredSession ? undefined : toSignIn(request, reply, ended !== undefined);
    }
    const scopes = new Set(session.scopes.split(' '));
    // A page that refreshes itself does not count as use, so that the session expires when nobody uses it.
    const touched = request.headers['hx-request'] === undefined ? sessions.touch(session) : undefined;
    const resealed = touched && sessions.seal(touched);
    if (resealed !== undefined) cookie.write(reply, resealed);
    const url = new URL(request.url, 'http://dashboard');
    const params = (request.params ?? {}) as Record<string, string>;
    request.visit = {
      person: { name: session.name, scopes, csrf: session.csrf, left: sessions.left(touched ?? session) },
      session,
      actor: session.actor,
      api: callApi(request, session.token),
      logRefused: () => logRefused(logger, request, 'validation_failed'),
      now: now(),
      path: url.pathname,
      id: encodeURIComponent(Object.values(params)[0] ?? ''),
      params,
      query: url.searchParams,
      lookedMs: looked.read(request.headers, session.actor),
      secrets: keptSecrets(request, reply, session.actor),
      fields: new URLSearchParams(),
    };
  };
}

/**
 * Redirects to the sign-in page, which then returns to the requested page or to `after`. A person whose session has ended
 * (`isEnded`), or who comes from another page of ours, is told so first: browsers do not follow a redirect of a search or
 * filter to the issuer, because `form-action` does not allow it.
 */
export function toSignIn(
  request: FastifyRequest,
  reply: FastifyReply,
  isEnded: boolean,
  after = request.method === 'GET' ? request.url : undefined,
): void {
  // htmx would insert the sign-in page into this one. With this header, the browser replaces the whole page.
  if (request.headers['hx-request'] !== undefined)
    return void reply.code(204).header('hx-redirect', '/admin/login?ended').send();
  const isTold = request.method === 'GET' && (isEnded || request.headers['sec-fetch-site'] === 'same-origin');
  const to = `${isTold ? 'ended&' : ''}to=${encodeURIComponent(after ?? '')}`;
  void reply.redirect(after === undefined ? '/admin/login?lost' : `/admin/login?${to}`, 303);
}

export function requireVisit(request: FastifyRequest): PageRequest {
  if (!request.visit) throw new TypeError('a page was requested without a session');
  return request.visit;
}

/** The audit action of a refusal, such as `page:api-keys/new`. An unknown address has none. */
function auditAction(kind: 'page' | 'form', url: string): { action?: string } {
  return url.includes('*') ? {} : { action: `${kind}:${url.replace(/^\/admin\/ui\/?/, '')}` };
}

type Answer = (visit: PageRequest, request: FastifyRequest, reply: FastifyReply) => Promise<FastifyReply>;

function addRoute(app: FastifyInstance, kind: 'page' | 'form', url: string, page: PageOptions, take: Answer): void {
  app.route({
    method: kind === 'page' ? 'GET' : 'POST',
    url,
    ...(page.bodyLimit !== undefined && { bodyLimit: page.bodyLimit }),
    config: { page, ...auditAction(kind, url) },
    // Before the body is read. A form of an ended session has no visit; it is kept, not executed.
    onRequest: async ({ visit }) => {
      if (visit && !hasAny(visit.person.scopes, page.scope))
        throw new Refused('insufficient_scope', `the scope ${[page.scope].flat().join(' or ')} is required`);
    },
    handler: (request, reply) => take(requireVisit(request), request, reply),
  });
}

const addShown = (kind: 'page' | 'form') => (app: FastifyInstance, url: string, page: PageOptions, show: Show) =>
  addRoute(app, kind, url, page, async (visit, request, reply) => {
    const drawn = await show(visit);
    await visit.api.checkToken();
    return answer(request, reply, visit, page.title, drawn);
  });
/** Adds a page, which changes nothing. */
export const addPage = addShown('page');
/** Adds the target of a form. */
export const addForm = addShown('form');

/** Adds a page or file of the API; the API records the export. If `read` throws, an error page is shown. */
export function addApiPage(
  app: FastifyInstance,
  url: string,
  page: PageOptions,
  read: (visit: PageRequest) => Promise<ApiDocument>,
): void {
  addRoute(app, 'page', url, page, async (visit, _request, reply) => {
    const { content, headers } = await read(visit);
    return reply.headers(headers).send(typeof content === 'string' ? content : Readable.from(content));
  });
}

/**
 * Adds a download of a list. The file is created while it is sent, after an audit record of who
 * downloaded it. If `make` throws, an error page is sent. The link may name the file (`download`); otherwise it has the
 * last part of its address as its name.
 */
export function addDownload(
  app: FastifyInstance,
  url: string,
  page: PageOptions,
  make: (visit: PageRequest) => Promise<AsyncIterable<string | Uint8Array>>,
): void {
  addRoute(app, 'page', url, page, async (visit, request, reply) => {
    const lines = Readable.from(await make(visit));
    try {
      await recordExport(request, visit);
    } catch (error) {
      lines.destroy();
      throw error;
    }
    return reply
      .headers({ 'content-type': 'text/csv; charset=utf-8', 'content-disposition': 'attachment' })
      .send(lines);
  });
}

/** The parts of a path without its parameters, such as batches-results.csv. */
const exportedFile = (path: string): string =>
  path
    .replace('/admin/ui/', '')
    .split('/')
    .filter((part) => !part.startsWith(':'))
    .join('-');

/** Records who exported which list. The API's reads for the file have the same request id. */
async function recordExport({ routeOptions }: FastifyRequest, { api, query, params }: PageRequest): Promise<void> {
  const { date, ...others } = params;
  await api.post('/admin/activities', {
    action: 'export',
    outcome: 'success',
    resource_id: Object.values(others)[0] ?? null,
    file: exportedFile(routeOptions.url ?? ''),
    filters: Object.fromEntries(
      [...query, ...(date === undefined ? [] : [['on', date] as const])]
        .map(([name, value]) => [name.replace(/_day$/, ''), value.slice(0, 500)] as const)
        .filter(([name]) => queryNames.has(name)),
    ),
  });
}

function answer(
  request: FastifyRequest,
  reply: FastifyReply,
  visit: PageRequest,
  title: string,
  drawn: PageContent,
): FastifyReply {
  const { person, path } = visit;
  const shown = toPageResult(drawn);
  if ('redirectTo' in shown) return reply.redirect(shown.redirectTo, 303);
  const here = pageOfForm(request);
  return sendPage(reply, shown.status ?? 200, renderPage({ title, ...shown, person, path, here }));
}

/** Fields that a page with a form has as its parameters, too. */
const choosing: readonly string[] = ['of', 'client_type', 'client_id'];

/**
 * Returns the page that a browser shows again after this form was answered with a page: its own, or the nearest one above
 * it. Undefined if it is no form.
 */
export function pageOfForm({ method, routeOptions, server, visit }: FastifyRequest): string | undefined {
  if (method !== 'POST' || !visit) return undefined;
  const above = (address: string) => address.slice(0, address.lastIndexOf('/'));
  let [url = '', page] = [routeOptions.url, visit.path];
  while (!server.hasRoute({ method: 'GET', url }) && url !== '') [url, page] = [above(url), above(page)];
  const chosen = new URLSearchParams(
    [...visit.fields].filter(([name, value]) => choosing.includes(name) && value !== ''),
  );
  return chosen.size === 0 || page !== visit.path ? page : `${page}?${chosen}`;
}

export function sendPage(reply: FastifyReply, status: number, page: string): FastifyReply {
  return reply.code(status).header('content-type', 'text/html; charset=utf-8').send(page);
}

/**
 * Checks every form of a signed-in person before its route takes it, and parses its fields.
 * `origin`: that of the public URL. Forms may come from it or from the request's own host.
 */
export function createFormCheck(origin: string) {
  return async (request: FastifyRequest): Promise<void> => {
    if (request.method !== 'POST' || !request.visit) return;
    if (request.body instanceof URLSearchParams) request.visit.fields = request.body;
    checkOwnForm(request, request.visit, origin);
  };
}

/**
 * Checks, by the browser's headers and by the session's token, which no other site knows, that our own page
 * sent the form.
 */
export function checkOwnForm(
  request: FastifyRequest,
  { session, fields }: Pick<PageRequest, 'session' | 'fields'>,
  origin: string,
): void {
  const { 'sec-fetch-site': site, origin: from, host } = request.headers;
  const isForeign =
    (site !== undefined && site !== 'same-origin') ||
    (from !== undefined && from !== origin && from.replace(/^https?:\/\//, '') !== host);
  if (isForeign || !sameHash(fields.get('csrf_token') ?? '', session.csrf)) throw new ForeignForm();
}

export class ForeignForm extends Error {
  override name = 'ForeignForm';
}
