import { execFileSync } from 'node:child_process';
import { join } from 'node:path';
import { expect, test } from 'vitest';

test('what has left it is freed with the young generation, as with a Map it is not', () => {
  const bytesHeld = (kind: string) =>
    Number(
      execFileSync(process.execPath, [
        '--expose-gc',
        '--no-allocation-site-pretenuring',
        join(import.meta.dirname, 'test', 'short-lived-map.fixture.ts'),
        kind,
      ]),
    );
  expect(bytesHeld('short-lived')).toBeLessThan(10_000_000);
  expect(bytesHeld('map')).toBeGreaterThan(10_000_000);
});
