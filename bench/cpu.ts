import { readFileSync } from 'node:fs';

/** One tick of /proc in seconds: USER_HZ is 100 on every architecture that this runs on. */
const tickSeconds = 0.01;

/** Returns the fields of /proc/<pid>/stat from the third on, or undefined if the process has ended. */
function readProcStat(pid: number): string[] | undefined {
  try {
    return readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ').pop()?.split(' ');
  } catch {
    return undefined;
  }
}

function readCpuSeconds(pid: number, fields: number[]): number {
  const stat = readProcStat(pid);
  return fields.reduce((sum, field) => sum + Number(stat?.[field - 3] ?? 0), 0) * tickSeconds;
}

const own = [14, 15];
const ofEndedChildren = [16, 17];

/** Returns the CPU seconds that a process has used, user and system, in all threads. */
export function cpuSeconds(pid: number): number {
  return readCpuSeconds(pid, own);
}

/**
 * Returns the CPU seconds of a server that forks: its own, those of its running children, and those of children that
 * have ended.
 */
export function cpuSecondsWithChildren(pid: number): number {
  return childPids(pid).reduce(
    (sum, child) => sum + cpuSeconds(child),
    readCpuSeconds(pid, [...own, ...ofEndedChildren]),
  );
}

/** Returns the process ids of its running children. */
export function childPids(pid: number): number[] {
  try {
    return readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8')
      .trim()
      .split(' ')
      .filter((text) => text !== '')
      .map(Number);
  } catch {
    return [];
  }
}

/** Returns the resident memory of a process in MB (10^6 bytes). */
export function residentMb(pid: number): number {
  try {
    return (Number(/^VmRSS:\s+(\d+) kB/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1] ?? 0) * 1024) / 1e6;
  } catch {
    return 0;
  }
}

/**
 * Returns the CPU seconds that the whole machine has used: user, nice, system, interrupts, and time stolen by its host.
 */
export function machineSeconds(): number {
  const [, user, nice, system, , , irq, softirq, steal] =
    readFileSync('/proc/stat', 'utf8').split('\n')[0]?.split(/ +/).map(Number) ?? [];
  return ((user ?? 0) + (nice ?? 0) + (system ?? 0) + (irq ?? 0) + (softirq ?? 0) + (steal ?? 0)) * tickSeconds;
}
