import Fastify from 'fastify';
import { pino } from 'pino';
import { afterEach, expect, it } from 'vitest';
import type { AuditRecord } from '#libs/contracts/audit.ts';
import { testApp } from '../../gateway/test/test-app.ts';
import { testToken, testTokens } from '../../gateway/test/test-token.ts';
import { createApi } from '../api.ts';
import { createCookie } from '../session/cookies.ts';
import { type Issuer, SignInFailed, type SignInFault } from '../session/issuer.ts';
import { createSessions } from '../session/session.ts';
import { addSignIn } from './sign-in.ts';

/**
 * The audit records of sign-ins, and that nobody is signed in without one. The issuer is a function here; the end-to-end
 * tests use a real one.
 */
let close: () => Promise<unknown> = async () => undefined;
afterEach(() => close());

const actor = `jwt:${testTokens.issuer}|ada`;

async function start({
  fault,
  isBrokerAway = false,
  isAway = false,
  claims = {},
  ofIdToken = {},
}: {
  fault?: SignInFault;
  isBrokerAway?: boolean;
  isAway?: boolean;
  claims?: Record<string, unknown>;
  ofIdToken?: Record<string, unknown>;
} = {}) {
  const logger = pino({ level: 'silent' });
  const gateway = await testApp(undefined, {
    tokens: testTokens,
    trustProxy: ['loopback'],
    authFailuresPerMinute: 2,
    ...(isBrokerAway && { auditRecords: { ...noRecords, record: () => Promise.reject(new Error('away')) } }),
  });
  const url = await gateway.app.listen({ host: '127.0.0.1', port: 0 });
  // They begin alike.
  const states = ['AAAA', 'AgAA'];
  const issuer: Issuer = {
    begin: async () => ({
      url: 'https://issuer.example/auth',
      verifier: 'v',
      state: states.shift() ?? 'u',
      nonce: 'n',
    }),
    async finish() {
      if (fault) throw new SignInFailed(fault, 'no');
      const token = testToken({ sub: 'ada', azp: 'dashboard', scope: 'clients:read', ...claims });
      return {
        token,
        idToken: testToken({ sub: 'ada', aud: 'dashboard', name: 'Ada Lovelace', ...ofIdToken }),
        name: 'Ada',
        expiresInMs: 60_000,
      };
    },
  };
  const app = Fastify();
  close = () => Promise.all([app.close(), gateway.app.close()]);
  const sessions = createSessions({ secrets: ['a secret'], now: Date.now });
  addSignIn(app, {
    issuer,
    logger,
    now: Date.now,
    sessions,
    cookie: createCookie('bank_session', false),
    loginCookie: (slot) => createCookie(`bank_login_${slot}`, false),
    hasKeptForm: () => false,
    sessionSecrets: ['a secret'],
    publicUrl: 'http://bank.example',
    callApi: createApi({ url: isAway ? 'http://127.0.0.1:1' : url }),
  });
  const begun = await app.inject({ url: '/admin/login/start', headers: { host: 'bank.example' } });
  const cookie = String(begun.headers['set-cookie']).split(';')[0] ?? '';
  const beginAgain = () =>
    app.inject({ url: '/admin/login/start?to=/admin/ui/audit', headers: { host: 'bank.example', cookie } });
  const comeBack = (headers: Record<string, string> = { cookie }) =>
    app.inject({ url: '/admin/callback?code=c&state=AAAA', headers, remoteAddress: '203.0.113.7' });
  const records = async () => {
    await gateway.auditRecords.flush();
    const audited = gateway.recorded.filter(({ topic }) => topic === 'test.accounts.commands');
    return audited.map(({ value }) => JSON.parse(String(value)) as AuditRecord);
  };
  return { comeBack, beginAgain, cookie, records, sessions };
}

const noRecords = {
  refused: () => undefined,
  destinationRefused: () => undefined,
  done: () => undefined,
  note: () => undefined,
  flush: async () => undefined,
  start: () => undefined,
  stop: async () => undefined,
};

const isIn = ({ headers }: { headers: Record<string, unknown> }) =>
  String(headers['set-cookie']).includes('bank_session=');

it('a sign-in is recorded with the address of the browser before the session is created, with the scopes of the token', async () => {
  const { comeBack, records, sessions } = await start();
  const answer = await comeBack();
  expect([answer.statusCode, isIn(answer)]).toEqual([303, true]);
  const sealed = /bank_session=([^;]+)/.exec(String(answer.headers['set-cookie']))?.[1] ?? '';
  const session = sessions.open(sealed);
  expect(session).toMatchObject({ actor, scopes: 'clients:read', name: 'Ada' });
  expect(await records()).toEqual([
    expect.objectContaining({
      actor,
      action: 'sign_in',
      outcome: 'success',
      resource_id: session?.id,
      address: '203.0.113.7',
      details: {},
    }),
  ]);
});

it('a person whose ID token is too long for the API, because of many groups, signs in without a display name', async () => {
  // contract: audit-16
  const { comeBack, records } = await start({ ofIdToken: { groups: Array(2_000).fill('of-nine-') } });
  const answer = await comeBack();
  expect([answer.statusCode, isIn(answer)]).toEqual([303, true]);
  const [record, ...more] = await records();
  expect([record?.action, record && 'actor_name' in record, more]).toEqual(['sign_in', false, []]);
});

it('tabs sign in side by side: the one that began first still comes back', async () => {
  const { comeBack, beginAgain } = await start();
  const second = await beginAgain();
  const cookies = String(second.headers['set-cookie']);
  expect(cookies).toContain('bank_login_2=');
  expect(cookies).not.toContain('bank_login_0=');
  expect(isIn(await comeBack())).toBe(true);
});

it('a form that the person opened in another tab before this sign-in is of the new session too, and of nobody else', async () => {
  const { comeBack, cookie, sessions } = await start();
  const signIn = async (earlier: string) => {
    const session = sessions.begin({ id: 's', actor: earlier, token: 't', name: 'x', scopes: '', expiresInMs: 0 });
    const answer = await comeBack({ cookie: `${cookie}; bank_session=${sessions.seal(session)}` });
    const sealed = /bank_session=([^;]+)/.exec(String(answer.headers['set-cookie']))?.[1] ?? '';
    return sessions.open(sealed)?.csrf === session.csrf;
  };
  expect([await signIn(actor), await signIn('jwt:x|eve')]).toEqual([true, false]);
});

it.each([{ isBrokerAway: true }, { isAway: true }])(
  'a sign-in that cannot be recorded is refused: %j',
  async (away) => {
    const { comeBack } = await start(away);
    const answer = await comeBack();
    expect([answer.statusCode, isIn(answer), answer.body.includes('cannot record your sign-in')]).toEqual([
      503,
      false,
      true,
    ]);
  },
);

it('a token that the API does not accept is refused, and so is one that is not of a person of the bank', async () => {
  const unknown = await start({ claims: { aud: 'another' } });
  const answer = await unknown.comeBack();
  expect([answer.statusCode, isIn(answer)]).toEqual([500, false]);
  await close();
  const machine = await start({ claims: { azp: 'ada' } });
  const other = await machine.comeBack();
  expect([other.statusCode, isIn(other)]).toEqual([403, false]);
});

it.each([
  ['refused', 403, 1],
  ['mismatch', 400, 1],
  ['issuer_away', 503, 0],
] as const)('a sign-in that fails as %s is %s, and recorded %s times', async (fault, status, times) => {
  const { comeBack, records } = await start({ fault });
  const answer = await comeBack();
  expect([answer.statusCode, isIn(answer)]).toEqual([status, false]);
  expect(await records()).toEqual(
    Array(times).fill(
      expect.objectContaining({
        actor: 'unauthenticated',
        action: 'sign_in',
        outcome: 'invalid_credentials',
        details: expect.objectContaining({ count: 1 }),
        address: '203.0.113.7',
      }),
    ),
  );
});

it('a callback without a sign-in is recorded too, beyond the limit of its address as a count', async () => {
  const { comeBack, records } = await start();
  const statuses = [];
  for (let i = 0; i < 4; i++) statuses.push((await comeBack({})).statusCode);
  expect(statuses).toEqual([400, 400, 429, 429]);
  expect((await records()).map(({ outcome, details }) => [outcome, details['count']])).toEqual([
    ['invalid_credentials', 2],
    ['rate_limited', 2],
  ]);
});
