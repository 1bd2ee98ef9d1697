import type { ChildProcess } from 'node:child_process';
import { spawn, spawnSync } from 'node:child_process';
import { closeSync, fchmodSync, openSync, readFileSync, readlinkSync, renameSync, statSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';

const MAX_LOG_BYTES = 20 * 1024 * 1024;

/** A recorded process, which a later start can recognize and end. */
export type ProcessRecord = {
  name: string;
  pid: number;
  /** The start time of the process, from the kernel; a reused pid has a different one. */
  identity: string;
  /** Text that appears only in the command line of this process. */
  marker: string;
};

export type ChildOptions = {
  name: string;
  command: string;
  args: string[];
  env?: NodeJS.ProcessEnv;
  cwd?: string;
  uid?: number;
  gid?: number;
  /** Standard output and error are appended to this file. */
  log: string;
  marker: string;
  /** The signal that stops this program gracefully. */
  stopSignal?: 'SIGTERM' | 'SIGINT';
  onStart?: (record: ProcessRecord) => void;
};

export type Child = {
  name: string;
  pid: number;
  record: ProcessRecord;
  /** Resolves, never rejects, with a phrase such as "exit code 1" or "signal SIGKILL". */
  exited: Promise<string>;
  running: () => boolean;
  /** Asks it to stop and kills the process group after `timeoutMs`; resolves when it has ended. */
  stop: (timeoutMs: number) => Promise<void>;
};

const living = new Set<Child>();
/** How each running program is ended. */
const programs = new Map<ChildProcess, () => void>();

/**
 * For a launcher that fails to stop in order: ends running programs, asks every child to stop, and kills it after
 * `timeoutMs`.
 */
export async function stopAllChildren(timeoutMs: number): Promise<void> {
  for (const end of programs.values()) end();
  await Promise.all([...living].map((child) => child.stop(timeoutMs)));
}

let deathSignalWorks: boolean | undefined;

/**
 * Linux can send a signal to a child whose parent died, even by kill -9 (prctl PR_SET_PDEATHSIG
 * through setpriv).
 */
function withDeathSignal(signal: string, command: string, args: string[]): [string, string[]] {
  deathSignalWorks ??=
    process.platform === 'linux' &&
    spawnSync('setpriv', ['--pdeathsig', 'TERM', 'true'], { timeout: 2000 }).status === 0;
  return deathSignalWorks ? ['setpriv', ['--pdeathsig', signal.slice(3), command, ...args]] : [command, args];
}

/** Opens a log for appending; a large one of earlier runs is first renamed to `<file>.1`. */
function openLog(file: string): number {
  try {
    if (statSync(file).size > MAX_LOG_BYTES) renameSync(file, `${file}.1`);
  } catch {
    // There is no log yet.
  }
  const log = openSync(file, 'a', 0o600);
  fchmodSync(log, 0o600);
  return log;
}

/**
 * Starts a process in its own process group, so that Ctrl-C in the terminal reaches only the
 * launcher, which then stops everything in order. Throws if the program cannot be started.
 */
export function startChild(options: ChildOptions): Child {
  const stopSignal = options.stopSignal ?? 'SIGTERM';
  const [command, args] = withDeathSignal(stopSignal, options.command, options.args);
  const log = openLog(options.log);
  const child = spawn(command, args, {
    env: options.env ?? process.env,
    cwd: options.cwd,
    uid: options.uid,
    gid: options.gid,
    detached: true,
    stdio: ['ignore', log, log],
  });
  closeSync(log);
  let running = child.pid !== undefined;
  const exited = new Promise<string>((resolve) => {
    child.once('error', (error) => resolve(error.message));
    child.once('exit', (code, signal) => resolve(signal === null ? `exit code ${code}` : `signal ${signal}`));
  });
  if (child.pid === undefined) throw new Error(`${options.name}: ${options.command} could not be started`);
  const pid = child.pid;
  const record = { name: options.name, pid, identity: processIdentity(pid) ?? '', marker: options.marker };
  options.onStart?.(record);
  const stop = async (timeoutMs: number) => {
    if (running) trySignal(pid, stopSignal);
    await Promise.race([exited, sleep(timeoutMs, undefined, { ref: false })]);
    if (running) trySignal(-pid, 'SIGKILL');
    await exited;
  };
  const started: Child = { name: options.name, pid, record, exited, running: () => running, stop };
  living.add(started);
  void exited.then(() => {
    running = false;
    living.delete(started);
  });
  return started;
}

export type RunOptions = {
  input?: string;
  env?: NodeJS.ProcessEnv;
  cwd?: string;
  uid?: number;
  gid?: number;
  timeoutMs: number;
  /**
   * For a program that starts others: at the timeout the whole process group is asked to stop, and
   * killed after this many milliseconds.
   */
  groupGraceMs?: number;
  /** The output goes to that of this process instead of being returned. */
  isShown?: boolean;
};

/**
 * Runs a program to its end; never rejects. `code` is null if it was killed (at the timeout) or
 * could not be started.
 */
export function runToEnd(
  command: string,
  args: string[],
  options: RunOptions,
): Promise<{ code: number | null; stdout: string; stderr: string }> {
  const { timeoutMs, input, groupGraceMs, isShown = false, ...spawnOptions } = options;
  return new Promise((resolve) => {
    const inGroup = groupGraceMs !== undefined;
    const child = spawn(command, args, {
      ...spawnOptions,
      stdio: ['pipe', ...(isShown ? (['inherit', 'inherit'] as const) : (['pipe', 'pipe'] as const))],
      ...(inGroup ? { detached: true } : { timeout: timeoutMs, killSignal: 'SIGKILL' }),
    });
    const timedOut = inGroup ? stopGroupLater(child, timeoutMs, groupGraceMs) : () => false;
    programs.set(child, () => {
      if (!inGroup) child.kill('SIGKILL');
      else if (child.pid !== undefined) trySignal(-child.pid, 'SIGTERM');
    });
    child.once('close', () => programs.delete(child));
    let stdout = '';
    let stderr = '';
    child.stdout?.on('data', (chunk: Buffer) => {
      stdout += chunk.toString('utf8');
    });
    child.stderr?.on('data', (chunk: Buffer) => {
      stderr += chunk.toString('utf8');
    });
    child.stdin?.on('error', () => {}); // The program may not read its input.
    child.stdin?.end(input ?? '');
    child.once('error', (error) => resolve({ code: null, stdout, stderr: error.message }));
    child.once('close', (code) => resolve({ code: timedOut() ? null : code, stdout, stderr }));
  });
}

/**
 * Ends a process group after the timeout, first with a signal that lets its programs clean up, then
 * with SIGKILL; returns whether that happened.
 */
function stopGroupLater(child: ChildProcess, timeoutMs: number, graceMs: number): () => boolean {
  let isOver = false;
  const killGroup = (signal: NodeJS.Signals) => child.pid !== undefined && trySignal(-child.pid, signal);
  let timer = setTimeout(() => {
    isOver = true;
    killGroup('SIGTERM');
    timer = setTimeout(() => killGroup('SIGKILL'), graceMs);
  }, timeoutMs);
  child.once('error', () => clearTimeout(timer));
  child.once('close', () => clearTimeout(timer));
  return () => isOver;
}

/** Sends a signal (0 only tests); returns false if there is no such process. */
export function trySignal(pid: number, signal: NodeJS.Signals | 0): boolean {
  try {
    process.kill(pid, signal);
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM';
  }
}

/** Returns the start time of a process; undefined if it has ended (also for a zombie). */
export function processIdentity(pid: number): string | undefined {
  if (process.platform === 'linux') {
    try {
      const fields = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ').pop()!.split(' ');
      return fields[0] === 'Z' ? undefined : fields[19];
    } catch {
      return undefined;
    }
  }
  if (process.platform === 'win32') return trySignal(pid, 0) ? 'unknown' : undefined;
  return spawnSync('ps', ['-o', 'lstart=', '-p', String(pid)], { encoding: 'utf8' }).stdout.trim() || undefined;
}

/** Returns the command line of a process; empty if it has ended or cannot be read. */
export function commandLine(pid: number): string {
  try {
    if (process.platform === 'linux') return readFileSync(`/proc/${pid}/cmdline`, 'utf8').replaceAll('\0', ' ');
    return spawnSync('ps', ['-ww', '-o', 'command=', '-p', String(pid)], { encoding: 'utf8' }).stdout;
  } catch {
    return '';
  }
}

/** Returns the working directory of a process (Linux only). */
export function workingFolder(pid: number): string | undefined {
  try {
    return readlinkSync(`/proc/${pid}/cwd`);
  } catch {
    return undefined;
  }
}

/** Reports whether the recorded process is still running and is the same one: same start time and command line. */
export function isSameProcess(record: ProcessRecord): boolean {
  return processIdentity(record.pid) === record.identity && commandLine(record.pid).includes(record.marker);
}

/**
 * Ends recorded processes of an earlier, killed run and waits for their end. Returns their names.
 */
export async function endLeftovers(records: ProcessRecord[], graceMs = 3000): Promise<string[]> {
  const living = records.filter(isSameProcess);
  for (const record of living) trySignal(record.pid, 'SIGTERM');
  const killAt = Date.now() + graceMs;
  while (living.some(isSameProcess)) {
    if (Date.now() > killAt + 5000)
      throw new Error(`process ${living.find(isSameProcess)?.pid} of an earlier run does not end`);
    if (Date.now() > killAt) for (const record of living.filter(isSameProcess)) trySignal(record.pid, 'SIGKILL');
    await sleep(50);
  }
  return living.map((record) => record.name);
}
