import { cpSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pino } from 'pino';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { periodOfRequest } from '#libs/service/fresh-ids.ts';
import { createHealthServer } from '#libs/service/health.ts';
import { createMetrics } from '#libs/service/metrics.ts';
import { ids, testApp } from '#services/gateway/test/test-app.ts';
import { type Child, runToEnd, startChild } from '../../tools/local/child.ts';
import { PROJECT } from '../../tools/local/local-dir.ts';
import { freePort } from '../../tools/local/ports.ts';
import { findProgram } from '../ha/preflight.ts';
import { eventually } from '../support/eventually.ts';
import { checkErrorBody, exchange, type RawAnswer } from '../support/hostile.ts';

/** HAProxy with the files of docker-compose.yml in front of a gateway: its own errors are those of the API. */
const shipped = join(PROJECT, 'deploy', 'compose', 'haproxy');

test.each(readdirSync(shipped).filter((name) => name.endsWith('.http')))('%s is an error of the API', (name) => {
  const [head = '', body = ''] = readFileSync(join(shipped, name), 'utf8').split('\n\n');
  checkErrorBody(Number(/^HTTP\/1\.1 (\d+) /.exec(head)?.[1]), body);
  expect(head).toContain(`Content-Length: ${Buffer.byteLength(body)}\n`);
});

const account = `/accounts/${ids.account}`;
const transfer = { from_account_id: ids.account, to_account_id: ids.other, amount: 1 };

const haproxy = findProgram('haproxy');
const missing = 'there is no HAProxy: install it (Debian: apt-get install haproxy)';
if (haproxy === undefined && process.env['CI_STRICT'] === '1') throw new Error(missing);
if (haproxy === undefined) console.warn(`The tests of the proxy are skipped: ${missing}.`);

describe.skipIf(haproxy === undefined)('the proxy of docker-compose.yml', () => {
  const dir = mkdtempSync(join(tmpdir(), 'core-banking-proxy-'));
  const logger = pino({ level: 'silent' });
  let gateway: Awaited<ReturnType<typeof testApp>>;
  let key = '';
  let proxy: Child;
  let baseUrl = '';
  /** What happens to a gateway that has sent a command. */
  let fault: 'killed' | 'hanging' = 'killed';
  const health = createHealthServer({
    host: '127.0.0.1',
    port: 0,
    ready: { http: () => true },
    metrics: createMetrics('gateway'),
    logger,
  });

  beforeAll(async () => {
    gateway = await testApp(
      () => {
        if (fault === 'killed') gateway.app.server.closeAllConnections();
        return new Promise(() => undefined);
      },
      { trustProxy: ['127.0.0.1'] },
    );
    key = gateway.keyHeader()['x-api-key'];
    await gateway.app.listen({ host: '127.0.0.1', port: 0 });
    const [port, healthPort] = [await freePort(), await health.start()];
    const gatewayPort = (gateway.app.server.address() as AddressInfo).port;
    cpSync(shipped, dir, { recursive: true });
    const config = join(dir, 'haproxy.cfg');
    let text = readFileSync(config, 'utf8');
    for (const [from, to] of [
      ['bind :3000', `bind 127.0.0.1:${port}`],
      ['bind :8404', `bind 127.0.0.1:${await freePort()}`],
      ['server-template gateway 8 gateway:3000', `server gateway1 127.0.0.1:${gatewayPort}`],
      [' resolvers docker init-addr none', ''],
      ['check port 9090', `check port ${healthPort}`],
      ['timeout server 60s', 'timeout server 1s'],
      ['timeout http-request 12s', 'timeout http-request 1s'],
    ] as const) {
      expect(text).toContain(from);
      text = text.replace(from, to);
    }
    writeFileSync(config, text);
    baseUrl = `http://127.0.0.1:${port}`;
    proxy = startChild({
      name: 'haproxy',
      command: haproxy ?? '',
      args: ['-db', '-f', config],
      log: join(dir, 'haproxy.log'),
      marker: config,
    });
    await eventually(async () => (await fetch(baseUrl)).status === 401);
  });
  afterAll(async () => {
    await proxy?.stop(5_000);
    await gateway?.app.close();
    await health.stop();
    rmSync(dir, { recursive: true });
  });

  /** Sends a request on a connection of its own, because HAProxy 2 reports a lost gateway only on those. */
  const send = async (method: string, path: string, headers = ''): Promise<RawAnswer> => {
    const text = method === 'POST' ? JSON.stringify(transfer) : '';
    const head = `${method} ${path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\nx-api-key: ${key}\r\n`;
    const body = `Content-Type: application/json\r\nContent-Length: ${text.length}\r\n${headers}\r\n${text}`;
    const [answer] = (await exchange(baseUrl, head + body)).answers;
    return answer ?? { status: 0, head: '', body: '' };
  };
  const header = ({ head }: RawAnswer, name: string) => new RegExp(`^${name}: (.*)$`, 'im').exec(head)?.[1];
  const log = () => readFileSync(join(dir, 'haproxy.log'), 'utf8');
  const expectError = async (answer: RawAnswer, code: string): Promise<void> => {
    const body = checkErrorBody(answer.status, answer.body);
    expect(body.code).toBe(code);
    expect(header(answer, 'x-request-id')).toBe(body.request_id);
    expect(header(answer, 'retry-after')).toBe(code === 'service_unavailable' ? '1' : undefined);
    // The line may follow the response.
    await eventually(async () => log().includes(`${answer.status} `) && log().includes(body.request_id));
  };

  test.each(['killed', 'hanging'] as const)(
    'a gateway that is %s leaves the outcome of a write unknown',
    async (how) => {
      fault = how;
      const unanswered = await send('POST', '/transfers');
      await expectError(unanswered, 'outcome_unknown');
      // It contains its time, as those of gateways.
      const { from, to } = periodOfRequest(header(unanswered, 'x-request-id') ?? '') ?? {};
      expect([Date.parse(`${from}`) < Date.now(), Date.parse(`${to}`) > Date.now()]).toEqual([true, true]);
      await expectError(await send('GET', account), 'service_unavailable');
      expect((await send('HEAD', account)).status).toBe(503);
    },
  );

  test.each([
    ['an id with quotes', 'a "quoted" \\ id', true],
    ['an id of 128 characters', 'i'.repeat(128), true],
    ['an id of 129 characters', 'i'.repeat(129), false],
  ])('proxy and gateway use the same id, given %s', async (_what, id, isUsed) => {
    fault = 'killed';
    const given = `X-Request-Id: ${id}\r\n`;
    const unanswered = await send('POST', '/transfers', given);
    await expectError(unanswered, 'outcome_unknown');
    const used = header(unanswered, 'x-request-id');
    expect(used === id).toBe(isUsed);
    expect(Object.values(gateway.sent.at(-1)?.headers ?? {})).toContain(used);
    expect(header(await send('GET', '/nope', given), 'x-request-id') === id).toBe(isUsed);
  });

  test.each([
    ['81,000 bytes of headers', `X-Long: ${'x'.repeat(81_000)}\r\n`, 404, 'route_not_found'],
    ['90,000 bytes of headers', `X-Long: ${'x'.repeat(90_000)}\r\n`, 431, 'headers_too_large'],
    ['990 headers', 'a: b\r\n'.repeat(990), 404, 'route_not_found'],
    ['1,050 headers', 'a: b\r\n'.repeat(1_050), 431, 'headers_too_large'],
  ])('the gateway decides about %s', async (_what, headers, status, code) => {
    const answer = await send('GET', '/nope', headers);
    expect([answer.status, checkErrorBody(answer.status, answer.body).code]).toEqual([status, code]);
  });

  test.each([
    ['no HTTP', 'hello\r\n\r\n', 400],
    ['two lengths', 'POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n', 400],
    ['an invalid chunk', 'POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n', 400],
    ['a compressed transfer', 'POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n', 400],
    ['a body in HTTP/1.0', 'GET / HTTP/1.0\r\nHost: x\r\nContent-Length: 2\r\n\r\n{}', 400],
    ['200,000 bytes of headers', `GET / HTTP/1.1\r\nHost: x\r\nX-Long: ${'x'.repeat(200_000)}\r\n\r\n`, 400],
    ['half a request', 'GET / HTTP/1.1\r\nHost: x\r\n', 408],
  ])('HAProxy refuses %s', async (_what, bytes, status) => {
    const [answer] = (await exchange(baseUrl, bytes)).answers;
    const { stdout } = await runToEnd(haproxy ?? '', ['-v'], { timeoutMs: 10_000 });
    const [major = 0, minor = 0, patch = 0] = /version (\d+)\.(\d+)\.(\d+)/.exec(stdout)?.slice(1).map(Number) ?? [];
    // Until 3.2.3, HAProxy ignores its files here, and responds with pages of its own.
    if (major * 10_000 + minor * 100 + patch < 30_204) expect(answer?.head).toMatch(/content-type: text\/html/i);
    else {
      expect(checkErrorBody(answer?.status ?? 0, answer?.body ?? '').request_id).toBe('none');
      expect(answer?.status).toBe(status);
    }
  });

  test('without a gateway, nothing was executed', async () => {
    await gateway.app.close();
    await expectError(await send('POST', '/transfers'), 'service_unavailable');
    await expectError(await send('GET', account), 'service_unavailable');
  });
});
