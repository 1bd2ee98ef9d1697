import type { IncomingMessage } from 'node:http';
import { type FastifyInstance, type FastifyReply, type FastifyRequest, fastify } from 'fastify';
import type { Logger } from 'pino';
import { boundConnections, httpPatience, markAnswered, patience } from '#libs/service/connections.ts';
import { requestIdOf } from '#libs/service/fresh-ids.ts';
import { type ApiOptions, createApi } from './api.ts';
import { addAssets } from './html/assets.ts';
import { compressPages } from './html/compression.ts';
import { addPage, createFormCheck, openSession } from './html/frame.ts';
import { addUploads, readBody, readFields } from './html/upload.ts';
import type { DashboardMetrics } from './metrics.ts';
import { addAccounts } from './pages/accounts.ts';
import { addApiKeys } from './pages/api-keys.ts';
import { addApprovals, noteLooking } from './pages/approvals.ts';
import { addAudit } from './pages/audit.ts';
import { addBatches } from './pages/batches.ts';
import { addBooks } from './pages/books.ts';
import { addClients } from './pages/clients.ts';
import { addCounter } from './pages/counter.ts';
import { addDays } from './pages/days.ts';
import { addErasure } from './pages/erasure.ts';
import { addFind } from './pages/find.ts';
import { addHolds } from './pages/holds.ts';
import { addKeptForm } from './pages/kept-form.ts';
import { addLimits } from './pages/limits.ts';
import { addNotes } from './pages/notes.ts';
import { addOperations } from './pages/operations.ts';
import { addReversal } from './pages/reversal.ts';
import { addSecrets } from './pages/secrets.ts';
import { addSignIn } from './pages/sign-in.ts';
import { addStatement } from './pages/statement.ts';
import { addTills } from './pages/tills.ts';
import { addCashDays, addHome, addToday, addYourDay } from './pages/today.ts';
import { addTransactions } from './pages/transactions.ts';
import { addWebhooks } from './pages/webhooks.ts';
import { createErrorPages } from './problems.ts';
import { Refused } from './refusals.ts';
import { createCookie } from './session/cookies.ts';
import { createIssuer } from './session/issuer.ts';
import { createKeptSecrets } from './session/kept-secrets.ts';
import { createLooked } from './session/looked.ts';
import { createSessions } from './session/session.ts';

export interface AppDependencies {
  api: ApiOptions;
  issuer: string;
  clientId: string;
  clientSecret: string;
  /** The scopes to request at sign-in, separated by spaces. */
  scope: string;
  sessionSecrets: readonly string[];
  /** The public URL of the dashboard, without a path. */
  publicUrl: string;
  trustProxy: string[];
  now: () => number;
  logger: Logger;
  metrics: DashboardMetrics;
  /** True once this process is stopping; every response then closes its connection. */
  isDraining?: () => boolean;
}

/** Pages that pass an instruction from one to the next seal it with the secrets of the sessions. */
const everything: readonly ((app: FastifyInstance, secrets: readonly string[]) => void)[] = [
  addHome,
  addToday,
  addCashDays,
  addYourDay,
  addCounter,
  addBatches,
  addClients,
  addErasure,
  addNotes,
  addAccounts,
  addStatement,
  addLimits,
  addHolds,
  addTransactions,
  addReversal,
  addFind,
  addApiKeys,
  addWebhooks,
  addSecrets,
  addBooks,
  addDays,
  addOperations,
  addApprovals,
  addTills,
  addAudit,
];

const serverOptions = {
  // Requests are logged explicitly, with the request id.
  logger: false,
  genReqId: requestIdOf,
  bodyLimit: 64 * 1024,
  ...patience,
  http: httpPatience,
  forceCloseConnections: 'idle',
  // While the process stops, requests on open connections are answered, and the connections are then closed.
  return503OnClosing: false,
} as const;

/** More than the staff of a bank need at once. One address may have a tenth, except the proxies. */
const maxConnections = 2_000;

const securityHeaders = {
  'cache-control': 'no-store',
  'strict-transport-security': 'max-age=31536000; includeSubDomains',
  'x-content-type-options': 'nosniff',
  'x-frame-options': 'DENY',
};

/**
 * Creates the administration dashboard: pages for staff under /admin/ui, sign-in, static files. It is a caller of the
 * REST API, and owns nothing but the sessions. It does not listen yet.
 */
export async function createApp(deps: AppDependencies): Promise<FastifyInstance> {
  const { now, metrics, isDraining = () => false } = deps;
  const app = fastify({ ...serverOptions, trustProxy: deps.trustProxy.length > 0 ? deps.trustProxy : false });
  boundConnections(app.server, { max: maxConnections, proxies: deps.trustProxy, onCut: metrics.connectionCut });
  const { origin, protocol } = new URL(deps.publicUrl);
  const isSecure = protocol === 'https:';
  const cookie = createCookie('bank_session', isSecure);
  const sessions = createSessions({ secrets: deps.sessionSecrets, now });
  const issuer = createIssuer({ ...deps, redirectUri: `${origin}/admin/callback` });
  const callApi = createApi(deps.api);
  const keptSecrets = createKeptSecrets({
    secrets: deps.sessionSecrets,
    cookie: createCookie('bank_secrets', isSecure),
    now,
  });
  const looked = createLooked(createCookie('bank_looked', isSecure));
  const keepConnection = (reply: FastifyReply): void => {
    if (!isDraining()) reply.removeHeader('connection');
  };

  app.decorateRequest('visit', null);
  app.decorateRequest('expiredSession', null);
  app.addHook('onRequest', async (request, reply) => {
    reply.headers({ ...securityHeaders, 'x-request-id': request.id });
    // No browser may send its next request on a connection that is about to be closed.
    if (isDraining()) reply.header('connection', 'close');
  });
  app.addHook('onRequest', openSession({ ...deps, sessions, cookie, looked, keptSecrets, callApi }));
  app.addHook('onResponse', async (request, reply) => {
    markAnswered(request.raw);
    metrics.answered(request.routeOptions.url ?? 'none', reply.statusCode, reply.elapsedTime / 1000);
  });
  app.removeAllContentTypeParsers();
  app.addContentTypeParser(
    'application/x-www-form-urlencoded',
    async (request: FastifyRequest, payload: IncomingMessage) => readFields(await readBody(request, payload)),
  );
  app.addHook('preHandler', createFormCheck(origin));
  addUploads(app);
  const keptForms = addKeptForm(app, {
    secrets: deps.sessionSecrets,
    cookie: createCookie('bank_form', isSecure),
    origin,
    now,
  });
  app.setErrorHandler(createErrorPages({ ...deps, keepConnection, keepForm: keptForms.keep }));
  app.setNotFoundHandler(() => {
    throw notFound();
  });
  compressPages(app);
  addAssets(app);
  addSignIn(app, {
    ...deps,
    publicUrl: origin,
    issuer,
    sessions,
    cookie,
    callApi,
    loginCookie: (slot) => createCookie(`bank_login_${slot}`, isSecure),
    hasKeptForm: keptForms.has,
  });
  noteLooking(app, looked);
  for (const add of everything) add(app, deps.sessionSecrets);
  addPage(app, '/admin/ui/*', { title: 'Not found', scope: null }, () => {
    throw notFound();
  });
  return app;
}

const notFound = () => new Refused('route_not_found', 'no page has this address');
