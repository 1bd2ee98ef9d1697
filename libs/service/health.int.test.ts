import { pino } from 'pino';
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { Check } from './health.ts';
import { createHealthServer } from './health.ts';
import { createMetrics } from './metrics.ts';

const checks: Record<'live' | 'ready' | 'shared', Check> = { live: () => true, ready: () => true, shared: () => true };
const metrics = createMetrics('test');
const server = createHealthServer({
  host: '127.0.0.1',
  port: 0,
  metrics,
  logger: pino({ level: 'silent' }),
  live: { consumer: () => checks.live() },
  ready: { database: () => checks.ready() },
  shared: { broker: () => checks.shared() },
});
let base = '';

beforeAll(async () => {
  base = `http://127.0.0.1:${await server.start()}`;
});
afterAll(() => server.stop());

async function get(path: string): Promise<[number, unknown]> {
  const response = await fetch(base + path);
  return [response.status, await response.json()];
}

test('probes report the result of each check', async () => {
  expect(await get('/livez')).toEqual([200, { status: 'success', checks: { consumer: { ok: true } } }]);
  checks.ready = async () => ({ ok: false, reason: 'catching up' });
  expect(await get('/readyz')).toEqual([
    503,
    {
      status: 'error',
      checks: {
        consumer: { ok: true },
        database: { ok: false, reason: 'catching up' },
        running: { ok: true },
        broker: { ok: true },
      },
    },
  ]);
  expect((await get('/livez'))[0]).toBe(200);
  checks.ready = () => {
    throw new Error('connection refused');
  };
  expect(await get('/readyz')).toMatchObject([
    503,
    { checks: { database: { ok: false, reason: 'connection refused' } } },
  ]);
  checks.ready = () => true;
});

test('what is shared with all processes is reported and does not count', async () => {
  checks.shared = () => ({ ok: false, reason: 'not connected' });
  expect(await get('/readyz')).toMatchObject([200, { checks: { broker: { ok: false, reason: 'not connected' } } }]);
  expect(await metrics.text()).toContain('corebanking_ready{service="test"} 1');
  checks.ready = () => false;
  expect(await metrics.text()).toContain('corebanking_ready{service="test"} 0');
  checks.ready = () => true;
  checks.shared = () => true;
});

test('a check that never finishes fails after 1.5 s', async () => {
  checks.ready = () => new Promise(() => undefined);
  expect(await get('/readyz')).toMatchObject([
    503,
    { checks: { database: { ok: false, reason: 'the check took longer than 1500 ms' } } },
  ]);
  checks.ready = () => true;
});

test('a process that is not live is not ready', async () => {
  checks.live = () => ({ ok: false, reason: 'hung' });
  expect([(await get('/livez'))[0], (await get('/readyz'))[0]]).toEqual([503, 503]);
  checks.live = () => true;
});

test('metrics of Node and our own; a gauge that fails is omitted', async () => {
  metrics.counter('things_total', 'Things', ['kind']).inc({ kind: 'a' }, 2);
  metrics.histogram('took_seconds', 'Took').observe(0.02);
  metrics.gauge('lag', 'Lag', () => 7);
  metrics.gauge('broken', 'Broken', () => Promise.reject(new Error('away')));
  const text = await (await fetch(`${base}/metrics`)).text();
  expect(text).toContain('corebanking_things_total{kind="a",service="test"} 2');
  expect(text).toContain('corebanking_took_seconds_bucket{le="0.025",service="test"} 1');
  expect(text).toContain('corebanking_lag{service="test"} 7');
  expect(text).toContain('nodejs_eventloop_lag_seconds');
  expect(text).not.toMatch(/^corebanking_broken/m);
});

test('other paths and methods', async () => {
  expect((await get('/'))[0]).toBe(404);
  expect((await fetch(`${base}/livez`, { method: 'POST' })).status).toBe(405);
});

test('a draining process is live but not ready', async () => {
  server.drain();
  expect(await get('/readyz')).toMatchObject([503, { checks: { running: { ok: false, reason: 'stopping' } } }]);
  expect((await get('/livez'))[0]).toBe(200);
});

test('a port in use rejects', async () => {
  const port = Number(new URL(base).port);
  const second = createHealthServer({
    host: '127.0.0.1',
    port,
    metrics: createMetrics('second'),
    logger: pino({ level: 'silent' }),
  });
  await expect(second.start()).rejects.toThrow('EADDRINUSE');
});
