import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { EncodedMessage } from '#libs/contracts/record.ts';
import { Handover } from './handover.ts';

const message: EncodedMessage = { topic: 't', key: 'k', content: { bytes: Buffer.alloc(0), start: 0, end: 0 } };
const batch = (id: number, size = 1) => ({ batch_id: BigInt(id), messages: Array.from({ length: size }, () => message) });
const taken = (handover: Handover, max = 100) => handover.take(max).map(({ batch_id }) => Number(batch_id));

/** One that knows that every batch up to `last` is accounted for. */
function settledAt(last: bigint): Handover {
  const handover = new Handover();
  handover.probed({ last, xmin: 5n, xmax: 5n });
  handover.drained();
  handover.probed({ last, xmin: 5n, xmax: 5n });
  handover.drained();
  return handover;
}

describe('hands out', () => {
  test('nothing, until all transactions of an earlier probe have ended', () => {
    const handover = new Handover();
    const offered = () => {
      handover.offer(batch(11));
      return taken(handover);
    };
    handover.probed({ last: 10n, xmin: 3n, xmax: 7n });
    handover.drained();
    expect(offered()).toEqual([]);
    handover.probed({ last: 10n, xmin: 6n, xmax: 7n });
    handover.drained();
    expect(offered()).toEqual([]);
    handover.probed({ last: 10n, xmin: 7n, xmax: 7n });
    expect(offered()).toEqual([]);
    handover.drained();
    expect(offered()).toEqual([11]);
  });

  test('what is next in number, and nothing beyond a number that is missing', () => {
    const handover = settledAt(10n);
    for (const id of [12, 11, 14]) handover.offer(batch(id));
    expect(taken(handover)).toEqual([11, 12]);
    expect([taken(handover), handover.isUncertain]).toEqual([[], false]);
    handover.published([13n]);
    expect(taken(handover)).toEqual([14]);
  });

  test('nothing twice: what was read from the table is no offer any more', () => {
    const handover = settledAt(10n);
    handover.offer(batch(11));
    handover.offer(batch(12));
    handover.published([11n]);
    handover.offer(batch(11));
    expect(taken(handover)).toEqual([12]);
  });

  test('nothing twice: nor what was read from the table before its offer came, while a lower number was missing', () => {
    const handover = settledAt(10n);
    handover.published([12n]);
    for (const id of [12, 11, 13]) handover.offer(batch(id));
    expect(taken(handover)).toEqual([11]);
    handover.drained();
    expect([taken(handover), handover.isUncertain]).toEqual([[13], false]);
  });

  test('as much as is asked for, but at least one batch', () => {
    const handover = settledAt(0n);
    for (const id of [1, 2, 3]) handover.offer(batch(id, 40));
    expect([taken(handover, 80), taken(handover, 10), taken(handover)]).toEqual([[1, 2], [3], []]);
  });

  test('what follows a number that never comes, once the table has been read again', () => {
    const handover = settledAt(10n);
    handover.published([12n]);
    expect(handover.isUncertain).toBe(true);
    handover.probed({ last: 12n, xmin: 6n, xmax: 6n });
    handover.drained();
    handover.probed({ last: 12n, xmin: 6n, xmax: 6n });
    handover.drained();
    expect(handover.isUncertain).toBe(false);
    handover.offer(batch(13));
    expect(taken(handover)).toEqual([13]);
  });

  test('nothing more, and keeps nothing, when too much waits', () => {
    const handover = settledAt(0n);
    for (let id = 2; id < 30; id++) {
      handover.offer(batch(id, 500));
      if (id === 12) handover.published([12n]);
    }
    handover.offer(batch(1));
    expect([taken(handover), handover.isUncertain]).toEqual([[], true]);
  });

  test('on and on: what is handed out or read from the table waits no more', () => {
    const handover = settledAt(0n);
    for (let id = 1; id <= 30; id++) {
      handover.offer(batch(id, 500));
      expect(taken(handover, 500)).toEqual([id]);
    }
    for (let id = 32; id < 62; id++) {
      handover.offer(batch(id, 500));
      handover.published([BigInt(id)]);
    }
    handover.offer(batch(31, 500));
    expect(taken(handover, 500)).toEqual([31]);
  });

  test('nothing, and keeps nothing, where too much of the table lies behind a number that is missing', () => {
    const handover = settledAt(0n);
    handover.published(Array.from({ length: 10_001 }, (_, i) => BigInt(i + 2)));
    handover.offer(batch(1));
    expect(taken(handover)).toEqual([]);
  });
});

/** Transactions of several processes that lock a key, draw a number, and commit or not, and a relay beside them. */
class Simulation {
  readonly handover = new Handover();
  #nextId = 1n;
  #nextXid = 1n;
  readonly #running = new Map<number, { xid: bigint; id: bigint | undefined; own: boolean }>();
  readonly #waiting = new Set<bigint>();
  /** Own commits that the process has not heard of yet. */
  readonly #unheard: bigint[] = [];
  /** What the relay has read from the table and is publishing. */
  #read: bigint[] | undefined;
  readonly commits: [key: number, id: bigint][] = [];
  readonly published: bigint[] = [];

  step(action: string, key: number): void {
    const running = this.#running.get(key);
    if (action === 'own' || action === 'other') {
      if (!running) this.#running.set(key, { xid: this.#nextXid++, id: undefined, own: action === 'own' });
    } else if (action === 'draw' && running) running.id ??= this.#nextId++;
    else if (action === 'commit' && running?.id) this.#commit(key, running.id, running.own);
    else if (action === 'roll back') this.#running.delete(key);
    else if (action === 'publish') this.#publishRead();
    else if (this.#read && ['take', 'probe', 'read'].includes(action)) return; // the relay does one thing after another
    else if (action === 'take') for (const { batch_id } of this.handover.take(3)) this.#publish(batch_id);
    else if (action === 'probe') this.#probe();
    else if (action === 'read') this.#read = [...this.#waiting].sort((a, b) => (a < b ? -1 : 1));
    else if (action === 'look') for (const part of ['publish', 'probe', 'read']) this.step(part, key);
    else if (action === 'hear') this.#hear(key);
    else if (action === 'write') for (const part of ['own', 'draw', 'commit', 'hear']) this.step(part, key);
    else if (action === 'fail') this.#fail();
  }

  /** Nothing runs any more: two looks, and what is written then is handed over. */
  end(): void {
    for (const key of [...this.#running.keys()]) this.step('roll back', key);
    for (const part of ['look', 'look', 'publish', ...this.#unheard.map(() => 'hear'), 'write', 'take']) this.step(part, 0);
  }

  #fail(): void {
    this.#read = undefined;
    this.handover.reset();
  }

  #commit(key: number, id: bigint, own: boolean): void {
    this.#running.delete(key);
    this.#waiting.add(id);
    this.commits.push([key, id]);
    if (own) this.#unheard.push(id);
  }

  #hear(key: number): void {
    const [id] = this.#unheard.splice(key, 1);
    if (id !== undefined) this.handover.offer({ batch_id: id, messages: [message] });
  }

  #publish(id: bigint): void {
    this.published.push(id);
    this.#waiting.delete(id);
  }

  #probe(): void {
    const xids = [...this.#running.values()].map(({ xid }) => xid);
    this.handover.probed({ last: this.#nextId - 1n, xmin: xids.reduce((a, b) => (a < b ? a : b), this.#nextXid), xmax: this.#nextXid });
  }

  #publishRead(): void {
    if (!this.#read) return;
    for (const id of this.#read) this.#publish(id);
    this.handover.published(this.#read);
    this.handover.drained();
    this.#read = undefined;
  }
}

test('per key, everything is published once and in the order of the commits, whatever happens when', () => {
  const often = ['own', 'draw', 'commit', 'hear', 'write', 'take', 'look', 'publish'];
  const actions = [...often, ...often, ...often, 'other', 'other', 'roll back', 'probe', 'read', 'fail'];
  const step = fc.tuple(fc.constantFrom(...actions), fc.integer({ min: 0, max: 1 }));
  fc.assert(
    fc.property(fc.array(step, { minLength: 100, maxLength: 300, size: 'max' }), (steps) => {
      const simulation = new Simulation();
      for (const [action, key] of steps) simulation.step(action, key);
      simulation.end();
      const keys = new Map(simulation.commits.map(([key, id]) => [id, key]));
      for (const key of [0, 1]) {
        const of = (ids: bigint[]) => ids.filter((id) => keys.get(id) === key);
        expect(of(simulation.published)).toEqual(of(simulation.commits.map(([, id]) => id)));
      }
      expect(simulation.published).toHaveLength(simulation.commits.length);
      expect(simulation.handover.isUncertain).toBe(false);
    }),
    { numRuns: 2000 },
  );
});
