import { pino } from 'pino';
import { afterEach, expect, test, vi } from 'vitest';
import { startCollector } from '../../tests/support/collector.ts';
import { createTracing } from './create-tracing.ts';
import { isSampled, publishTracer } from './tracing.ts';

const silent = pino({ level: 'silent' });
const tracingWith = (env: Record<string, string>) => {
  for (const [name, value] of Object.entries(env)) vi.stubEnv(name, value);
  return createTracing('test', 'i', silent);
};
afterEach(() => void vi.unstubAllEnvs());
const parent = (flags: string) => `00-${'a'.repeat(32)}-${'b'.repeat(16)}-${flags}`;

test('without a collector tracing is off', async () => {
  expect(await tracingWith({})).toBeUndefined();
  expect(publishTracer(undefined, '')).toBeUndefined();
});

test.each([
  ['01', true],
  ['00', false],
  ['03', true],
  ['0a', false],
  ['0b', true],
])('flags %s of a traceparent: sampled is %s', (flags, sampled) => {
  expect(isSampled(parent(flags))).toBe(sampled);
});

test('an invalid traceparent is not sampled', () => {
  expect([undefined, '', 'x', `${parent('01')}1`, parent('01').toUpperCase()].map(isSampled)).toEqual([
    false,
    false,
    false,
    false,
    false,
  ]);
});

test("a parent-based sampler follows the caller's decision, otherwise the ratio", async () => {
  const collector = await startCollector();
  const sampled = async (env: Record<string, string>) => {
    const tracing = await tracingWith({ OTEL_EXPORTER_OTLP_ENDPOINT: collector.url, ...env });
    const decisions = [undefined, parent('01'), parent('00')].map((traceparent) => {
      const span = tracing?.begin('s', { kind: 'server', traceparent });
      span?.end();
      return isSampled(span?.traceparent);
    });
    await tracing?.stop();
    return decisions;
  };
  expect(await sampled({})).toEqual([true, true, false]);
  expect(await sampled({ OTEL_TRACES_SAMPLER: 'parentbased_traceidratio', OTEL_TRACES_SAMPLER_ARG: '0' })).toEqual([
    false,
    true,
    false,
  ]);
  expect(await sampled({ OTEL_TRACES_SAMPLER: 'always_off' })).toEqual([false, false, false]);
  expect(collector.spans.map(({ name, parentSpanId, service }) => [name, parentSpanId ?? '', service])).toEqual([
    ['s', '', 'core-banking-test'],
    ['s', 'b'.repeat(16), 'core-banking-test'],
    ['s', 'b'.repeat(16), 'core-banking-test'],
  ]);
  await collector.stop();
});

test('an unavailable collector causes only a log line', async () => {
  const tracing = await tracingWith({ OTEL_EXPORTER_OTLP_ENDPOINT: 'http://127.0.0.1:1' });
  tracing?.begin('s', { kind: 'internal' }).end();
  await expect(tracing?.stop()).resolves.toBeUndefined();
});
