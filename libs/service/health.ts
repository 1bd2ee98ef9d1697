import type { IncomingMessage, ServerResponse } from 'node:http';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { Logger } from 'pino';
import { withTimeout } from '#libs/kafka/wait.ts';
import { errorMessage } from './logger.ts';
import type { Metrics } from './metrics.ts';

export interface CheckResult {
  ok: boolean;
  reason?: string;
}

/** A check that throws, or does not respond within 1.5 s, counts as not ok. */
export type Check = () => CheckResult | boolean | Promise<CheckResult | boolean>;

export interface HealthOptions {
  host: string;
  /** 0 lets the system choose. */
  port: number;
  /** Checks for problems that only a restart can fix. An unreachable dependency must not be one of them. */
  live?: Record<string, Check>;
  /** Checks that must pass before the process receives requests. */
  ready?: Record<string, Check>;
  /** Checks of what all processes share, for example the brokers: /readyz reports them, but they do not count. */
  shared?: Record<string, Check>;
  metrics: Metrics;
  logger: Logger;
}

export interface HealthServer {
  /** Resolves to the port once the server listens. */
  start(): Promise<number>;
  /** Makes /readyz fail from now on: the first step of a graceful stop. */
  drain(): void;
  stop(): Promise<void>;
}

/** Shorter than a scrape waits for a gauge. */
const checkTimeoutMs = 1500;
const json = 'application/json';

/** Serves GET /livez, /readyz (200 or 503 with a JSON body naming each check), and /metrics, on a separate port. */
export function createHealthServer({
  host,
  port,
  live = {},
  ready = {},
  shared = {},
  metrics,
  logger,
}: HealthOptions): HealthServer {
  let draining = false;
  const running: Check = () => (draining ? { ok: false, reason: 'stopping' } : true);
  const runOwn = () => runChecks({ ...live, ...ready, running });
  measureReadiness(metrics, async () => isPassed(await runOwn()));

  async function handle(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const path = (request.url ?? '/').split('?')[0];
    if (request.method !== 'GET' && request.method !== 'HEAD') return send(response, 405, json, '{"status":"error"}');
    if (path === '/livez') return sendChecks(response, await runChecks(live));
    if (path === '/readyz') {
      const [own, others] = await Promise.all([runOwn(), runChecks(shared)]);
      return sendChecks(response, own, others);
    }
    if (path === '/metrics') return send(response, 200, metrics.contentType, await metrics.text());
    send(response, 404, json, '{"status":"error"}');
  }

  const server = createServer((request, response) => {
    handle(request, response).catch((error: unknown) => {
      logger.error({ err: error }, 'the health server failed');
      send(response, 500, json, '{"status":"error"}');
    });
  });
  server.requestTimeout = 5000;
  server.headersTimeout = 5000;
  return {
    start: () =>
      new Promise((resolve, reject) => {
        server.once('error', reject);
        server.listen(port, host, () => {
          server.off('error', reject);
          resolve((server.address() as AddressInfo).port);
        });
      }),
    drain() {
      draining = true;
    },
    stop: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}

type Results = Record<string, CheckResult>;

const isPassed = (results: Results): boolean => Object.values(results).every(({ ok }) => ok);

export function measureReadiness(metrics: Metrics, isReady: () => Promise<boolean>): void {
  metrics.gauge('ready', '1 while this process is ready (/readyz), otherwise 0', async () => Number(await isReady()));
}

function sendChecks(response: ServerResponse, own: Results, shared: Results = {}): void {
  const ok = isPassed(own);
  const body = { status: ok ? 'success' : 'error', checks: { ...own, ...shared } };
  send(response, ok ? 200 : 503, json, JSON.stringify(body));
}

function send(response: ServerResponse, status: number, contentType: string, body: string): void {
  if (response.headersSent) return;
  response.writeHead(status, { 'content-type': contentType, 'cache-control': 'no-store' }).end(body);
}

/** Runs all checks concurrently, each with a timeout. */
async function runChecks(checks: Record<string, Check>): Promise<Results> {
  const results = await Promise.all(
    Object.entries(checks).map(async ([name, check]) => [name, await runCheck(check)] as const),
  );
  return Object.fromEntries(results);
}

async function runCheck(check: Check): Promise<CheckResult> {
  try {
    const result = await withTimeout(Promise.resolve().then(check), checkTimeoutMs, 'the check');
    return typeof result === 'boolean' ? { ok: result } : result;
  } catch (error) {
    return { ok: false, reason: errorMessage(error) };
  }
}
