/** All random numbers of a run come from its seed, so that a run can be reproduced. */
export interface Random {
  /** 0 ≤ x < 1 */
  next(): number;
  /** Returns a whole number, both limits included. */
  int(low: number, high: number): number;
  pick<T>(items: readonly T[]): T;
  chance(probability: number): boolean;
  /** Returns a separate generator, so that the numbers of one part do not affect another's. */
  fork(name: string): Random;
  shuffle<T>(items: readonly T[]): T[];
}

/** Returns random numbers of sfc32 (PractRand's small fast counter), seeded by text. */
export function createRandom(seed: string): Random {
  let [a, b, c] = [0x9e3779b9, 0x243f6a88, 0xb7e15162];
  let counter = 1;
  const next = (): number => {
    const sum = (((a + b) | 0) + counter) | 0;
    counter = (counter + 1) | 0;
    a = b ^ (b >>> 9);
    b = (c + (c << 3)) | 0;
    c = (((c << 21) | (c >>> 11)) + sum) | 0;
    return (sum >>> 0) / 4294967296;
  };
  for (const char of seed) {
    a = (a + (char.codePointAt(0) ?? 0)) | 0;
    next();
  }
  for (let i = 0; i < 12; i++) next();
  const int = (low: number, high: number): number => low + Math.floor(next() * (high - low + 1));
  return {
    next,
    int,
    pick: <T>(items: readonly T[]): T => {
      const item = items[int(0, items.length - 1)];
      if (item === undefined) throw new Error('there is no item to choose');
      return item;
    },
    chance: (probability) => next() < probability,
    fork: (name) => createRandom(`${seed}/${name}`),
    shuffle: <T>(items: readonly T[]): T[] => {
      const left = [...items];
      return items.map(() => left.splice(int(0, left.length - 1), 1)[0] as T);
    },
  };
}
