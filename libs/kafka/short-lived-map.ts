/**
 * An unordered map for short-lived entries, with the used subset of Map's methods. V8's Map is unsuitable: when
 * it grows or shrinks, its old table points to the new one and keeps the entries alive. Once an old table is in
 * the old generation, which a young collection does not scan, all entries of the map are promoted.
 */
export class ShortLivedMap<K extends string | number, V> {
  /**
   * The index of each key's entry. It is a dictionary object, which does not retain deleted entries but is slow
   * to iterate.
   */
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
