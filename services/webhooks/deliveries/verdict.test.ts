import { describe, expect, it } from 'vitest';
import { type Attempt, judgeAttempt, judgeHealth, retryDelaysMs } from './verdict.ts';

const attempt = (changes: Partial<Attempt> = {}): Attempt => ({
  ordinal: '1',
  claim: 1,
  tries: 0,
  attempted_at: '2026-01-01T00:00:00.000Z',
  duration_ms: 1,
  response_status: 500,
  error: null,
  ...changes,
});

describe('a delivery', () => {
  it('is delivered by any 2xx, and by nothing else', () => {
    // contract: webhooks-12
    for (const status of [200, 201, 202, 204, 226, 299])
      expect(judgeAttempt(attempt({ response_status: status }), 0)).toEqual({ status: 'Delivered' });
    for (const status of [100, 199, 300, 301, 302, 307, 308, 400, 404, 429, 500, 503, null])
      expect(judgeAttempt(attempt({ response_status: status }), 0).status).toBe('Pending');
  });

  it('is retried after 5 s, 5 min, 30 min, 2 h, 5 h, 10 h, 14 h, 20 h, 24 h; then it has Failed', () => {
    // contract: webhooks-13
    const hours = [2, 5, 10, 14, 20, 24].map((hour) => hour * 3_600_000);
    expect(retryDelaysMs).toEqual([5_000, 300_000, 1_800_000, ...hours]);
    for (const [tries, delayMs] of retryDelaysMs.entries())
      expect(judgeAttempt(attempt({ tries }), 0)).toEqual({ status: 'Pending', delayMs });
    expect(judgeAttempt(attempt({ tries: retryDelaysMs.length }), 0)).toEqual({ status: 'Failed' });
  });

  it('is never retried earlier, and up to a fifth later', () => {
    // contract: webhooks-13
    expect(judgeAttempt(attempt(), 0.5)).toEqual({ status: 'Pending', delayMs: 5_500 });
    expect(judgeAttempt(attempt(), 0.999)).toEqual({ status: 'Pending', delayMs: 5_999 });
  });

  it('has Failed immediately if its receiver responds 410', () => {
    expect(judgeAttempt(attempt({ response_status: 410 }), 0)).toEqual({ status: 'Failed' });
  });
});

describe('a webhook', () => {
  const at = (day: number, changes: Partial<Attempt> = {}) =>
    attempt({ attempted_at: `2026-01-0${day}T00:00:00.000Z`, ...changes });
  const now = (day: number) => `2026-01-0${day}T00:00:00.000Z`;

  it('has been failing since its first failure after the last success', () => {
    expect(judgeHealth(null, [at(1), at(2)], now(2))).toEqual({ failing_since: now(1) });
    expect(judgeHealth(now(1), [at(2)], now(2))).toEqual({ failing_since: now(1) });
    expect(judgeHealth(now(1), [at(2), at(3, { response_status: 204 })], now(3))).toEqual({ failing_since: null });
    expect(judgeHealth(now(1), [at(2, { response_status: 204 }), at(3)], now(3))).toEqual({ failing_since: now(3) });
  });

  it('is disabled after five days without a success, and immediately by 410', () => {
    // contract: webhooks-14
    expect(judgeHealth(now(1), [at(5)], '2026-01-05T23:59:59.999Z').disabled).toBeUndefined();
    expect(judgeHealth(now(1), [at(6)], now(6))).toEqual({ failing_since: now(1), disabled: 'failing' });
    expect(judgeHealth(now(1), [at(6, { response_status: 200 })], now(6)).disabled).toBeUndefined();
    expect(judgeHealth(null, [at(1, { response_status: 410 })], now(1))).toEqual({
      failing_since: now(1),
      disabled: 'gone',
    });
  });
});
