import { pino } from 'pino';
import { type Service, testApp } from '../../gateway/test/test-app.ts';
import { hs256Token, hs256Tokens } from '../../gateway/test/test-token.ts';
import { createEndedSessions } from '../session/ended-sessions.ts';
import { createSessions } from '../session/session.ts';

/** The dashboard without a browser and an issuer: people with sessions, in front of services that are a function. */
const secret = 'a secret of these tests only';
const publicUrl = 'http://bank.example';
export const issuer = 'http://127.0.0.1:1';

export async function testDashboard(service: Service, options: Parameters<typeof testApp>[1] = {}) {
  const ended = createEndedSessions({
    publisher: { publish: async () => undefined },
    prefix: 'test.',
    logger: pino({ level: 'silent' }),
  });
  const sessions = createSessions({ secrets: [secret], ended, now: Date.now });
  const made = await testApp(service, {
    dashboard: {
      issuer,
      clientId: 'dashboard',
      scope: 'openid',
      clientSecret: 'not asked here at all',
      sessionSecrets: [secret],
      publicUrl,
      ended,
    },
    tokens: { ...hs256Tokens, issuer },
    ...options,
  });
  /** A person with these scopes, separated by blanks. */
  const signedIn = (scope: string) => {
    const session = sessions.begin({
      actor: `jwt:${issuer}|ada`,
      token: hs256Token({ iss: issuer, sub: 'ada', scope, client_id: 'dashboard' }),
      name: 'Ada',
      expiresInMs: 3_600_000,
    });
    const cookie = `other=1; bank_session=${sessions.seal(session)}`;
    const get = (url: string, headers: Record<string, string> = {}) =>
      made.app.inject({ method: 'GET', url, headers: { host: 'bank.example', cookie, ...headers } });
    const post = (url: string, fields: Record<string, string>, headers: Record<string, string> = {}) =>
      made.app.inject({
        method: 'POST',
        url,
        headers: { host: 'bank.example', cookie, 'content-type': 'application/x-www-form-urlencoded', ...headers },
        payload: new URLSearchParams(fields).toString(),
      });
    return { session, cookie, get, post };
  };
  return { ...made, sessions, signedIn };
}
