import Fastify from 'fastify';
import { pino } from 'pino';
import { afterEach, expect, it } from 'vitest';
import type { AuditRecord } from '#libs/contracts/audit.ts';
import { createLimiter } from '../../gateway/access/limits.ts';
import { createAuditRecords } from '../../gateway/audit/audit-records.ts';
import { createCookie } from '../session/cookies.ts';
import { createEndedSessions } from '../session/ended-sessions.ts';
import { type Issuer, SignInFailed, type SignInFault } from '../session/issuer.ts';
import { createSessions } from '../session/session.ts';
import { addSignIn } from './sign-in.ts';

/**
 * The audit records of sign-ins, and that nobody is signed in without one. The issuer is a function
 * here; the end-to-end tests use a real one.
 */
let close: () => Promise<void> = async () => undefined;
afterEach(() => close());

const actor = 'jwt:https://issuer.example|ada';

async function start({
  fault,
  isBrokerAway = false,
  isKnown = true,
}: {
  fault?: SignInFault;
  isBrokerAway?: boolean;
  isKnown?: boolean;
} = {}) {
  const logger = pino({ level: 'silent' });
  const records: AuditRecord[] = [];
  const publish = async ({ topic, value }: { topic: string; value: string | Buffer | null }) => {
    if (isBrokerAway) throw new Error('away');
    if (topic.endsWith('accounts.commands')) records.push(JSON.parse(String(value)) as AuditRecord);
  };
  const told: { key: string | null; value: unknown }[] = [];
  const ended = createEndedSessions({
    publisher: {
      publish: async ({ key, value }: { key: string | null; value: unknown }) =>
        void told.push({ key, value: JSON.parse(String(value)) }),
    },
    prefix: '',
    logger,
  });
  const issuer: Issuer = {
    begin: async () => ({ url: 'https://issuer.example/auth', verifier: 'v', state: 's', nonce: 'n' }),
    async finish() {
      if (fault) throw new SignInFailed(fault, 'no');
      return { token: 'token', name: 'Ada', expiresInMs: 60_000 };
    },
  };
  const app = Fastify();
  close = () => app.close();
  const auditRecords = createAuditRecords({
    publisher: { publish },
    prefix: '',
    logger,
    now: Date.now,
    metrics: { activity: () => undefined, destinationRefusals: () => undefined },
  });
  addSignIn(app, {
    issuer,
    ended,
    logger,
    now: Date.now,
    sessions: createSessions({ secrets: ['a secret'], ended, now: Date.now }),
    cookie: createCookie('bank_session', false),
    loginCookie: createCookie('bank_login', false),
    sessionSecrets: ['a secret'],
    publicUrl: 'http://bank.example',
    verifyToken: async () => (isKnown ? { actor, scopes: new Set<string>(), boundClientId: undefined } : undefined),
    auditRecords,
    failureLimit: createLimiter(2),
  });
  const begun = await app.inject({ url: '/admin/login/start', headers: { host: 'bank.example' } });
  const cookie = String(begun.headers['set-cookie']).split(';')[0] ?? '';
  const comeBack = (headers: Record<string, string> = { cookie }) =>
    app.inject({ url: '/admin/callback?code=c&state=s', headers });
  return { comeBack, records, told, flush: () => auditRecords.flush() };
}

const isIn = ({ headers }: { headers: Record<string, unknown> }) =>
  String(headers['set-cookie']).includes('bank_session=');

it('a sign-in is recorded before the session is created', async () => {
  const { comeBack, records } = await start();
  const answer = await comeBack();
  expect([answer.statusCode, isIn(answer)]).toEqual([303, true]);
  expect(records).toEqual([
    expect.objectContaining({
      actor,
      action: 'sign_in',
      outcome: 'success',
      resource_id: expect.stringMatching(/^ses_[0-9a-f]{32}$/),
      address: '127.0.0.1',
      details: {},
    }),
  ]);
});

it('every gateway receives the end of that person’s earlier sessions', async () => {
  const { comeBack, told } = await start();
  await comeBack();
  expect(told).toEqual([{ key: actor, value: { expires_at: expect.any(String), before: expect.any(String) } }]);
});

it('a sign-in that cannot be recorded is refused', async () => {
  const { comeBack } = await start({ isBrokerAway: true });
  const answer = await comeBack();
  expect([answer.statusCode, isIn(answer), answer.body.includes('cannot record your sign-in')]).toEqual([
    503,
    false,
    true,
  ]);
});

it('a token that the API would not accept is refused without a record', async () => {
  const { comeBack, records } = await start({ isKnown: false });
  const answer = await comeBack();
  expect([answer.statusCode, isIn(answer), records]).toEqual([500, false, []]);
});

it.each([
  ['refused', 403, 1],
  ['mismatch', 400, 1],
  ['issuer_away', 503, 0],
] as const)('a sign-in that fails as %s is %s, and recorded %s times', async (fault, status, times) => {
  const { comeBack, records, flush } = await start({ fault });
  const answer = await comeBack();
  expect([answer.statusCode, isIn(answer)]).toEqual([status, false]);
  await flush();
  expect(records).toEqual(
    Array(times).fill(
      expect.objectContaining({
        actor: 'unauthenticated',
        action: 'sign_in',
        outcome: 'invalid_credentials',
        details: expect.objectContaining({ count: 1 }),
        address: '127.0.0.1',
      }),
    ),
  );
});

it('a callback without a sign-in is recorded too, beyond the limit of its address as a count', async () => {
  const { comeBack, records, flush } = await start();
  const statuses = [];
  for (let i = 0; i < 4; i++) statuses.push((await comeBack({})).statusCode);
  expect(statuses).toEqual([400, 400, 429, 429]);
  await flush();
  expect(records.map(({ outcome, details }) => [outcome, details['count']])).toEqual([
    ['invalid_credentials', 2],
    ['rate_limited', 2],
  ]);
});
