import { hash } from 'node:crypto';

/**
 * Stores which names a file contains, and which it contains more than once, in 8 bytes per name, so that a file with
 * millions fits into memory. Different names with the same 52-bit hash are treated as equal. A caller that needs
 * certainty compares the few that are found.
 */
export class Names {
  #hashes = new Float64Array(1024);
  #count = 0;
  readonly #repeated = new Set<number>();

  add(name: string | undefined): void {
    if (name === undefined) return;
    if (this.#count === this.#hashes.length) {
      const grown = new Float64Array(this.#count * 2);
      grown.set(this.#hashes);
      this.#hashes = grown;
    }
    this.#hashes[this.#count++] = hashName(name);
  }

  /** Must be called after the last `add` and before queries. */
  seal(): void {
    this.#hashes = this.#hashes.slice(0, this.#count).sort();
    for (let at = 1; at < this.#count; at++)
      if (this.#hashes[at] === this.#hashes[at - 1]) this.#repeated.add(this.#hashes[at] ?? 0);
  }

  has(name: string): boolean {
    const sought = hashName(name);
    let [low, high] = [0, this.#count];
    while (low < high) {
      const middle = (low + high) >>> 1;
      if ((this.#hashes[middle] ?? 0) < sought) low = middle + 1;
      else high = middle;
    }
    return this.#hashes[low] === sought;
  }

  mayBeRepeated(name: string): boolean {
    return this.#repeated.size > 0 && this.#repeated.has(hashName(name));
  }
}

function hashName(name: string): number {
  return Number.parseInt(hash('sha1', name).slice(0, 13), 16);
}

/** Takes rows in the order of the file; returns the line of an earlier row with the same name. */
export class Lines {
  readonly #names: Names;
  readonly #lines = new Map<string, number>();

  constructor(names: Names) {
    this.#names = names;
  }

  before(name: string | undefined, line: number): number | undefined {
    if (name === undefined || !this.#names.mayBeRepeated(name)) return undefined;
    const first = this.#lines.get(name);
    if (first === undefined) this.#lines.set(name, line);
    return first;
  }
}
