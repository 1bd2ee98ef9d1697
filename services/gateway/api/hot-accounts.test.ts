import { expect, test } from 'vitest';
import { HotAccounts } from './hot-accounts.ts';

/** A gateway whose clock the test sets. */
function gateway() {
  let now = 0;
  const hot = new HotAccounts(() => now);
  return {
    /** Sends `perSecond` transfers a second for `seconds`, of which `share` go to one account; the others to all. */
    send(perSecond: number, share: number, seconds: number) {
      for (let n = 0; n < perSecond * seconds; n++) {
        now += 1_000 / perSecond;
        hot.route(`payer-${n % 500}`, (n * 7) % 100 < 100 * share ? 'merchant' : `account-${n % 500}`);
      }
    },
    isHot: () => hot.route('payer', 'merchant') === 'merchant',
    pass: (ms: number) => void (now += ms),
  };
}

test.each([
  ['most transfers', 400, 0.5, true],
  ['a tenth of many transfers', 400, 0.1, true],
  ['a twentieth of many transfers', 400, 0.05, false],
  ['most of few transfers', 30, 0.5, false],
])('an account that receives %s: %i/s, a share of %f: hot %s', (_, perSecond, share, hot) => {
  const { send, isHot } = gateway();
  expect(isHot()).toBe(false);
  send(perSecond, share, 11);
  expect(isHot()).toBe(hot);
});

test('it stays hot with half as many, and for a minute afterwards', () => {
  const { send, isHot } = gateway();
  send(400, 0.5, 11);
  send(400, 0.04, 120);
  expect(isHot()).toBe(true);
  send(400, 0, 50);
  expect(isHot()).toBe(true);
  send(400, 0, 20);
  expect(isHot()).toBe(false);
});

test('after a pause without transfers, nothing is hot', () => {
  const { send, isHot, pass } = gateway();
  send(400, 0.5, 11);
  pass(61_000);
  expect(isHot()).toBe(false);
});
