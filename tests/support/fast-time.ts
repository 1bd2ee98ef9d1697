/**
 * Returns an environment in which SIGWINCH makes the timers and the monotonic clock of a process run this many times
 * faster, and the next SIGWINCH makes them normal again. Dates are those of the host, and Node's internals below timers
 * are not faster.
 */
export function fastTime(speed: number): Record<string, string> {
  return { NODE_OPTIONS: `--import=data:text/javascript,${encodeURIComponent(hurry(speed))}` };
}

function hurry(speed: number): string {
  return `import { syncBuiltinESMExports } from 'node:module';
import timers from 'node:timers';
import promises from 'node:timers/promises';
const own = performance.now.bind(performance);
let [speed, readAt, value] = [1, 0, 0];
performance.now = () => {
  const now = own();
  value += (now - readAt) * speed;
  readAt = now;
  return value;
};
process.on('SIGWINCH', () => {
  performance.now();
  speed = speed === 1 ? ${speed} : 1;
});
for (const name of ['setTimeout', 'setInterval']) {
  const [start, startPromise] = [timers[name], promises[name]];
  timers[name] = globalThis[name] = Object.assign((work, ms = 1, ...rest) => start(work, ms / speed, ...rest), start);
  promises[name] = (ms = 1, ...rest) => startPromise(ms / speed, ...rest);
}
syncBuiltinESMExports();`;
}
