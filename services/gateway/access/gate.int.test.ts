import fastify, { type FastifyRequest } from 'fastify';
import { expect, onTestFinished, test, vi } from 'vitest';
import { createRateLimits } from './gate.ts';

test('whatever many addresses do, one that goes on failing stays refused, and its ports are no addresses', async () => {
  // contract: permission-32
  // asvs: 15.3.4
  // A busy machine needs more than the minute in which failures count.
  vi.spyOn(Date, 'now').mockReturnValue(Date.now());
  onTestFinished(() => void vi.restoreAllMocks());
  const app = fastify();
  const limits = await createRateLimits(app, { requests: 0, failures: 2 });
  const isRefused = async (ip: string) => {
    const counted = await limits.failures?.({ ip, routeOptions: { config: {} } } as FastifyRequest);
    return counted?.isAllowed === false && counted.isExceeded;
  };
  const ports: boolean[] = [];
  for (let port = 1000; port < 1005; port++) ports.push(await isRefused(`203.0.113.9:${port}`));
  expect(ports).toEqual([false, false, true, true, true]);
  for (let i = 0; i < 100_001; i++) {
    const network = `2001:db8:${(i >> 16).toString(16)}:${(i & 0xffff).toString(16)}::1`;
    expect(await isRefused(network)).toBe(false);
    if (i % 50_000 === 0) expect(await isRefused('203.0.113.9')).toBe(true);
  }
  // The first of them was forgotten, and may fail twice again.
  expect([await isRefused('2001:db8::1'), await isRefused('2001:db8::1'), await isRefused('2001:db8::1')]).toEqual([
    false,
    false,
    true,
  ]);
  await app.close();
});
