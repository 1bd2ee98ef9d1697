import { hash } from 'node:crypto';

/**
 * Which names stand in a file, and which more than once: 8 bytes for each, so that a file of
 * millions fits. A name is told to be there, or to be repeated, where another one has the same 52
 * bits of hash: who must know for certain compares the few that are.
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
    this.#hashes[this.#count++] = hashOf(name);
  }

  /** To be called behind the last `add`, before anything is asked. */
  seal(): void {
    this.#hashes = this.#hashes.slice(0, this.#count).sort();
    for (let at = 1; at < this.#count; at++)
      if (this.#hashes[at] === this.#hashes[at - 1]) this.#repeated.add(this.#hashes[at] ?? 0);
  }

  has(name: string): boolean {
    const sought = hashOf(name);
    let [low, high] = [0, this.#count];
    while (low < high) {
      const middle = (low + high) >>> 1;
      if ((this.#hashes[middle] ?? 0) < sought) low = middle + 1;
      else high = middle;
    }
    return this.#hashes[low] === sought;
  }

  mayBeRepeated(name: string): boolean {
    return this.#repeated.size > 0 && this.#repeated.has(hashOf(name));
  }
}

function hashOf(name: string): number {
  return Number.parseInt(hash('sha1', name).slice(0, 13), 16);
}

/** Of rows in the order of the file: the line in which a name stood before, if it did. */
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
