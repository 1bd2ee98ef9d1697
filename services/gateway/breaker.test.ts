import { setTimeout as sleep } from 'node:timers/promises';
import { pino } from 'pino';
import { afterEach, expect, test } from 'vitest';
import { createBreaker } from './breaker.ts';
import type { Breaker } from './breaker.ts';

const silence = new Error('no reply');
const intervalMs = 20;
let breaker: Breaker;
afterEach(() => breaker.stop());

function start(): void {
  breaker = createBreaker({ name: 'test', logger: pino({ level: 'silent' }), isSilence: (error) => error === silence, intervalMs, silentIntervals: 3, halfOpenAfterMs: 60 });
}

const fail = (error: Error) => breaker.run(() => Promise.reject(error))?.catch(() => undefined);
const reply = () => breaker.run(async () => 'reply');

async function until(test: () => boolean): Promise<void> {
  for (let i = 0; i < 200; i++) {
    if (test()) return;
    await sleep(5);
  }
  throw new Error('it did not come to that');
}

async function openIt(): Promise<void> {
  for (let i = 0; i < 50 && !breaker.isOpen(); i++) {
    await fail(silence);
    await sleep(intervalMs / 2);
  }
  expect(breaker.isOpen()).toBe(true);
}

test('intervals without any reply open it: nothing is asked any more', async () => {
  start();
  await openIt();
  expect(reply()).toBeUndefined();
});

test('one reply among many silences keeps it closed, and so do errors that are not silence', async () => {
  start();
  for (let i = 0; i < 20; i++) {
    await Promise.all([fail(silence), fail(silence), reply()]);
    await sleep(intervalMs / 2);
  }
  expect(breaker.isOpen()).toBe(false);
  for (let i = 0; i < 20; i++) {
    await fail(new Error('the broker is away'));
    await sleep(intervalMs / 2);
  }
  expect(breaker.isOpen()).toBe(false);
});

test('a burst of silence within one interval does not open it', async () => {
  start();
  await Promise.all(Array.from({ length: 100 }, () => fail(silence)));
  await sleep(3 * intervalMs);
  expect(breaker.isOpen()).toBe(false);
});

test('half open it lets one through: silence opens it again, a reply closes it', async () => {
  start();
  await openIt();
  let trial: Promise<unknown> | undefined;
  await until(() => (trial = fail(silence)) !== undefined);
  expect(reply()).toBeUndefined();
  await trial;
  expect(reply()).toBeUndefined();
  await until(() => reply() !== undefined);
  await until(() => !breaker.isOpen());
  expect(await reply()).toBe('reply');
});

test('a reply to an earlier request closes it at once', async () => {
  start();
  const { promise, resolve } = Promise.withResolvers<string>();
  const early = breaker.run(() => promise);
  await openIt();
  resolve('late, but in time');
  expect(await early).toBe('late, but in time');
  expect(breaker.isOpen()).toBe(false);
});
