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

type Service = (sentAtMs: number) => { afterMs: number; error?: Error };
const replying: Service = () => ({ afterMs: 10 });
const silent: Service = () => ({ afterMs: 5_000, error: silence });

const isRefusing = () => send(replying).then(() => false, isRefused);
const send = (service: Service) =>
  breaker.fire(async () => {
    const { afterMs, error } = service(Date.now());
    await new Promise((resolve) => setTimeout(resolve, afterMs));
    if (error) throw error;
    return 'reply';
  });

/** Sends requests evenly for this time, without waiting for their replies. Returns whether the breaker stayed closed. */
async function sendFor(seconds: number, perSecond: number, service: Service): Promise<boolean> {
  let stayedClosed = true;
  for (let i = 0; i < seconds * perSecond; i++) {
    void send(service).catch(() => undefined);
    await vi.advanceTimersByTimeAsync(1_000 / perSecond);
    stayedClosed &&= breaker.closed;
  }
  return stayedClosed;
}

/** Lets a service stop until the breaker opens. */
async function open(): Promise<void> {
  await sendFor(5, 10, replying);
  await sendFor(9, 10, silent);
  expect(breaker.opened || breaker.halfOpen).toBe(true);
}

test.each([2, 10, 100])('at %i requests per second, eight seconds without a reply open it', async (perSecond) => {
  await sendFor(5, perSecond, replying);
  expect(await sendFor(7, perSecond, silent)).toBe(true);
  expect(await sendFor(2, perSecond, silent)).toBe(false);
});

test('while it is open, nothing more is sent', async () => {
  await open();
  breaker.open();
  expect(await isRefusing()).toBe(true);
});

test('a pause of seven seconds does not open it', async () => {
  await sendFor(5, 20, replying);
  const end = Date.now() + 7_000;
  const paused: Service = (atMs) =>
    end - atMs > 5_000 ? { afterMs: 5_000, error: silence } : { afterMs: Math.max(end - atMs, 10) };
  expect(await sendFor(20, 20, paused)).toBe(true);
});

test('a service that answers every second request keeps it closed', async () => {
  let count = 0;
  expect(await sendFor(30, 20, (at) => (++count % 2 === 0 ? replying(at) : silent(at)))).toBe(true);
});

test('fewer than five requests in four seconds keep it closed, and each is sent', async () => {
  expect(await sendFor(60, 1, silent)).toBe(true);
});

test('errors that are not timeouts keep it closed', async () => {
  expect(await sendFor(20, 20, () => ({ afterMs: 10, error: new Error('the broker is away') }))).toBe(true);
});

test('a burst of timeouts at one moment does not open it', async () => {
  await Promise.all([
    ...Array.from({ length: 100 }, () => send(silent).catch(() => undefined)),
    vi.advanceTimersByTimeAsync(5_000),
  ]);
  expect(await sendFor(10, 20, replying)).toBe(true);
});

test('after a second one request is sent: a timeout opens it again, a reply closes it', async () => {
  await open();
  // The requests sent before it opened have ended.
  await vi.advanceTimersByTimeAsync(6_000);
  expect(breaker.halfOpen).toBe(true);
  const trial = send(silent).catch(() => undefined);
  expect(await isRefusing()).toBe(true);
  await vi.advanceTimersByTimeAsync(5_000);
  await trial;
  expect(breaker.opened).toBe(true);
  await vi.advanceTimersByTimeAsync(1_000);
  expect(await sendFor(10, 20, replying)).toBe(true);
});

test('a service that replies again under load closes it within seconds', async () => {
  await open();
  await sendFor(6, 20, replying);
  expect(await sendFor(10, 20, replying)).toBe(true);
});
