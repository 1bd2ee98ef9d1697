import type { Gap, SequencedEvent } from './event.ts';
import type { ConsumerOptions, SetAside } from './options.ts';

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

/** Remembers which events of one partition were handled, and the last sequence of each account. */
export class Memory {
  readonly #store: NonNullable<ConsumerOptions['store']>;
  readonly #ids: Recent<true>;
  readonly #sequences: Recent<number>;

  constructor({ memory = 10_000, store = {} }: Pick<ConsumerOptions, 'memory' | 'store'>) {
    this.#store = store;
    this.#ids = new Recent(memory);
    this.#sequences = new Recent(memory);
  }

  /** For a redriven event, the memory contains only that it became a dead letter. */
  async isHandled(id: string, isRedriven: boolean): Promise<boolean> {
    return (isRedriven ? undefined : this.#ids.get(id)) ?? (await this.#store.isHandled?.(id)) ?? false;
  }

  /**
   * Returns whether the event is a repeat, or which events are missing before it. The sequence of a new account
   * is unknown, also to the store if the group has not read the topic from its beginning (`isWhole`).
   */
  async place({ data }: SequencedEvent, isWhole: boolean): Promise<'next' | 'repeat' | Gap> {
    const { account_id } = data.transaction;
    const last = await this.last(account_id);
    if (last === undefined || (last === 0 && !isWhole) || data.sequence === last + 1) return 'next';
    return data.sequence <= last ? 'repeat' : { account_id, from: last + 1, to: data.sequence - 1 };
  }

  async last(accountId: string): Promise<number | undefined> {
    return this.#sequences.get(accountId) ?? (await this.#store.lastSequence?.(accountId));
  }

  async handled({ id }: { id: string }): Promise<void> {
    await this.#store.markHandled?.(id);
    this.#ids.set(id, true);
  }

  /**
   * Records that the event became a dead letter, so that it is not handled when it is delivered again, and causes no gap.
   */
  async setAside(id: string, sequenced?: SetAside): Promise<void> {
    if (sequenced) {
      await this.#store.setAside?.(sequenced);
      if (!sequenced.isUnproven) this.#sequences.set(sequenced.account_id, sequenced.sequence);
    }
    this.#ids.set(id, true);
  }

  /** Forgets the sequences of all accounts, because another member may have continued the partition. */
  forgetPlaces(): void {
    this.#sequences.clear();
  }

  /** Records that a gap was reported, so that a retry of the event after it does not do so again. */
  reported({ account_id, to }: Gap): void {
    this.#sequences.set(account_id, to);
  }

  /** Records this event's sequence as its account's last one. */
  passed({ data }: SequencedEvent): void {
    this.#sequences.set(data.transaction.account_id, data.sequence);
  }
}
