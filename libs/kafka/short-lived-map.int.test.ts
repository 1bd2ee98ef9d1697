import { execFileSync } from 'node:child_process';
import { join } from 'node:path';
import { expect, test } from 'vitest';

test('removed entries are freed with the young generation, which a Map does not do', () => {
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
