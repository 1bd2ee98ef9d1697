import { setTimeout as sleep } from 'node:timers/promises';
import type { Bench, Row } from '../row.ts';

/** Combines several rows into one. Each starts at its own time, and callers may get the failures of all of them. */
export function together(chosen: Row[], delaysMs: number[], name = chosen.map((row) => row.name).join('+')): Row {
  return {
    name,
    title: (lasts) =>
      `${chosen.map(({ title }) => (typeof title === 'string' ? title : title(lasts))).join('; ')}, at the same time`,
    touches: chosen.flatMap(({ touches }) => touches),
    recoveryMs: Math.max(...chosen.map(({ recoveryMs }) => recoveryMs)),
    callers: chosen.some(({ callers }) => callers === 'cut') ? 'cut' : undefined,
    frozen: chosen.find(({ frozen }) => frozen !== undefined)?.frozen,
    async inject(bench: Bench) {
      const ends = await Promise.allSettled(
        chosen.map(async (row, i) => {
          await sleep(delaysMs[i] ?? 0);
          return (await row.inject(bench)) ?? performance.now();
        }),
      );
      const gone = ends.map((end) => {
        if (end.status === 'rejected') throw end.reason;
        return end.value;
      });
      return Math.max(...gone);
    },
    check: async (evidence, bench) =>
      (await Promise.all(chosen.map(async (row) => (await row.check?.(evidence, bench)) ?? []))).flat(),
  };
}
