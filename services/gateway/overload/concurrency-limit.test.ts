import { expect, it } from 'vitest';
import { ConcurrencyLimit } from './concurrency-limit.ts';

it('runs two of a caller at once, lets two wait in their order, and refuses the fifth; others are not affected', async () => {
  const limit = new ConcurrencyLimit(2, 'too many', { max: 2, ms: 60_000 });
  const begun: string[] = [];
  const ends: (() => void)[] = [];
  const run = (actor: string, name: string) =>
    limit.run(actor, () => {
      begun.push(name);
      return new Promise<void>((resolve) => ends.push(resolve));
    });
  const first = ['a', 'b', 'c', 'd'].map((name) => run('officer', name));
  await expect(run('officer', 'e')).rejects.toMatchObject({ refusal: { code: 'rate_limited', message: 'too many' } });
  const other = run('auditor', 'x');
  expect(begun).toEqual(['a', 'b', 'x']);
  ends[1]?.();
  await first[1];
  await Promise.resolve();
  expect(begun).toEqual(['a', 'b', 'x', 'c']);
  // A place that was handed over is not free.
  const last = run('officer', 'f');
  while (ends.length > 0) {
    ends.shift()?.();
    await new Promise((resolve) => setImmediate(resolve));
  }
  await Promise.all([...first, other, last]);
  expect(begun).toEqual(['a', 'b', 'x', 'c', 'd', 'f']);
});

it('frees the place of work that failed', async () => {
  const limit = new ConcurrencyLimit(1, 'too many');
  await expect(limit.run('a', () => Promise.reject(new Error('no')))).rejects.toThrow('no');
  expect(await limit.run('a', async () => 1)).toBe(1);
});

it('refuses what has waited too long, which then takes no place', async () => {
  const limit = new ConcurrencyLimit(1, 'too many', { max: 1, ms: 5 });
  let end = () => {};
  const first = limit.run('a', () => new Promise<void>((resolve) => (end = resolve)));
  await expect(limit.run('a', async () => 2)).rejects.toMatchObject({ refusal: { code: 'rate_limited' } });
  end();
  await first;
  expect(await limit.run('a', async () => 3)).toBe(3);
});
