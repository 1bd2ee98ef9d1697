import { describe, expect, it } from 'vitest';
import { createSealer } from './seal.ts';
import { createSessions, idleMs, longestMs } from './session.ts';

const secret = 'a secret of these tests only';
const minute = 60_000;
const hour = 60 * minute;

function setUp() {
  const time = { ms: Date.parse('2026-01-02T03:04:05Z') };
  const now = () => time.ms;
  const sessions = createSessions({ secrets: [secret], now });
  const person = {
    id: 'ses_1',
    actor: 'jwt:https://issuer.example|ada',
    scopes: 'clients:read keys:manage',
    token: 'header.claims.signature',
    name: 'Ada <Admin>',
    expiresInMs: hour,
  };
  return { time, sessions, person, now };
}

const sealed = (sessions: ReturnType<typeof createSessions>, session: Parameters<typeof sessions.seal>[0]): string =>
  sessions.seal(session) ?? expect.fail('it was not sealed');

describe('sealing', () => {
  it('a sealed value can be opened and reveals nothing', () => {
    const sealer = createSealer([secret], 'session');
    const text = sealer.seal('the token, and é');
    expect(sealer.open(text)).toBe('the token, and é');
    expect(Buffer.from(text, 'base64url').toString('latin1')).not.toContain('token');
    expect(sealer.seal('the token, and é')).not.toBe(text);
  });

  it('a value that was changed in any byte, cut, or sealed with another secret or for another purpose cannot be opened', () => {
    const sealer = createSealer([secret], 'session');
    const bytes = Buffer.from(sealer.seal('payload'), 'base64url');
    for (let at = 0; at < bytes.length; at++) {
      const changed = Buffer.from(bytes);
      changed[at] = (changed[at] ?? 0) ^ 1;
      expect(sealer.open(changed.toString('base64url'))).toBeUndefined();
      expect(sealer.open(bytes.subarray(0, at).toString('base64url'))).toBeUndefined();
    }
    for (const other of [createSealer([`${secret}!`], 'session'), createSealer([secret], 'login')])
      expect(other.open(bytes.toString('base64url'))).toBeUndefined();
    expect(sealer.open('')).toBeUndefined();
  });
});

describe('sessions', () => {
  it('a sealed session can be opened by every dashboard with the same secret, and by no other', () => {
    const { sessions, person, now } = setUp();
    const session = sessions.begin(person);
    const cookie = sealed(sessions, session);
    expect(createSessions({ secrets: [secret], now }).open(cookie)).toEqual(session);
    expect(createSessions({ secrets: ['another secret, also of tests'], now }).open(cookie)).toBeUndefined();
    const rotated = createSessions({ secrets: ['another secret, also of tests', secret], now });
    expect(rotated.open(cookie)).toEqual(session);
    // The first secret seals, so the second one can be removed later.
    expect(sessions.open(sealed(rotated, session))).toBeUndefined();
    expect(sessions.open(`${cookie.slice(0, -2)}AA`)).toBeUndefined();
  });

  it('every session has its own id and form token', () => {
    const { sessions, person } = setUp();
    const [one, other] = [sessions.begin(person), sessions.begin(person)];
    expect(one.csrf).not.toBe(other.csrf);
    expect(sessions.newId()).not.toBe(sessions.newId());
    expect(sessions.begin({ ...person, csrf: one.csrf }).csrf).toBe(one.csrf);
  });

  it('ends with the access token, used or not', () => {
    const { sessions, person, time } = setUp();
    let session = sessions.begin(person);
    for (let passed = 0; passed < 55; passed += 5) {
      time.ms += 5 * minute;
      session = sessions.touch(session) ?? session;
      expect(sessions.open(sealed(sessions, session))).toEqual(session);
    }
    time.ms += 5 * minute;
    expect(sessions.open(sealed(sessions, session))).toBeUndefined();
  });

  it('ends after 30 idle minutes', () => {
    // asvs: 7.3.1
    const { sessions, person, time } = setUp();
    const cookie = sealed(sessions, sessions.begin(person));
    time.ms += idleMs - 1;
    expect(sessions.open(cookie)).toBeDefined();
    time.ms += 1;
    expect(sessions.open(cookie)).toBeUndefined();
  });

  it('is warned of five minutes before its end, and a shorter one in its last quarter', () => {
    const { sessions, person } = setUp();
    const warned = (minutes: number) =>
      sessions.left(sessions.begin({ ...person, expiresInMs: minutes * minute })).warn_ms / minute;
    expect([60, 20, 5].map(warned)).toEqual([5, 5, 1.25]);
  });

  it('ends after 12 hours, however long the token is valid', () => {
    // asvs: 7.3.2
    const { sessions, person, time } = setUp();
    expect(sessions.begin({ ...person, expiresInMs: 1000 * hour }).expires_ms).toBe(time.ms + longestMs);
  });

  it('is written again only if it was used a while ago', () => {
    const { sessions, person, time } = setUp();
    const session = sessions.begin(person);
    time.ms += 59_999;
    expect(sessions.touch(session)).toBeUndefined();
    time.ms += 1;
    expect(sessions.touch(session)).toEqual({ ...session, seen_ms: time.ms });
  });

  it('is not sealed if browsers would not keep the cookie', () => {
    const { sessions, person } = setUp();
    expect(sessions.seal(sessions.begin({ ...person, token: 'x'.repeat(4000) }))).toBeUndefined();
  });
});

it('a new sign-in is required for a cookie of an earlier version', () => {
  const { sessions, person } = setUp();
  const { scopes: _, ...earlier } = sessions.begin(person);
  expect(sessions.open(createSealer([secret], 'session').seal(JSON.stringify(earlier)))).toBeUndefined();
});
