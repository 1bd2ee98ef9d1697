import { existsSync, globSync } from 'node:fs';

const libraries = [
  '/usr/lib/*/faketime/libfaketimeMT.so.1',
  '/usr/lib/faketime/libfaketimeMT.so.1',
  '/usr/local/lib/faketime/libfaketimeMT.so.1',
];

/**
 * Returns an environment in which a Node process has a clock that is this many hours ahead (behind, if negative): with
 * libfaketime, which changes the process's system clock, or otherwise by changing Date.
 */
export function skewedClock(hours: number): Record<string, string> {
  const library = libraries.flatMap((pattern) => globSync(pattern)).find((file) => existsSync(file));
  // The monotonic clock stays correct on a host whose clock is wrong.
  if (library !== undefined)
    return {
      LD_PRELOAD: library,
      FAKETIME: `${hours > 0 ? '+' : ''}${hours}h`,
      DONT_FAKE_MONOTONIC: '1',
      FAKETIME_DONT_FAKE_MONOTONIC: '1',
    };
  return { NODE_OPTIONS: `--import=data:text/javascript,${encodeURIComponent(shiftDate(hours * 3_600_000))}` };
}

function shiftDate(ms: number): string {
  return `const own = Date; const now = () => own.now() + ${ms};
globalThis.Date = class extends own { constructor(...parts) { if (parts.length === 0) super(now()); else super(...parts); } static now() { return now(); } };`;
}
