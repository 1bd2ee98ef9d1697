/**
 * Environment with which a process's timers and its monotonic clock run this many times faster.
 * Dates are those of the host, and Node's internals below timers are not faster.
 */
export function fastTime(speed: number): Record<string, string> {
  return { NODE_OPTIONS: `--import=data:text/javascript,${encodeURIComponent(hurry(speed))}` };
}

function hurry(speed: number): string {
  return `import { syncBuiltinESMExports } from 'node:module';
import timers from 'node:timers';
import promises from 'node:timers/promises';
const own = performance.now.bind(performance);
performance.now = () => own() * ${speed};
for (const name of ['setTimeout', 'setInterval']) {
  const [start, startPromise] = [timers[name], promises[name]];
  timers[name] = globalThis[name] = Object.assign((work, ms = 1, ...rest) => start(work, ms / ${speed}, ...rest), start);
  promises[name] = (ms = 1, ...rest) => startPromise(ms / ${speed}, ...rest);
}
syncBuiltinESMExports();`;
}
