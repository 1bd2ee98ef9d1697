import { createHmac } from 'node:crypto';
import http from 'node:http';
import https from 'node:https';
import { isIP } from 'node:net';
import type { AllowedAddresses } from '#libs/service/addresses.ts';

export interface Sent {
  /** null: there was no response. */
  response_status: number | null;
  /** Why there was no response. */
  error: string | null;
  duration_ms: number;
}

export interface Sender {
  /**
   * Sends a POST, a second time if a kept-alive connection turns out to be closed. Never rejects; ends within
   * the timeout.
   */
  post(url: string, headers: Record<string, string>, body: string): Promise<Sent>;
  stop(): void;
}

const idleMs = 30_000;
/** The response body is not stored, and no more than this is read. */
const maxAnswerBytes = 64 * 1024;

/** Redirects are not followed: a 3xx response is a failure like any other. */
export function createSender(addresses: AllowedAddresses, timeoutMs = 15_000): Sender {
  const options = { keepAlive: true, maxFreeSockets: 64, timeout: idleMs, lookup: addresses.lookup };
  const agents = { 'http:': new http.Agent(options), 'https:': new https.Agent(options) };

  function attempt(
    url: URL,
    headers: Record<string, string>,
    body: string,
    signal: AbortSignal,
  ): Promise<{ status: number } | { error: NodeJS.ErrnoException; wasReused: boolean }> {
    const isPlain = url.protocol === 'http:';
    const options = { method: 'POST', agent: agents[isPlain ? 'http:' : 'https:'], headers, signal };
    return new Promise((done) => {
      const request = (isPlain ? http : https).request(url, options);
      request.on('error', (error: NodeJS.ErrnoException) => done({ error, wasReused: request.reusedSocket }));
      request.on('response', (response) => {
        done({ status: response.statusCode ?? 0 });
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
    async post(text, headers, body) {
      const url = new URL(text);
      const begun = performance.now();
      const ended = (response_status: number | null, error: string | null): Sent => ({
        response_status,
        error,
        duration_ms: Math.round(performance.now() - begun),
      });
      const host = url.hostname.replace(/^\[|\]$/g, '');
      // Node calls `lookup` only for names.
      if (isIP(host) !== 0 && !addresses.allows(host)) return ended(null, 'its address is one of a private network');
      const signal = AbortSignal.timeout(timeoutMs);
      const all = { ...headers, 'content-length': String(Buffer.byteLength(body)) };
      let result = await attempt(url, all, body, signal);
      if ('error' in result && result.wasReused && result.error.code === 'ECONNRESET')
        result = await attempt(url, all, body, signal);
      if ('status' in result) return ended(result.status, null);
      return ended(null, signal.aborted ? `no answer within ${timeoutMs / 1000} s` : reasonOf(result.error));
    },
    stop: () => Object.values(agents).forEach((agent) => agent.destroy()),
  };
}

/**
 * Returns what the webhook's owner may learn: the error code of the system or of TLS, which contains no
 * internal address.
 */
function reasonOf({ code, message }: NodeJS.ErrnoException): string {
  if (code === 'EPRIVATE') return message;
  return `the connection failed (${code ?? 'unknown'})`;
}

/** Returns the headers of Standard Webhooks 1.0. Each secret signs, so that a receiver may know either. Pure. */
export function signedHeaders(
  secrets: readonly string[],
  id: string,
  timestampS: number,
  body: string,
): Record<string, string> {
  const sign = (secret: string) =>
    createHmac('sha256', Buffer.from(secret.replace(/^whsec_/, ''), 'base64'))
      .update(`${id}.${timestampS}.${body}`)
      .digest('base64');
  return {
    'webhook-id': id,
    'webhook-timestamp': String(timestampS),
    'webhook-signature': secrets.map((secret) => `v1,${sign(secret)}`).join(' '),
  };
}
