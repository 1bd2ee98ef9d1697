import type { IncomingMessage } from 'node:http';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import type { Logger } from 'pino';
import type { FourEyes } from '../gateway/access/four-eyes.ts';
import type { Limiter } from '../gateway/access/limits.ts';
import type { VerifyToken } from '../gateway/access/tokens.ts';
import type { AuditRecords } from '../gateway/audit/audit-records.ts';
import { refuse } from '../gateway/http/errors.ts';
import { addAssets } from './html/assets.ts';
import { addPage, createEntrance, createFormCheck } from './html/frame.ts';
import { addUploads, type Receive, readFields } from './html/upload.ts';
import { addAccounts } from './pages/accounts.ts';
import { addApiKeys } from './pages/api-keys.ts';
import { addApprovals } from './pages/approvals.ts';
import { addAudit } from './pages/audit.ts';
import { addBatches } from './pages/batches.ts';
import { addBooks } from './pages/books.ts';
import { addClients } from './pages/clients.ts';
import { addCounter } from './pages/counter.ts';
import { addDeadLetters } from './pages/dead-letters.ts';
import { addErasure } from './pages/erasure.ts';
import { addFind } from './pages/find.ts';
import { addHolds } from './pages/holds.ts';
import { addKeptForm } from './pages/kept-form.ts';
import { addNotes } from './pages/notes.ts';
import { addOperations } from './pages/operations.ts';
import { addReversal } from './pages/reversal.ts';
import { addSignIn } from './pages/sign-in.ts';
import { addStatement } from './pages/statement.ts';
import { addHome, addToday } from './pages/today.ts';
import { addTransactions } from './pages/transactions.ts';
import { addWebhooks } from './pages/webhooks.ts';
import { createErrorPages } from './problems.ts';
import { createCookie } from './session/cookies.ts';
import type { EndedSessions } from './session/ended-sessions.ts';
import { createIssuer } from './session/issuer.ts';
import { createSessions } from './session/session.ts';

export interface DashboardOptions {
  issuer: string;
  clientId: string;
  clientSecret: string;
  /** The scopes to request at sign-in, separated by spaces. */
  scope: string;
  sessionSecrets: readonly string[];
  /** The public URL of the gateways, without a path. */
  publicUrl: string;
  ended: EndedSessions;
}

export interface DashboardDependencies extends DashboardOptions {
  verifyToken: VerifyToken;
  auditRecords: AuditRecords;
  /** The limit of failed authentications per address; undefined: no limit. */
  failureLimit: Limiter | undefined;
  /** The check of a file of payments asks what the API would ask. */
  fourEyes: FourEyes;
  /** Reads the body of a form and counts its bytes for the person. */
  receive: Receive;
  now: () => number;
  logger: Logger;
  /** Keeps the connection open after an error, unless the process is stopping. */
  keepConnection: (reply: FastifyReply) => void;
}

/** Pages that pass an instruction from one to the next seal it with the secrets of the sessions. */
const everything: readonly ((app: FastifyInstance, secrets: readonly string[], fourEyes: FourEyes) => void)[] = [
  addHome,
  addToday,
  addCounter,
  addBatches,
  addClients,
  addErasure,
  addNotes,
  addAccounts,
  addStatement,
  addHolds,
  addTransactions,
  addReversal,
  addFind,
  addApiKeys,
  addWebhooks,
  addBooks,
  addOperations,
  addDeadLetters,
  addApprovals,
  addAudit,
];

/**
 * The administration dashboard: pages for staff under /admin/ui, sign-in, static files. It has its own routes,
 * cookies, errors, and form parser, and does not affect those of the API.
 */
export async function addDashboard(app: FastifyInstance, deps: DashboardDependencies): Promise<void> {
  const { ended, now } = deps;
  const { origin, protocol } = new URL(deps.publicUrl);
  const isSecure = protocol === 'https:';
  const cookie = createCookie('bank_session', isSecure);
  const sessions = createSessions({ secrets: deps.sessionSecrets, ended, now });
  const issuer = createIssuer({ ...deps, redirectUri: `${origin}/admin/callback` });

  await app.register(async (pages) => {
    // These routes need no token or key, because they require a session.
    pages.addHook('onRoute', (route) => {
      route.config = { ...route.config, public: true };
    });
    pages.decorateRequest('visit', null);
    pages.decorateRequest('lapsed', null);
    pages.addHook('onRequest', createEntrance(app, { ...deps, sessions, cookie }));
    pages.removeAllContentTypeParsers();
    pages.addContentTypeParser(
      'application/x-www-form-urlencoded',
      async (request: FastifyRequest, payload: IncomingMessage) => readFields(await deps.receive(request, payload)),
    );
    pages.addHook('preHandler', createFormCheck(origin));
    addUploads(pages, deps.receive);
    pages.setErrorHandler(createErrorPages(deps));
    addAssets(pages);
    addSignIn(pages, {
      ...deps,
      publicUrl: origin,
      issuer,
      sessions,
      cookie,
      loginCookie: createCookie('bank_login', isSecure),
    });
    addKeptForm(pages, { secrets: deps.sessionSecrets, cookie: createCookie('bank_form', isSecure), origin, now });
    for (const add of everything) add(pages, deps.sessionSecrets, deps.fourEyes);
    addPage(pages, '/admin/ui/*', { title: 'Not found', scope: null }, () => {
      throw refuse('route_not_found', 'no page has this address');
    });
  });
}
