import { expect, test } from 'vitest';
import { createLogger } from './logger.ts';
import { logRefused } from './refused-requests.ts';

test('a refused request of a stranger leaves one line of at most 700 bytes, without a caller', () => {
  // contract: envelope-16
  // asvs: 16.3.2
  const lines: string[] = [];
  const logger = createLogger(
    { service: 'gateway', instance: 'gateway-7d9c8b6f5d-x2x4z-1', level: 'info' },
    { write: (line: string) => lines.push(line) },
  );
  const ip = '2001:db8:1111:2222:3333:4444:5555:6666';
  const routeOptions = { url: '/webhooks/:webhook_id/deliveries/:delivery_id/redelivery' };
  const request = { id: '"'.repeat(128), method: 'OPTIONS', ip, routeOptions } as unknown as Parameters<
    typeof logRefused
  >[1];
  logRefused(logger, request, undefined, 'ambiguous_credentials');
  expect(lines).toHaveLength(1);
  expect(Buffer.byteLength(lines[0] ?? '')).toBeLessThanOrEqual(700);
  expect(JSON.parse(lines[0] ?? '')).toMatchObject({
    caller: null,
    request_id: request.id,
    caller_address: ip,
    status: 401,
  });
});
