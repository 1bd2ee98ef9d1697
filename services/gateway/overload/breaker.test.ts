import { pino } from 'pino';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { type Breaker, createBreaker, isRefused } from './breaker.ts';

const silence = new Error('no reply');
let breaker: Breaker<string>;
beforeEach(() => {
  vi.useFakeTimers();
  breaker = createBreaker('test', pino({ level: 'silent' }), (error) => error === silence);
});
afterEach(() => {
  breaker.shutdown();
  vi.useRealTimers();
});

const isRefusing = () => ask().then(() => false, isRefused);
const ask = (answer: string | Error = 'reply') =>
  breaker.fire(() => (answer instanceof Error ? Promise.reject(answer) : Promise.resolve(answer)));
const fail = (error: Error) => ask(error).catch(() => undefined);

/** Makes requests every half second that fail in this way. */
async function failFor(seconds: number, error: Error): Promise<void> {
  for (let i = 0; i < 2 * seconds; i++) {
    await fail(error);
    vi.advanceTimersByTime(500);
  }
}

async function open(): Promise<void> {
  await failFor(3, silence);
  expect(breaker.closed).toBe(true);
  await fail(silence);
  expect(breaker.opened).toBe(true);
}

test('three seconds without replies open the breaker, and nothing more is sent', async () => {
  await open();
  expect(await isRefusing()).toBe(true);
});

test('one reply among many timeouts keeps it closed', async () => {
  for (let i = 0; i < 20; i++) {
    await Promise.all([fail(silence), fail(silence), ask()]);
    vi.advanceTimersByTime(1_000);
  }
  expect(breaker.closed).toBe(true);
});

test('errors that are not timeouts keep it closed', async () => {
  await failFor(20, new Error('the broker is away'));
  expect(breaker.closed).toBe(true);
});

test('a burst of timeouts at one moment does not open it', async () => {
  await Promise.all(Array.from({ length: 100 }, () => fail(silence)));
  vi.advanceTimersByTime(10_000);
  expect(await ask()).toBe('reply');
  await fail(silence);
  expect(breaker.closed).toBe(true);
});

test('after a second one request is sent: a timeout opens it again, a reply closes it', async () => {
  await open();
  vi.advanceTimersByTime(1_000);
  const trial = fail(silence);
  expect(await isRefusing()).toBe(true);
  await trial;
  expect(await isRefusing()).toBe(true);
  vi.advanceTimersByTime(1_000);
  expect(await ask()).toBe('reply');
  expect(breaker.closed).toBe(true);
});

test('a reply to an earlier request closes it immediately', async () => {
  const { promise, resolve } = Promise.withResolvers<string>();
  const early = breaker.fire(() => promise);
  await open();
  resolve('late, but in time');
  expect(await early).toBe('late, but in time');
  expect(breaker.closed).toBe(true);
});
