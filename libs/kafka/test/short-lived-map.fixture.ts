import { ShortLivedMap } from '../short-lived-map.ts';

/**
 * Prints how many bytes are retained after a hundred megabytes have passed through a map and only the young
 * generation was collected.
 */
declare const gc: (options?: { type: 'minor' }) => void;
const held = process.argv[2] === 'map' ? new Map<number, Buffer>() : new ShortLivedMap<number, Buffer>();
// From here on, its entries are in the old generation of the heap.
gc();
for (let id = 1; id <= 1000; id++) {
  held.set(id, Buffer.alloc(100_000));
  held.delete(id - 3);
  if (id % 50 === 0) gc({ type: 'minor' });
}
console.log(process.memoryUsage().arrayBuffers);
