import { existsSync, globSync } from 'node:fs';

const libraries = [
  '/usr/lib/*/faketime/libfaketimeMT.so.1',
  '/usr/lib/faketime/libfaketimeMT.so.1',
  '/usr/local/lib/faketime/libfaketimeMT.so.1',
];

/**
 * Environment under which a process that Node runs believes that it is so many hours later (earlier, where negative):
 * by libfaketime, which shifts the clock below the process, else by shifting Date inside of it.
 */
export function skewedClock(hours: number): Record<string, string> {
  const library = libraries.flatMap((pattern) => globSync(pattern)).find((file) => existsSync(file));
  // A clock that never jumps is right on a host whose clock is wrong.
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
