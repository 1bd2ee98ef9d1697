import { setImmediate as turn } from 'node:timers/promises';
import { pino } from 'pino';
import { afterEach, expect, test } from 'vitest';
import { auditRecordSchema } from '#libs/contracts/administration.ts';
import type { AuditRecord } from '#libs/contracts/administration.ts';
import type { OutgoingMessage } from '#libs/kafka/publish/publish.ts';
import { createAuditRecords } from './audit-records.ts';
import { ids, testApp } from '../test/test-app.ts';

/** Which refused calls auditors are told of, and what of them; and that nobody ever waits for it. */

let close: () => Promise<void> = async () => undefined;
afterEach(() => close());

async function start(options: Parameters<typeof testApp>[1] = {}) {
  const made = await testApp(() => 'no_reply', options);
  close = async () => void (await made.app.close());
  const key = made.keyHeader();
  const call = async (method: 'GET' | 'POST' | 'DELETE' | 'HEAD', url: string, headers: Record<string, string> = key) => (await made.app.inject({ method, url, headers })).statusCode;
  const told = (): AuditRecord[] => made.recorded.map(({ value }) => auditRecordSchema.strict().parse(JSON.parse(String(value))));
  return { ...made, call, told };
}

test('refused authentication, permission and routes under /admin, however the path is spelled', async () => {
  const { call, told, keyHeader } = await start();
  const reader = keyHeader({ scopes: ['accounts:read'] });
  expect([
    await call('GET', '/admin/api-keys', {}), await call('GET', '/admin/audit?limit=1', reader), await call('GET', '/%61dmin/audit', reader), await call('GET', '/admin'),
    await call('GET', '/ADMIN/x'), await call('DELETE', '/admin/audit'), await call('GET', '/admin/api-keys/%ZZ'), await call('GET', '/admin/api-keys/not-an-id'),
  ]).toEqual([401, 403, 403, 404, 404, 405, 404, 404]);
  expect(told().map(({ action, outcome }) => `${action} ${outcome}`)).toEqual([
    'list_api_keys missing_credentials', 'list_audit insufficient_scope', 'list_audit insufficient_scope', 'unknown_route route_not_found',
    'unknown_route route_not_found', 'unknown_route method_not_allowed', 'unknown_route api_key_not_found', 'get_api_key api_key_not_found',
  ]);
  expect(told().map(({ actor }) => actor === 'unauthenticated')).toEqual([true, ...Array(7).fill(false)]);
});

test('elsewhere, missing permission to change a status or to reverse; nothing else', async () => {
  const { call, told, keyHeader } = await start();
  const reader = keyHeader({ scopes: ['accounts:read'] });
  await call('POST', `/accounts/${ids.account}/status-transitions`, reader);
  await call('POST', `/transactions/${ids.transaction}/reversal`, reader);
  await call('POST', '/transactions', reader);
  await call('GET', '/nowhere');
  await call('GET', '/clients', {});
  await call('GET', '/administration');
  expect(told().map(({ action, resource_id }) => [action, resource_id])).toEqual([['change_account_status', ids.account], ['reverse_transaction', ids.transaction]]);
});

test('nothing that a caller typed is kept but ids of the right form', async () => {
  const { call, recorded } = await start();
  for (const path of ['/admin/api-keys/cbk_live_secret', '/admin/secret/x', '/admin/api-keys/secret/rotation/secret', '/admin/audit?actor=secret', `/admin/secret${'/secret'.repeat(50)}`]) await call('DELETE', path);
  expect(recorded).toHaveLength(5);
  for (const { value } of recorded) expect(String(value)).not.toContain('secret');
  expect(recorded[0]).toMatchObject({ topic: 'test.accounts.commands', headers: { ce_type: 'corebanking.command.record_audit.v1' } });
});

test('failed authentications beyond their limit are not recorded', async () => {
  const { call, told } = await start({ authFailuresPerMinute: 3 });
  const statuses = [];
  for (let i = 0; i < 6; i++) statuses.push(await call('GET', '/admin/audit', { 'x-api-key': 'guess' }));
  expect(statuses).toEqual([401, 401, 401, 429, 429, 429]);
  expect(told()).toHaveLength(3);
});

test('a broker that does not answer holds up nobody: at most 1,000 wait, what is lost is logged', async () => {
  const lines: string[] = [];
  const sent: OutgoingMessage[] = [];
  const logger = pino({ level: 'warn' }, { write: (line: string) => void lines.push(line) });
  const auditRecords = createAuditRecords({ publisher: { publish: (message) => (sent.push(message), new Promise<void>(() => undefined)) }, prefix: '', logger, now: Date.now });
  const { call } = await start({ auditRecords });
  for (let i = 0; i < 1005; i++) await call('GET', '/admin/nowhere');
  await turn();
  expect([sent.length, lines.length]).toEqual([1000, 5]);
  expect(JSON.parse(lines[0] ?? '')).toMatchObject({ msg: 'an audit record was lost', record: { action: 'unknown_route', outcome: 'route_not_found' } });
});
