import { randomBytes } from 'node:crypto';
import { z } from 'zod';
import { maxSealedLength } from './cookies.ts';
import { createSealer } from './seal.ts';

/**
 * The session of a signed-in person. It is stored only in the browser's cookie, sealed, so every dashboard with the same
 * SESSION_SECRET can read it. It ends early when the API refuses its token, because the person signed out, or in again.
 */
const sessionSchema = z.object({
  id: z.string(),
  /** The actor to whom it belongs. */
  actor: z.string(),
  /** The person's access token, with which the dashboard calls the API. */
  token: z.string(),
  name: z.string(),
  /** The scopes of the token, separated by spaces. */
  scopes: z.string(),
  /** Included in every form, so that no other site can send one. The next session of the person in this browser has it, too. */
  csrf: z.string(),
  begun_ms: z.number(),
  expires_ms: z.number(),
  seen_ms: z.number(),
});
export type Session = z.infer<typeof sessionSchema>;

export const idleMs = 30 * 60_000;
/** The maximum duration, even if the token is valid for longer. */
export const longestMs = 12 * 3_600_000;
/** The warning of the end of a session that is not shorter than four times this. */
const warnMs = 5 * 60_000;
/** The cookie is renewed when it is this old. */
const touchMs = 60_000;

export interface SessionsOptions {
  secrets: readonly string[];
  now: () => number;
}

export type Sessions = ReturnType<typeof createSessions>;

export function createSessions({ secrets, now }: SessionsOptions) {
  const sealer = createSealer(secrets, 'session');
  const read = (sealed: string): Session | undefined => {
    const text = sealer.open(sealed);
    // A session of an earlier version has other fields; the person must sign in again.
    return text === undefined ? undefined : sessionSchema.safeParse(JSON.parse(text)).data;
  };
  return {
    newId: () => `ses_${randomBytes(16).toString('hex')}`,
    /** Creates a session. It ends with the token, after `longestMs`, or after `idleMs` without use. */
    begin(
      person: Pick<Session, 'id' | 'actor' | 'token' | 'name' | 'scopes'> & {
        expiresInMs: number;
        csrf?: string | undefined;
      },
    ): Session {
      const { expiresInMs, csrf = randomBytes(16).toString('base64url'), ...rest } = person;
      const nowMs = now();
      return {
        ...rest,
        csrf,
        begun_ms: nowMs,
        expires_ms: nowMs + Math.min(expiresInMs, longestMs),
        seen_ms: nowMs,
      };
    },
    /** Returns the cookie's value, or undefined if it is too large for a cookie. */
    seal(session: Session): string | undefined {
      const sealed = sealer.seal(JSON.stringify(session));
      return sealed.length > maxSealedLength ? undefined : sealed;
    },
    /** Returns the session of a cookie, also if it has ended, to find out who sent a form; undefined if it is not ours. */
    read,
    /** Returns the session of a cookie, or undefined if it was not sealed by us, or has expired. */
    open(sealed: string): Session | undefined {
      const session = read(sealed);
      const nowMs = now();
      const isOver = !session || session.expires_ms <= nowMs || session.seen_ms + idleMs <= nowMs;
      return isOver ? undefined : session;
    },
    /**
     * Returns for how long it lasts without use, and at most, in milliseconds; `warn_ms`: when less than this is left, the
     * person is warned.
     */
    left({ seen_ms, begun_ms, expires_ms }: Session) {
      return {
        idle_ms: seen_ms + idleMs - now(),
        most_ms: expires_ms - now(),
        warn_ms: Math.min(warnMs, Math.floor((expires_ms - begun_ms) / 4)),
      };
    },
    /** Returns the session with its last use set to now, or undefined if it was used a moment ago. */
    touch: (session: Session): Session | undefined =>
      now() - session.seen_ms >= touchMs ? { ...session, seen_ms: now() } : undefined,
  };
}
