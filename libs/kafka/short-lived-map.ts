/**
 * A map for short-lived entries, with those of Map's methods that are used here; in no order. V8's
 * Map is no good for it: a table that it outgrows, or shrinks out of, points to the next one and
 * still holds what it held. Once one of them lies in the old generation, where a collection of the
 * young one does not look, all that goes through the map is promoted behind it.
 */
export class ShortLivedMap<K extends string | number, V> {
  /** Where each key's entry stands: a dictionary, which keeps nothing, but is slow to be gone through. */
  #places = emptied<K>();
  #entries: ([K, V] | undefined)[] = [];
  #free: number[] = [];

  get size(): number {
    return this.#entries.length - this.#free.length;
  }

  has(key: K): boolean {
    return this.#places[key] !== undefined;
  }

  get(key: K): V | undefined {
    const place = this.#places[key];
    return place === undefined ? undefined : this.#entries[place]?.[1];
  }

  set(key: K, value: V): this {
    const place = this.#places[key] ?? this.#free.pop() ?? this.#entries.length;
    this.#places[key] = place;
    this.#entries[place] = [key, value];
    return this;
  }

  delete(key: K): boolean {
    const place = this.#places[key];
    if (place === undefined) return false;
    delete this.#places[key];
    this.#entries[place] = undefined;
    this.#free.push(place);
    return true;
  }

  clear(): void {
    this.#places = emptied();
    this.#entries = [];
    this.#free = [];
  }

  entries(): [K, V][] {
    return this.#entries.filter((entry) => entry !== undefined);
  }

  values(): V[] {
    return this.entries().map(([, value]) => value);
  }
}

function emptied<K extends string | number>(): Partial<Record<K, number>> {
  return Object.create(null) as Partial<Record<K, number>>;
}
