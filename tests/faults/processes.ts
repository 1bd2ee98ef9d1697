import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { type BankSettings, type ServiceKind, type ServiceSpec, startService } from '../../tools/local/bank.ts';
import { type Child, trySignal } from '../../tools/local/child.ts';
import { logTail } from '../../tools/local/log-file.ts';
import { accepts, freePort } from '../../tools/local/ports.ts';
import { awaitReady } from '../../tools/local/ready.ts';

/** A process of the bank under test. */
interface Process {
  name: string;
  log: string;
  running(): boolean;
  pid(): number;
  /**
   * Sends a signal only to this process. If the signal ends it, kill() or stop() must have been
   * called before.
   */
  signal(signal: NodeJS.Signals): void;
  /** kill -9; resolves when the process has ended. */
  kill(): Promise<void>;
  /** SIGTERM (Postgres: a fast shutdown), and SIGKILL after 30 s. */
  stop(): Promise<void>;
}

/** A service. */
export interface Node extends Process {
  kind: ServiceKind;
  baseUrl: string;
  healthUrl: string;
  /** Starts it, optionally with additional environment or another version. Does not wait until it is ready. */
  start(env?: Record<string, string>, project?: string): void;
  ready(timeoutMs?: number): Promise<void>;
}

/** The broker or the database. */
export interface Server extends Process {
  /**
   * Resolves when it serves, with the time (performance.now) at which its port accepted
   * connections.
   */
  start(): Promise<number>;
  port: number;
  /** Its process and the processes that it forked. */
  pids(): number[];
}

const readyMs = 90_000;
const stopMs = 30_000;

function fail(name: string): never {
  throw new Error(`${name} was never started`);
}

/** Common to nodes and servers: a child process that may be ended on purpose. */
function createProcess(name: string, log: string, unexpectedExits: string[]) {
  let child: Child | undefined;
  let ending = false;
  return {
    name,
    log,
    running: () => child?.running() ?? false,
    pid: () => child?.pid ?? fail(name),
    signal: (signal: NodeJS.Signals) => void trySignal(child?.pid ?? fail(name), signal),
    async kill() {
      ending = true;
      if (child?.running()) {
        trySignal(child.pid, 'SIGKILL');
        await child.exited;
      }
    },
    async stop() {
      ending = true;
      await child?.stop(stopMs);
    },
    took(started: Child) {
      child = started;
      ending = false;
      void started.exited.then((reason) => {
        if (child === started && !ending) unexpectedExits.push(`${name} ended by itself: ${reason}`);
      });
    },
  };
}

/** Returns a service that is not started yet. */
export async function makeNode(
  kind: ServiceKind,
  name: string,
  dir: string,
  settings: BankSettings,
  unexpectedExits: string[],
): Promise<Node> {
  const { took, ...process } = createProcess(name, join(dir, 'log', `${name}.log`), unexpectedExits);
  const spec: ServiceSpec = {
    kind,
    name,
    healthPort: await freePort(),
    port: kind === 'gateway' ? await freePort() : undefined,
    log: process.log,
  };
  const healthUrl = `http://127.0.0.1:${spec.healthPort}/readyz`;
  return {
    ...process,
    kind,
    baseUrl: `http://127.0.0.1:${spec.port}`,
    healthUrl,
    start: (env, project = settings.project) =>
      took(startService(spec, { ...settings, project, env: { ...settings.env, LOG_LEVEL: 'info', ...env } })),
    ready: (timeoutMs = readyMs) =>
      awaitReady({ url: healthUrl }, timeoutMs, () =>
        process.running() ? undefined : `never answered: ${name} died\n${logTail(process.log)}`,
      ),
  };
}

/**
 * Returns the broker or the database, not started yet; `start` gets the port and the log file, and resolves when it
 * serves.
 */
export function makeServer(
  name: string,
  log: string,
  port: number,
  unexpectedExits: string[],
  start: (port: number, log: string) => Promise<Child>,
): Server {
  const { took, ...process } = createProcess(name, log, unexpectedExits);
  return {
    ...process,
    port,
    pids: () => listPids(process),
    async start() {
      const starting = start(port, log);
      const opened = portOpens(port, starting);
      took(await starting);
      return opened;
    },
  };
}

/** Resolves with the time at which something listens on the port, or when `starting` is settled. */
async function portOpens(port: number, starting: Promise<Child>): Promise<number> {
  let settled = false;
  const end = () => {
    settled = true;
  };
  starting.then(end, end);
  while (!settled && !(await accepts('127.0.0.1', port, 200))) await sleep(10);
  return performance.now();
}

/** Returns a process and the processes that it forked. */
export function listPids(process: Pick<Process, 'pid'>): number[] {
  const pid = process.pid();
  try {
    const children = readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').trim();
    return [pid, ...(children === '' ? [] : children.split(' ').map(Number))];
  } catch {
    return [pid];
  }
}
