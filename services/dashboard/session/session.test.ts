import { pino } from 'pino';
import { describe, expect, it } from 'vitest';
import { createEndedSessions } from './ended-sessions.ts';
import { createSealer } from './seal.ts';
import { createSessions, idleMs, longestMs } from './session.ts';

const secret = 'a secret of these tests only';
const minute = 60_000;
const hour = 60 * minute;

function setUp() {
  const time = { ms: Date.parse('2026-01-02T03:04:05Z') };
  const now = () => time.ms;
  const sent: { key: string | null; value: string }[] = [];
  const publisher = {
    publish: async ({ key, value }: { key: string | null; value: unknown }) =>
      void sent.push({ key, value: String(value) }),
  };
  const make = () => createEndedSessions({ publisher, prefix: 'test.', logger: pino({ level: 'silent' }), now });
  const ended = make();
  const sessions = createSessions({ secrets: [secret], ended, now });
  const person = {
    actor: 'jwt:https://issuer.example|ada',
    token: 'header.claims.signature',
    name: 'Ada <Admin>',
    expiresInMs: hour,
  };
  return { time, sent, ended, sessions, person, now, make };
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
  it('a sealed session can be opened by every gateway with the same secret, and by no other', () => {
    const { sessions, person, ended, now } = setUp();
    const session = sessions.begin(person);
    const cookie = sealed(sessions, session);
    expect(createSessions({ secrets: [secret], ended, now }).open(cookie)).toEqual(session);
    expect(createSessions({ secrets: ['another secret, also of tests'], ended, now }).open(cookie)).toBeUndefined();
    const rotated = createSessions({ secrets: ['another secret, also of tests', secret], ended, now });
    expect(rotated.open(cookie)).toEqual(session);
    // The first secret seals, so the second one can be removed later.
    expect(sessions.open(sealed(rotated, session))).toBeUndefined();
    expect(sessions.open(`${cookie.slice(0, -2)}AA`)).toBeUndefined();
  });

  it('every session has its own id and form token', () => {
    const { sessions, person } = setUp();
    const [one, other] = [sessions.begin(person), sessions.begin(person)];
    expect(new Set([one.id, other.id, one.csrf, other.csrf]).size).toBe(4);
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
    const { sessions, person, time } = setUp();
    const cookie = sealed(sessions, sessions.begin(person));
    time.ms += idleMs - 1;
    expect(sessions.open(cookie)).toBeDefined();
    time.ms += 1;
    expect(sessions.open(cookie)).toBeUndefined();
  });

  it('ends after 12 hours, however long the token is valid', () => {
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

describe('a new sign-in', () => {
  it('ends earlier sessions of the same person, here immediately and elsewhere by a message; not those of others', async () => {
    const { sessions, person, ended, sent, make, now, time } = setUp();
    const [first, other] = [
      sessions.begin(person),
      sessions.begin({ ...person, actor: 'jwt:https://issuer.example|eve' }),
    ];
    time.ms += minute;
    const second = sessions.begin(person);
    await ended.endEarlier(second);
    const elsewhere = make();
    const copy = createSessions({ secrets: [secret], ended: elsewhere, now });
    for (const { key, value } of sent) elsewhere.take(key, Buffer.from(value));
    for (const gateway of [sessions, copy])
      expect([first, second, other].map((session) => gateway.open(sealed(sessions, session)) !== undefined)).toEqual([
        false,
        true,
        true,
      ]);
    // A late message about an earlier sign-in changes nothing.
    elsewhere.take(
      person.actor,
      Buffer.from(
        JSON.stringify({
          expires_at: new Date(time.ms + hour).toISOString(),
          before: new Date(first.begun_ms).toISOString(),
        }),
      ),
    );
    expect(copy.open(sealed(sessions, first))).toBeUndefined();
  });

  it('is required for a cookie of an earlier version', () => {
    const { sessions, person } = setUp();
    const { actor: _, ...earlier } = sessions.begin(person);
    expect(sessions.open(createSealer([secret], 'session').seal(JSON.stringify(earlier)))).toBeUndefined();
  });
});

describe('ended sessions', () => {
  it('an ended session cannot be opened, here immediately and elsewhere by a message', async () => {
    const { sessions, person, ended, sent, make, now } = setUp();
    const session = sessions.begin(person);
    const cookie = sealed(sessions, session);
    await ended.end(session);
    expect(sessions.open(cookie)).toBeUndefined();

    const elsewhere = make();
    const other = createSessions({ secrets: [secret], ended: elsewhere, now });
    expect(other.open(cookie)).toBeDefined();
    for (const { key, value } of sent) elsewhere.take(key, Buffer.from(value));
    expect(other.open(cookie)).toBeUndefined();
  });

  it('is ended here although the broker does not accept the message', async () => {
    const { sessions, person, now } = setUp();
    const publisher = { publish: () => Promise.reject(new Error('away')) };
    const ended = createEndedSessions({ publisher, prefix: '', logger: pino({ level: 'silent' }), now });
    const session = sessions.begin(person);
    await expect(ended.end(session)).rejects.toThrow('away');
    expect(ended.isEnded(session)).toBe(true);
  });

  it('sessions that expired by themselves are forgotten, and unreadable messages are ignored', () => {
    const { ended, time } = setUp();
    ended.take('ses_1', Buffer.from(JSON.stringify({ expires_at: new Date(time.ms + 1000).toISOString() })));
    ended.take('ses_2', Buffer.from('{"expires_at":"soon"}'));
    ended.take('ses_3', Buffer.from('nonsense'));
    ended.take('ses_4', null);
    expect(['ses_1', 'ses_2', 'ses_3', 'ses_4'].map((id) => ended.isEnded({ id, actor: 'x', begun_ms: 0 }))).toEqual([
      true,
      false,
      false,
      false,
    ]);
    time.ms += 2000;
    ended.take('ses_5', Buffer.from(JSON.stringify({ expires_at: new Date(time.ms + 1000).toISOString() })));
    expect(['ses_1', 'ses_5'].map((id) => ended.isEnded({ id, actor: 'x', begun_ms: 0 }))).toEqual([false, true]);
  });
});
