import type { FastifyInstance } from 'fastify';
import type { Logger } from 'pino';
import { refuse } from '../http/errors.ts';
import type { AuditRecords } from '../access/audit-records.ts';
import type { Limiter } from '../access/limits.ts';
import type { VerifyToken } from '../access/tokens.ts';
import { addAccounts } from './pages/accounts.ts';
import { addApprovals } from './pages/approvals.ts';
import { addApiKeys } from './pages/api-keys.ts';
import { addAssets } from './html/assets.ts';
import { addAudit } from './pages/audit.ts';
import { addBooks } from './pages/books.ts';
import { addClients } from './pages/clients.ts';
import { createCookie } from './session/cookies.ts';
import type { EndedSessions } from './session/ended-sessions.ts';
import { addDeadLetters } from './pages/dead-letters.ts';
import { addFind } from './pages/find.ts';
import { addPage, createEntrance } from './html/frame.ts';
import { addHome } from './pages/home.ts';
import { createIssuer } from './session/issuer.ts';
import { addOperations } from './pages/operations.ts';
import { createErrorPages } from './problems.ts';
import { createSessions } from './session/session.ts';
import { addSignIn } from './session/sign-in.ts';
import { addStatement } from './pages/statement.ts';
import { addTransactions } from './pages/transactions.ts';

export interface DashboardOptions {
  issuer: string;
  clientId: string;
  clientSecret: string;
  sessionSecret: string;
  /** Where browsers reach the gateways, without a path. */
  publicUrl: string;
  ended: EndedSessions;
}

export interface DashboardDependencies extends DashboardOptions {
  verifyToken: VerifyToken;
  auditRecords: AuditRecords;
  /** Of failed authentications, per address; undefined: none. */
  failureLimit: Limiter | undefined;
  now: () => number;
  logger: Logger;
}

/**
 * The administration dashboard: pages for staff under /admin/ui, sign-in, static files. It has routes, cookies, errors and a
 * form parser of its own; the API's routes know nothing of it.
 */
export async function addDashboard(app: FastifyInstance, deps: DashboardDependencies): Promise<void> {
  const { ended, now, logger } = deps;
  const { origin, protocol } = new URL(deps.publicUrl);
  const isSecure = protocol === 'https:';
  const cookie = createCookie('bank_session', isSecure);
  const sessions = createSessions({ secret: deps.sessionSecret, ended, now });
  const issuer = createIssuer({ issuer: deps.issuer, clientId: deps.clientId, clientSecret: deps.clientSecret, redirectUri: `${origin}/admin/callback` });

  await app.register(async (pages) => {
    // The gate, which asks for a token or key, lets these by: they ask for the session.
    pages.addHook('onRoute', (route) => {
      route.config = { ...route.config, public: true };
    });
    pages.decorateRequest('visit', null);
    pages.addHook('onRequest', createEntrance(app, { sessions, cookie, verifyToken: deps.verifyToken, auditRecords: deps.auditRecords, origin }));
    pages.removeAllContentTypeParsers();
    pages.addContentTypeParser('application/x-www-form-urlencoded', { parseAs: 'string' }, (_request, body, done) => done(null, new URLSearchParams(String(body))));
    pages.setErrorHandler(createErrorPages(deps));
    addAssets(pages);
    addSignIn(pages, { issuer, sessions, ended, cookie, loginCookie: createCookie('bank_login', isSecure), secret: deps.sessionSecret, publicUrl: origin, verifyToken: deps.verifyToken, auditRecords: deps.auditRecords, failureLimit: deps.failureLimit, now, logger });
    addHome(pages);
    addClients(pages, { origin });
    addAccounts(pages, { origin });
    addStatement(pages, { now });
    addTransactions(pages);
    addFind(pages);
    addApiKeys(pages, { origin });
    addBooks(pages, { now, origin });
    addOperations(pages, { now });
    addDeadLetters(pages, { origin });
    addApprovals(pages, { origin });
    addAudit(pages);
    addPage(pages, '/admin/ui/*', { title: 'Not found', scope: null }, () => {
      throw refuse('route_not_found', 'no page has this address');
    });
  });
}
