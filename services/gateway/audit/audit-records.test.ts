import { setImmediate as turn } from 'node:timers/promises';
import type { FastifyRequest } from 'fastify';
import { pino } from 'pino';
import { afterEach, expect, test } from 'vitest';
import { type AuditRecord, auditRecordSchema } from '#libs/contracts/audit.ts';
import { events } from '#libs/contracts/events.ts';
import type { OutgoingMessage } from '#libs/kafka/publish/publish.ts';
import { createMetrics } from '#libs/service/metrics.ts';
import { createGatewayMetrics } from '../observe/gateway-metrics.ts';
import { ids, ok, refused, type Service, samples, testApp } from '../test/test-app.ts';
import { createAuditRecords } from './audit-records.ts';

/**
 * Tests which refused requests are recorded for auditors and a SIEM, with which details, and that no request waits for
 * the record.
 */

let close: () => Promise<void> = async () => undefined;
afterEach(() => close());

async function start(options: Parameters<typeof testApp>[1] = {}, service: Service = () => 'no_reply') {
  const made = await testApp(service, options);
  close = async () => void (await made.app.close());
  const key = made.keyHeader();
  const call = async (method: 'GET' | 'POST' | 'DELETE' | 'HEAD', url: string, headers: Record<string, string> = key) =>
    (await made.app.inject({ method, url, headers })).statusCode;
  /** Returns the content of the summary of a minute. */
  const told = async (): Promise<AuditRecord[]> => {
    await made.auditRecords.flush();
    return made.recorded
      .filter(({ topic }) => topic === 'test.accounts.commands')
      .map(({ value }) => auditRecordSchema.strict().parse(JSON.parse(String(value))));
  };
  const toSiem = () =>
    made.recorded
      .filter(({ topic }) => topic === 'test.security')
      .map(({ value }) => events['corebanking.security.activity.v1'].data.strict().parse(JSON.parse(String(value))));
  return { ...made, call, told, toSiem };
}

test('refused credentials and permissions are recorded on every route, and 404 under /admin in every spelling of the path', async () => {
  // contract: audit-7
  const { call, told, keyHeader } = await start();
  const reader = keyHeader({ scopes: ['accounts:read'] });
  expect([
    await call('GET', '/admin/api-keys', {}),
    await call('GET', '/admin/audit?limit=1', reader),
    await call('GET', '/%61dmin/audit', reader),
    await call('GET', '/admin'),
    await call('GET', '/ADMIN/x'),
    await call('DELETE', '/admin/audit'),
    await call('GET', '/admin/api-keys/%ZZ'),
    await call('GET', '/admin/api-keys/not-an-id'),
    await call('GET', '/clients', {}),
    await call('POST', '/transactions', reader),
    await call('POST', `/accounts/${ids.account}/status-transitions`, reader),
    await call('GET', '/nowhere'),
    await call('GET', '/administration'),
  ]).toEqual([401, 403, 403, 404, 404, 405, 404, 404, 401, 403, 403, 404, 404]);
  const records = (await told()).map(({ actor, action, outcome, resource_id, details }) => [
    actor === 'unauthenticated' ? 'stranger' : 'caller',
    action,
    outcome,
    resource_id,
    details['path'],
    details['count'],
  ]);
  expect(records.toSorted()).toEqual(
    [
      ['stranger', 'list_api_keys', 'missing_credentials', null, '/admin/api-keys', 1],
      ['stranger', 'list_clients', 'missing_credentials', null, '/clients', 1],
      ['caller', 'list_audit', 'insufficient_scope', null, '/admin/audit', 2],
      ['caller', 'unknown_route', 'route_not_found', null, '/admin', 2],
      ['caller', 'unknown_route', 'method_not_allowed', null, '/admin/audit', 1],
      ['caller', 'unknown_route', 'api_key_not_found', null, '/admin/api-keys/…', 1],
      ['caller', 'get_api_key', 'api_key_not_found', null, '/admin/api-keys/:key_id', 1],
      ['caller', 'create_transaction', 'insufficient_scope', null, '/transactions', 1],
      [
        'caller',
        'change_account_status',
        'insufficient_scope',
        ids.account,
        '/accounts/:account_id/status-transitions',
        1,
      ],
    ].toSorted(),
  );
  expect(await told()).toHaveLength(9);
});

test('unauthenticated requests cause one record per minute and address (or /64) with the count, including failures beyond the limit', async () => {
  // contract: audit-7
  const { app, told } = await start({ authFailuresPerMinute: 3, trustProxy: ['127.0.0.1'] });
  const from = (address: string) =>
    app.inject({ method: 'GET', url: '/clients', headers: { 'x-api-key': 'guess', 'x-forwarded-for': address } });
  for (let i = 0; i < 50; i++) await from(`2001:db8::${i.toString(16)}`);
  expect((await told()).map(({ address, outcome, details }) => [address, outcome, details['count']])).toEqual([
    ['2001:db8:0:0::/64', 'rate_limited', 47],
    ['2001:db8:0:0::/64', 'invalid_credentials', 3],
  ]);
  for (let i = 0; i < 500; i++) await from(`10.0.${i >> 8}.${i & 255}`);
  expect(await told()).toHaveLength(2 + 20 + 1);
});

test('the same is published for a SIEM with OCSF classes, and so are events of keys', async () => {
  const { app, call, told, toSiem, keyHeader } = await start({}, ({ name, data }) =>
    name === 'create_transfer' ? refused('destination_refused') : ok({ ...samples.key, key_id: data['key_id'] }),
  );
  const key = keyHeader();
  const bound = keyHeader({ scopes: ['transfers:write'], client_id: ids.client });
  const post = (url: string, headers: Record<string, string>, payload: object) =>
    app.inject({ method: 'POST', url, headers, payload });
  await call('GET', '/clients', {});
  await call('GET', '/admin/audit', keyHeader({ scopes: ['accounts:read'] }));
  await post('/admin/api-keys', key, { name: 'x', scopes: ['clients:read'] });
  for (let i = 0; i < 3; i++)
    await post('/transfers', bound, { from_account_id: ids.account, to_account_id: ids.other, amount: 1 });
  expect(await told()).toHaveLength(2);
  expect(
    toSiem()
      .map(({ class_name, activity_name, status, action, outcome, resource_id, count }) => [
        class_name,
        activity_name,
        status,
        action,
        outcome,
        resource_id,
        count,
      ])
      .toSorted(),
  ).toEqual([
    ['API Activity', 'Create', 'Failure', 'create_transfer', 'destination_refused', ids.other, 3],
    ['API Activity', 'Read', 'Failure', 'list_audit', 'insufficient_scope', null, 1],
    ['Authentication', 'Logon', 'Failure', 'list_clients', 'missing_credentials', null, 1],
    ['Entity Management', 'Create', 'Success', 'create_api_key', 'success', null, 1],
  ]);
});

test('input of callers is not stored, except well-formed ids', async () => {
  const { call, told, recorded } = await start();
  for (const path of [
    '/admin/api-keys/cbk_live_secret',
    '/admin/secret/x',
    '/admin/api-keys/secret/rotation/secret',
    '/admin/audit?actor=secret',
    `/admin/secret${'/secret'.repeat(50)}`,
  ])
    await call('DELETE', path);
  expect((await told()).length).toBeGreaterThan(0);
  for (const { value } of recorded) expect(String(value)).not.toMatch(/secret/i);
  expect(recorded.find(({ topic }) => topic !== 'test.security')).toMatchObject({
    topic: 'test.accounts.commands',
    headers: { ce_type: 'corebanking.command.record_audit.v1' },
  });
});

test('a silent broker delays no request: at most 1,000 records wait, and lost ones are logged', async () => {
  const lines: string[] = [];
  const sent: OutgoingMessage[] = [];
  const logger = pino({ level: 'warn' }, { write: (line: string) => void lines.push(line) });
  const metrics = createGatewayMetrics(createMetrics('gateway'));
  const auditRecords = createAuditRecords({
    publisher: { publish: (message) => (sent.push(message), new Promise<void>(() => undefined)) },
    prefix: '',
    logger,
    now: Date.now,
    metrics,
  });
  await start({ auditRecords });
  const request = { id: 'r', ip: '192.0.2.1' } as unknown as FastifyRequest;
  for (let i = 0; i < 1005; i++)
    auditRecords.note(request, { actor: 'a', action: 'sign_out', resource_id: null, outcome: 'success', details: {} });
  await turn();
  expect([sent.length, lines.length]).toEqual([1000, 5]);
  expect(JSON.parse(lines[0] ?? '')).toMatchObject({ msg: 'an audit record was lost', record: { action: 'sign_out' } });
});
