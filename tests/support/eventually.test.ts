import { expect, test } from 'vitest';
import { eventually } from './eventually.ts';

test('a failed assertion fails at once, and after another error the check is repeated', async () => {
  let looks = 0;
  const assertion = eventually(async () => {
    looks += 1;
    expect(looks).toBe(0);
    return true;
  });
  await expect(assertion).rejects.toThrow('expected 1 to be');
  expect(looks).toBe(1);
  const error = eventually(async () => {
    looks += 1;
    if (looks < 3) throw new Error('not yet');
    return looks;
  });
  expect(await error).toBe(3);
});
