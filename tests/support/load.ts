import { Agent, request } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';

/**
 * A load driver for tests: an open loop (so many requests a second, whatever becomes of them) or a
 * closed one (so many callers who each wait for their answer). It shares the machine with what it
 * loads.
 */
export interface Load {
  baseUrl: string;
  headers: Record<string, string>;
  /** What to send as the n-th request; with an Idempotency-Key of its own, so that it can be found again. */
  shot(n: number): { method: string; path: string; key: string; body: unknown };
  seconds: number;
  /** Open loop; else a closed one with so many callers. */
  perSecond?: number;
  callers?: number;
}

export interface Shot {
  key: string;
  /** 0: no answer, the connection failed. */
  status: number;
  retryAfter: string | undefined;
  body: string;
  sentAt: number;
  tookMs: number;
}

const tickMs = 5;
const maxSockets = 4_000;
const answerTimeoutMs = 15_000;

/** Sends, waits for every answer, and gives them all; never rejects. */
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
      // What a pause of this process has left out is left out: sent all at once, it would be another load.
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
        response.on('error', () => done(0));
      },
    );
    call.on('timeout', () => call.destroy(new Error('no answer')));
    call.on('error', () => done(0));
    call.end(JSON.stringify(body));
  });
}

/** The value below which so much of the whole (0 to 1) lies; 0 of nothing. */
export function quantile(values: number[], part: number): number {
  return values.toSorted((a, b) => a - b)[Math.min(values.length - 1, Math.floor(values.length * part))] ?? 0;
}

export function countBy(shots: Shot[]): Record<number, number> {
  const counts: Record<number, number> = {};
  for (const { status } of shots) counts[status] = (counts[status] ?? 0) + 1;
  return counts;
}
