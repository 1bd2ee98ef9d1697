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

  test('as much as is asked for, but at least one batch', () => {
    const handover = settledAt(0n);
    for (const id of [1, 2, 3]) handover.offer(batch(id, 40));
    expect([taken(handover, 90), taken(handover, 10), taken(handover)]).toEqual([[1, 2], [3], []]);
  });

  test('nothing more, and keeps nothing, when too much waits', () => {
    const handover = settledAt(0n);
    for (let id = 2; id < 30; id++) handover.offer(batch(id, 500));
    handover.offer(batch(1));
    expect([taken(handover), handover.isUncertain]).toEqual([[], true]);
  });
});

/** Transactions of several processes that lock a key, draw a number, and commit or not, and a relay beside them. */
class Simulation {
  readonly handover = new Handover();
  #nextId = 1n;
  #nextXid = 1n;
  readonly #running = new Map<number, { xid: bigint; id: bigint | undefined; own: boolean }>();
  readonly #committed = new Map<bigint, number>();
  readonly commits: [key: number, id: bigint][] = [];
  readonly published: [key: number, id: bigint][] = [];

  step(action: string, key: number): void {
    const running = this.#running.get(key);
    if (action === 'own' || action === 'other') {
      if (!running) this.#running.set(key, { xid: this.#nextXid++, id: undefined, own: action === 'own' });
    } else if (action === 'draw' && running) running.id ??= this.#nextId++;
    else if (action === 'commit' && running?.id) this.#commit(key, running.id, running.own);
    else if (action === 'roll back') this.#running.delete(key);
    else if (action === 'take') for (const { batch_id } of this.handover.take(3)) this.#publish(batch_id);
    else if (action === 'probe') this.#probe();
    else if (action === 'read') this.#read();
    else if (action === 'look') for (const part of ['probe', 'read']) this.step(part, key);
    else if (action === 'write') for (const part of ['own', 'draw', 'commit']) this.step(part, key);
    else if (action === 'fail') this.handover.reset();
  }

  end(): void {
    for (const key of [...this.#running.keys()]) this.step('roll back', key);
    this.#read();
  }

  #commit(key: number, id: bigint, own: boolean): void {
    this.#running.delete(key);
    this.#committed.set(id, key);
    this.commits.push([key, id]);
    if (own) this.handover.offer({ batch_id: id, messages: [message] });
  }

  #publish(id: bigint): void {
    this.published.push([this.#committed.get(id) ?? -1, id]);
    this.#committed.delete(id);
  }

  #probe(): void {
    const xids = [...this.#running.values()].map(({ xid }) => xid);
    this.handover.probed({ last: this.#nextId - 1n, xmin: xids.reduce((a, b) => (a < b ? a : b), this.#nextXid), xmax: this.#nextXid });
  }

  #read(): void {
    const ids = [...this.#committed.keys()].sort((a, b) => (a < b ? -1 : 1));
    for (const id of ids) this.#publish(id);
    this.handover.published(ids);
    this.handover.drained();
  }
}

test('per key, everything is published once and in the order of the commits, whatever happens when', () => {
  const actions = ['own', 'other', 'draw', 'commit', 'write', 'write', 'take', 'take', 'look', 'look', 'roll back', 'probe', 'read', 'fail'];
  const step = fc.tuple(fc.constantFrom(...actions), fc.integer({ min: 0, max: 1 }));
  fc.assert(
    fc.property(fc.array(step, { minLength: 100, maxLength: 300, size: 'max' }), (steps) => {
      const simulation = new Simulation();
      for (const [action, key] of steps) simulation.step(action, key);
      simulation.end();
      for (const key of [0, 1]) {
        const of = (list: [number, bigint][]) => list.filter(([k]) => k === key).map(([, id]) => id);
        expect(of(simulation.published)).toEqual(of(simulation.commits));
      }
    }),
    { numRuns: 2000 },
  );
});
