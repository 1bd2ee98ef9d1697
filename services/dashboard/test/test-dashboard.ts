import { randomUUID } from 'node:crypto';
import { pino } from 'pino';
import { createMetrics } from '#libs/service/metrics.ts';
import { type Answer, type Service, testApp } from '../../gateway/test/test-app.ts';
import { testToken, testTokens } from '../../gateway/test/test-token.ts';
import { createApp } from '../app.ts';
import { createDashboardMetrics } from '../metrics.ts';
import { createSessions } from '../session/session.ts';

/**
 * The dashboard without a browser and an issuer: people with sessions, in front of a gateway that it calls over HTTP, and
 * services that are a function.
 */
const secret = 'a secret of these tests only';
const publicUrl = 'http://bank.example';
export const issuer = 'http://127.0.0.1:1';

/** The replies to messages by their names; a function makes one of the message's data. */
export type Answers = Record<string, Answer | ((data: Record<string, unknown>) => Answer)>;

/** A service that gives the current answers, and no reply to messages that have none. */
export const answering =
  (current: () => Answers): Service =>
  ({ name, data }) => {
    const answer = current()[name] ?? 'no_reply';
    return typeof answer === 'function' ? answer(data) : answer;
  };

export async function testDashboard(service: Service, options: Parameters<typeof testApp>[1] = {}) {
  const { logger = pino({ level: 'silent' }) } = options;
  const gateway = await testApp(service, {
    tokens: { ...testTokens, issuer },
    trustProxy: ['loopback'],
    ...options,
  });
  const app = await createApp({
    api: { url: await gateway.app.listen({ host: '127.0.0.1', port: 0 }) },
    issuer,
    clientId: 'dashboard',
    clientSecret: 'not asked here at all',
    scope: 'openid',
    sessionSecrets: [secret],
    publicUrl,
    trustProxy: [],
    now: Date.now,
    logger,
    metrics: createDashboardMetrics(createMetrics('dashboard')),
  });
  app.addHook('onClose', () => gateway.app.close());
  const sessions = createSessions({ secrets: [secret], now: Date.now });
  /** A person with these scopes, separated by blanks. */
  const signedIn = (scope: string) => {
    const session = sessions.begin({
      id: sessions.newId(),
      actor: `jwt:${issuer}|ada`,
      // A token of its own, because signing out ends it.
      token: testToken({ iss: issuer, sub: 'ada', scope, client_id: 'dashboard', jti: randomUUID() }),
      scopes: scope,
      name: 'Ada',
      expiresInMs: 3_600_000,
    });
    const cookie = `other=1; bank_session=${sessions.seal(session)}`;
    const get = (url: string, headers: Record<string, string> = {}) =>
      app.inject({ method: 'GET', url, headers: { host: 'bank.example', cookie, ...headers } });
    const post = (url: string, fields: Record<string, string>, headers: Record<string, string> = {}) =>
      app.inject({
        method: 'POST',
        url,
        headers: { host: 'bank.example', cookie, 'content-type': 'application/x-www-form-urlencoded', ...headers },
        payload: new URLSearchParams(fields).toString(),
      });
    return { session, cookie, get, post };
  };
  return { ...gateway, app, gateway: gateway.app, sessions, signedIn };
}
