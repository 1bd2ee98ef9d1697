import { expect, test } from 'vitest';
import { createRecentRequests } from './recent-requests.ts';

test('counts the last sixty whole seconds', () => {
  let ms = 1_000_000;
  const requests = createRecentRequests(() => ms);
  expect(requests.read()).toEqual({ window_seconds: 60, count: 0, server_errors: 0, mean_ms: null, slowest_ms: null });
  requests.add(200, 0.01);
  requests.add(503, 0.03);
  expect(requests.read().count).toBe(0);
  ms += 1_000;
  requests.add(200, 9);
  expect(requests.read()).toEqual({ window_seconds: 60, count: 2, server_errors: 1, mean_ms: 20, slowest_ms: 30 });
  ms += 59_000;
  expect(requests.read()).toMatchObject({ count: 3, slowest_ms: 9000 });
  ms += 1_000;
  expect(requests.read()).toMatchObject({ count: 1, server_errors: 0 });
  ms += 3_600_000;
  expect(requests.read().count).toBe(0);
});
