/**
 * A map for what stays but for a moment, with those of Map's methods that are used here. V8's Map is no good for it: a table that it
 * outgrows, or shrinks out of, points to the next one and still holds what it held. Once one of them lies in the old generation,
 * where a collection of the young one does not look, all that goes through the map is promoted behind it. A dictionary keeps nothing.
 */
export class BriefMap<K extends string | number, V> {
  #entries = emptied<V>();
  #size = 0;

  get size(): number {
    return this.#size;
  }

  has(key: K): boolean {
    return this.#entries[key] !== undefined;
  }

  get(key: K): V | undefined {
    return this.#entries[key];
  }

  set(key: K, value: V): this {
    if (!this.has(key)) this.#size += 1;
    this.#entries[key] = value;
    return this;
  }

  delete(key: K): boolean {
    if (!this.has(key)) return false;
    delete this.#entries[key];
    this.#size -= 1;
    return true;
  }

  clear(): void {
    this.#entries = emptied();
    this.#size = 0;
  }

  values(): V[] {
    return Object.values(this.#entries);
  }

  entries(): [string, V][] {
    return Object.entries(this.#entries);
  }
}

function emptied<V>(): Record<string | number, V> {
  return Object.create(null) as Record<string | number, V>;
}
