import fc from 'fast-check';
import { expect, test } from 'vitest';
import { ShortLivedMap } from './short-lived-map.ts';

const key = fc.oneof(fc.integer({ min: 0, max: 5 }), fc.constantFrom('a', '__proto__', 'constructor', 'size'));
const step = fc.oneof(
  fc.record({ does: fc.constant('set' as const), key, value: fc.nat() }),
  fc.record({ does: fc.constantFrom('delete' as const, 'get' as const, 'has' as const), key }),
  fc.record({ does: fc.constant('clear' as const) }),
);

test('behaves like a Map for all keys', () => {
  fc.assert(
    fc.property(fc.array(step), (steps) => {
      const [ours, model] = [new ShortLivedMap<string | number, number>(), new Map<string | number, number>()];
      for (const one of steps) {
        if (one.does === 'set') [ours, model].forEach((map) => map.set(one.key, one.value));
        else if (one.does === 'clear') [ours, model].forEach((map) => map.clear());
        else expect(ours[one.does](one.key)).toBe(model[one.does](one.key));
        expect(ours.size).toBe(model.size);
        expect(ours.values().sort()).toEqual([...model.values()].sort());
        expect(new Map(ours.entries())).toEqual(model);
      }
    }),
  );
});
