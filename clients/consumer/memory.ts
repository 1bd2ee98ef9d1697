import type { Gap, SequencedEvent } from './event.ts';
import type { ConsumerOptions } from './options.ts';

/** A map of the last `capacity` keys that were set. */
class Recent<V> {
  readonly #entries = new Map<string, V>();
  readonly #capacity: number;

  constructor(capacity: number) {
    this.#capacity = capacity;
  }

  clear(): void {
    this.#entries.clear();
  }

  get(key: string): V | undefined {
    return this.#entries.get(key);
  }

  set(key: string, value: V): void {
    this.#entries.delete(key);
    this.#entries.set(key, value);
    if (this.#entries.size > this.#capacity) this.#entries.delete(this.#entries.keys().next().value as string);
  }
}

/** What is known of one partition's events: which were handled, and how far each account is. */
export class Memory {
  readonly #store: NonNullable<ConsumerOptions['store']>;
  readonly #ids: Recent<true>;
  readonly #sequences: Recent<number>;

  constructor({ memory = 10_000, store = {} }: Pick<ConsumerOptions, 'memory' | 'store'>) {
    this.#store = store;
    this.#ids = new Recent(memory);
    this.#sequences = new Recent(memory);
  }

  /** Of what is redriven memory knows only that it was set aside. */
  async isHandled(id: string, isRedriven: boolean): Promise<boolean> {
    return (isRedriven ? undefined : this.#ids.get(id)) ?? (await this.#store.isHandled?.(id)) ?? false;
  }

  /** Whether the event was there before, or what is missing before it. Of an account never seen nothing is known. */
  async place({ data }: SequencedEvent): Promise<'next' | 'repeat' | Gap> {
    const { account_id } = data.transaction;
    const last = this.#sequences.get(account_id) ?? (await this.#store.lastSequence?.(account_id));
    if (last === undefined || data.sequence === last + 1) return 'next';
    return data.sequence <= last ? 'repeat' : { account_id, from: last + 1, to: data.sequence - 1 };
  }

  async handled({ id }: { id: string }): Promise<void> {
    await this.#store.markHandled?.(id);
    this.#ids.set(id, true);
  }

  /** It need not come again, though it was not handled: a dead letter. */
  setAside({ id }: { id: string }): void {
    this.#ids.set(id, true);
  }

  /** From here on somebody else may have read on: nothing is known of the accounts any more. */
  forgetPlaces(): void {
    this.#sequences.clear();
  }

  /** Its account is as far as this event. */
  passed({ data }: SequencedEvent): void {
    this.#sequences.set(data.transaction.account_id, data.sequence);
  }
}
