import { Agent, request } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';

/**
 * A load generator for tests: an open loop (a fixed rate of requests, regardless of the responses) or a closed one (a
 * fixed number of callers that each wait for their response). It runs on the same machine as the bank.
 */
export interface Load {
  baseUrl: string;
  headers: Record<string, string>;
  /** Returns the n-th request, with its own Idempotency-Key, by which it can be found again. */
  shot(n: number): { method: string; path: string; key: string; body: unknown };
  seconds: number;
  /** The rate of an open loop, or the number of callers of a closed one. */
  perSecond?: number;
  callers?: number;
}

export interface Shot {
  key: string;
  /** 0 means that there was no response because the connection failed; then the body says why. */
  status: number;
  retryAfter: string | undefined;
  body: string;
  sentAt: number;
  tookMs: number;
}

const tickMs = 5;
const maxSockets = 4_000;
const answerTimeoutMs = 15_000;

/** Sends requests, waits for every response, and returns them all. Never rejects. */
export async function load(options: Load): Promise<Shot[]> {
  const agent = new Agent({ keepAlive: true, maxSockets });
  const shots: Promise<Shot>[] = [];
  const began = performance.now();
  const elapsed = () => performance.now() - began;
  const fire = () => {
    const shot = send(options, agent, shots.length);
    shots.push(shot);
    return shot;
  };
  if (options.perSecond === undefined) {
    const caller = async () => {
      while (elapsed() < options.seconds * 1000) await fire();
    };
    await Promise.all(Array.from({ length: options.callers ?? 1 }, caller));
  } else {
    while (elapsed() < options.seconds * 1000) {
      // Requests that were due during a pause of this process are skipped, because sending them all at once would be a
      // different load.
      let due = Math.min(options.perSecond * (elapsed() / 1000) - shots.length, options.perSecond / 10);
      for (; due >= 1; due--) void fire();
      await sleep(tickMs);
    }
  }
  const answered = await Promise.all(shots);
  agent.destroy();
  return answered;
}

function send({ baseUrl, headers, shot }: Load, agent: Agent, n: number): Promise<Shot> {
  const { method, path, key, body } = shot(n);
  const sentAt = performance.now();
  return new Promise((resolve) => {
    const done = (status: number, retryAfter?: string, text = '') =>
      resolve({ key, status, retryAfter, body: text, sentAt, tookMs: performance.now() - sentAt });
    const fail = (error: Error) =>
      done(0, undefined, `${error.message} after ${(performance.now() - sentAt).toFixed(0)} ms`);
    const call = request(
      baseUrl + path,
      {
        method,
        agent,
        timeout: answerTimeoutMs,
        headers: { ...headers, 'content-type': 'application/json', 'idempotency-key': key },
      },
      (response) => {
        let text = '';
        response.setEncoding('utf8').on('data', (chunk: string) => (text += chunk));
        response.on('end', () => done(response.statusCode ?? 0, response.headers['retry-after'], text));
        response.on('error', fail);
      },
    );
    call.on('timeout', () => call.destroy(new Error('no response')));
    call.on('error', fail);
    call.end(JSON.stringify(body));
  });
}

/** Returns the value below which this fraction (0 to 1) of the numbers is; 0 for an empty list. */
export function quantile(values: number[], part: number): number {
  return values.toSorted((a, b) => a - b)[Math.min(values.length - 1, Math.floor(values.length * part))] ?? 0;
}

export function countBy(shots: Shot[]): Record<number, number> {
  const counts: Record<number, number> = {};
  for (const { status } of shots) counts[status] = (counts[status] ?? 0) + 1;
  return counts;
}
