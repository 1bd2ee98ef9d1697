/**
 * Returns a function that reports how much CPU this process used, in cores, in the latest `windowMs` or more; 0 until then. It
 * is CPU time and not the use of the event loop, because a process that waits for a core says nothing about another process on
 * the same cores.
 */
export function cpuMeter(windowMs: number): () => number {
  let start = process.cpuUsage();
  let startedAt = performance.now();
  let cores = 0;
  return () => {
    const elapsedMs = performance.now() - startedAt;
    if (elapsedMs < windowMs) return cores;
    const { user, system } = process.cpuUsage(start);
    cores = (user + system) / 1_000 / elapsedMs;
    start = process.cpuUsage();
    startedAt = performance.now();
    return cores;
  };
}
