import { afterEach, describe, expect, test } from 'vitest';
import { createLogger } from '#libs/service/logger.ts';
import { ids, ok, type Service, samples } from '../gateway/test/test-app.ts';
import { issuer, testDashboard } from './test/test-dashboard.ts';

/** Tests that what the dashboard refuses is logged like the refusals of the gateway (contract: envelope-16). */
const closing: (() => Promise<unknown>)[] = [];
afterEach(async () => void (await Promise.all(closing.splice(0).map((close) => close()))));

async function openDashboard(service: Service = () => 'no_reply') {
  const lines: Record<string, unknown>[] = [];
  const logger = createLogger(
    { service: 'dashboard', instance: 'test', level: 'info' },
    { write: (line) => void lines.push(JSON.parse(line) as Record<string, unknown>) },
  );
  const made = await testDashboard(service, { logger });
  closing.push(() => made.app.close());
  return { ...made, lines };
}

describe('the dashboard', () => {
  const caller = `jwt:${issuer}|ada`;
  const of = (lines: Record<string, unknown>[]) =>
    lines.map(({ status, code, route, caller: who }) => [status, code, route, who]);

  test('logs a page that is forbidden, missing, or fails', async () => {
    const { signedIn, lines } = await openDashboard(() => 'malformed');
    const { get } = signedIn('keys:manage');
    for (const [url, status] of [
      ['/admin/ui/audit', 403],
      ['/admin/ui/nothing-here', 404],
      ['/admin/ui/api-keys', 503],
    ] as const) {
      const { statusCode, body } = await get(url);
      expect([statusCode, body.includes('Request id: ')], url).toEqual([status, status !== 404]);
    }
    expect(of(lines)).toEqual([
      [403, 'insufficient_scope', '/admin/ui/audit', caller],
      [404, 'route_not_found', '/admin/ui/*', caller],
      [503, 'service_unavailable', '/admin/api-keys', caller],
    ]);
  });

  test('logs a form of another page, and one without its confirmation', async () => {
    const { signedIn, lines } = await openDashboard(({ name }) =>
      name === 'get_account' ? ok(samples.master) : ok([samples.ledger]),
    );
    const { post, session } = signedIn('accounts:status accounts:read');
    const url = `/admin/ui/accounts/${ids.account}/freezing`;
    expect((await post(url, { csrf_token: 'guessed' })).statusCode).toBe(403);
    expect(of(lines.splice(0))).toEqual([
      [403, 'invalid_credentials', '/admin/ui/accounts/:account_id/freezing', caller],
    ]);
    expect((await post(url, { csrf_token: session.csrf })).statusCode).toBe(400);
    expect(of(lines)).toEqual([[400, 'validation_failed', '/admin/ui/accounts/:account_id/freezing', caller]]);
  });

  test('logs a sign-in that was not started here, and one with an unavailable issuer', async () => {
    const { app, lines } = await openDashboard();
    expect((await app.inject('/admin/callback?code=x&state=y')).statusCode).toBe(400);
    expect((await app.inject({ url: '/admin/login/start', headers: { host: 'bank.example' } })).statusCode).toBe(503);
    expect(lines.map(({ level, status, code, route }) => [level, status, code, route])).toEqual([
      // The gateway's line of the reported failure.
      ['info', 401, 'invalid_credentials', '/admin/sign-ins'],
      ['info', 400, 'invalid_credentials', '/admin/callback'],
      ['error', 503, 'service_unavailable', '/admin/login/start'],
    ]);
  });
});
