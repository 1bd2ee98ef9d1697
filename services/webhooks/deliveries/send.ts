import { createHmac, createSecretKey } from 'node:crypto';
import http from 'node:http';
import https from 'node:https';
import { isIP } from 'node:net';
import { type AllowedAddresses, unreachable } from './addresses.ts';
import type { Attempt } from './verdict.ts';

/** How a request ended. Without a response, the status is null and the error says why. */
export type Sent = Pick<Attempt, 'response_status' | 'error' | 'duration_ms'>;

type Ended = Omit<Sent, 'duration_ms'>;
type Headers = Record<string, string>;

const unanswered = (error: string): Ended => ({ response_status: null, error });
/** Reports that an attempt ended without a request. */
export const unsent = (error: string): Sent => ({ ...unanswered(error), duration_ms: 0 });

const idleMs = 30_000;
/** The response body is not stored, and no more than this is read. */
const maxAnswerBytes = 64 * 1024;

/** Where a running attempt can be ended. */
export interface Ending {
  end?: () => void;
}

export type Sender = ReturnType<typeof createSender>;

/** Redirects are not followed: a 3xx response is a failure like any other. */
export function createSender(addresses: AllowedAddresses, timeoutMs = 15_000) {
  const options = { keepAlive: true, timeout: idleMs, lookup: addresses.lookup };
  const agents = { http: new http.Agent(options), https: new https.Agent(options) };
  const endedError = Object.assign(new Error('the attempt was ended'), { code: 'ELATE' });
  const lateError = Object.assign(new Error(`no answer within ${timeoutMs / 1000} s`), { code: 'ELATE' });

  function attempt(
    url: URL,
    headers: Headers,
    body: string,
    endsAt: number,
    at: Ending,
    isRepeat = false,
  ): Promise<Ended> {
    const isPlain = url.protocol === 'http:';
    const agent = isPlain ? agents.http : agents.https;
    return new Promise((done) => {
      const request = (isPlain ? http : https).request(url, { method: 'POST', agent, headers });
      // An AbortSignal for each request would cost a tenth of its CPU.
      const timer = setTimeout(() => request.destroy(lateError), endsAt - performance.now());
      at.end = () => request.destroy(endedError);
      let answer: Ended | undefined;
      let failure: Ended | Promise<Ended> = unanswered('the connection was closed without a response');
      // The last event of every request, and the only one after a 101.
      request.on('close', () => {
        clearTimeout(timer);
        done(answer ?? failure);
      });
      request.on('error', (error: NodeJS.ErrnoException) => {
        if (answer) return;
        const isStale = request.reusedSocket && error.code === 'ECONNRESET' && !isRepeat;
        failure = isStale ? attempt(url, headers, body, endsAt, at, true) : unanswered(failureReason(error));
      });
      request.on('response', (response) => {
        const { statusCode = 0 } = response;
        const isStatus = statusCode >= 100;
        answer = isStatus
          ? { response_status: statusCode, error: null }
          : unanswered('the response has no HTTP status');
        let bytes = 0;
        response.on('error', () => undefined);
        response.on('data', (chunk: Buffer) => {
          bytes += chunk.length;
          if (bytes > maxAnswerBytes) response.destroy();
        });
      });
      request.end(body);
    });
  }

  return {
    /**
     * Sends a POST, a second time if a kept-alive connection turns out to be closed. Never rejects; ends within
     * the timeout, in whatever way the connection ends. A response counts from its headers on; until its body has ended,
     * too, the attempt lasts, so that no receiver has more connections than attempts. `at.end` ends it at once.
     */
    async post(text: string, headers: Headers, body: string, at: Ending = {}): Promise<Sent> {
      const url = new URL(text);
      const host = url.hostname.replace(/^\[|\]$/g, '');
      // Node calls `lookup` only for names.
      if (isIP(host) !== 0 && !addresses.allows(host)) return unsent(unreachable);
      const all = { ...headers, 'content-length': String(Buffer.byteLength(body)) };
      const begun = performance.now();
      const ended = await attempt(url, all, body, begun + timeoutMs, at);
      return { ...ended, duration_ms: Math.round(performance.now() - begun) };
    },
    stop: () => Object.values(agents).forEach((agent) => agent.destroy()),
  };
}

/**
 * Returns what the webhook's owner may learn: the error code of the system or of TLS, which contains no
 * internal address.
 */
function failureReason({ code = 'unknown', message }: NodeJS.ErrnoException): string {
  return ['EUNREACHABLE', 'ELATE'].includes(code) ? message : `the connection failed (${code})`;
}

/** Returns the headers of Standard Webhooks 1.0. Each secret signs, so that a receiver may know any of them. Pure. */
export function signedHeaders(secrets: readonly string[], id: string, timestampS: number, body: string): Headers {
  const signatures = secrets.map((secret) => {
    const key = createSecretKey(secret.replace(/^whsec_/, ''), 'base64');
    return `v1,${createHmac('sha256', key).update(`${id}.${timestampS}.`).update(body).digest('base64')}`;
  });
  return { 'webhook-id': id, 'webhook-timestamp': String(timestampS), 'webhook-signature': signatures.join(' ') };
}
