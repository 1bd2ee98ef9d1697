import { hash } from 'node:crypto';
import type { IncomingHttpHeaders } from 'node:http';
import type { FastifyReply } from 'fastify';
import type { Cookies } from './cookies.ts';

/**
 * When a person last looked at what was decided about their requests. The browser keeps it for a month; on another one, and
 * after somebody else has looked in this one, it is unknown.
 */

export type Looked = ReturnType<typeof createLooked>;

const keptSeconds = 30 * 24 * 60 * 60;
/** Several people may use one browser. */
const personOf = (actor: string) => hash('sha256', `looked ${actor}`).slice(0, 16);

export function createLooked(cookie: Cookies) {
  return {
    /** Returns the time in ms, or undefined. */
    read(headers: IncomingHttpHeaders, actor: string): number | undefined {
      const [, person, ms] = /^([0-9a-f]{16})\.(\d{1,15})$/.exec(cookie.read(headers) ?? '') ?? [];
      return person === personOf(actor) ? Number(ms) : undefined;
    },
    write: (reply: FastifyReply, actor: string, ms: number): void =>
      cookie.write(reply, `${personOf(actor)}.${ms}`, keptSeconds),
  };
}
