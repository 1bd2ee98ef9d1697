import { randomBytes } from 'node:crypto';
import {
  chmodSync,
  existsSync,
  linkSync,
  mkdirSync,
  readFileSync,
  realpathSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { ProcessRecord } from './child.ts';
import { endLeftovers, isSameProcess, processIdentity } from './child.ts';
import { freePortOr } from './ports.ts';

/** The state that is kept between starts; it contains secrets, so only its owner can read it. */
type State = { ports: Record<string, number>; secrets: Record<string, string>; values: Record<string, string> };

export type LocalDir = {
  path: string;
  /** Names of processes of an earlier, killed run that had to be ended. */
  cleared: string[];
  log: (name: string) => string;
  /** The port kept under this name, or a new one if another process listens on it now. */
  port: (name: string, wanted?: number) => Promise<number>;
  /** A random secret, generated once and kept: hexadecimal, 32 bytes by default. */
  secret: (name: string, bytes?: number) => string;
  value: (name: string) => string | undefined;
  keepValue: (name: string, value: string) => void;
  /** Records a child process, so that a start after kill -9 finds it. */
  recordProcess: (record: ProcessRecord) => void;
  /** Throws an error of one line if the folder has been removed or moved since it was opened. */
  checkThere: () => void;
  /** Announces that the folder will be released soon, so that a new start waits. */
  stopping: () => void;
  /** Forgets the child processes and releases the folder. */
  release: () => void;
};

/** Maximum time that a start waits for an earlier one that is stopping. */
const STOP_WAIT_MS = 25_000;

export const PROJECT = resolve(import.meta.dirname, '..', '..');

/** Writes a file atomically; only its owner can read it. */
export function writeAtomically(file: string, text: string): void {
  const temporary = `${file}.${process.pid}.tmp`;
  writeFileSync(temporary, text, { mode: 0o600 });
  renameSync(temporary, file);
}

/**
 * Opens LOCAL_DIR exclusively: creates it, locks it, and ends processes that a killed run left. Throws an error of one
 * line if it cannot be written or another start has locked it.
 */
export async function openLocalDir(wanted: string): Promise<LocalDir> {
  const path = makeFolder(wanted);
  const lock = await takeLock(join(path, 'lock'));
  const processesFile = join(path, 'processes.json');
  const stateFile = join(path, 'state.json');
  if (!existsSync(stateFile) && existsSync(join(path, 'postgres'))) {
    lock.release();
    throw new Error(
      `${path} holds a database, but not the state.json with its passwords. Put that back, or delete the folder: the next start then makes an empty bank`,
    );
  }
  const state: State = { ports: {}, secrets: {}, values: {}, ...readJson<Partial<State>>(stateFile) };
  const save = () => writeAtomically(stateFile, `${JSON.stringify(state, null, 2)}\n`);
  let processes: ProcessRecord[] = readJson<ProcessRecord[]>(processesFile) ?? [];
  const cleared = await endLeftovers(processes);
  processes = [];
  return {
    path,
    cleared,
    log: (name) => join(path, 'log', `${name}.log`),
    async port(name, preferred) {
      const port = await freePortOr(preferred ?? state.ports[name]);
      if (state.ports[name] !== port) {
        state.ports[name] = port;
        save();
      }
      return port;
    },
    secret(name, bytes = 32) {
      const kept = state.secrets[name];
      if (kept !== undefined) return kept;
      const made = randomBytes(bytes).toString('hex');
      state.secrets[name] = made;
      save();
      return made;
    },
    value: (name) => state.values[name],
    keepValue(name, value) {
      state.values[name] = value;
      save();
    },
    recordProcess(record) {
      processes = [...processes.filter(isSameProcess), record];
      writeAtomically(processesFile, JSON.stringify(processes));
    },
    checkThere() {
      if (!existsSync(stateFile)) throw new Error(`${path} was removed or moved while its bank ran`);
    },
    stopping: lock.stopping,
    release() {
      rmSync(processesFile, { force: true });
      lock.release();
    },
  };
}

function makeFolder(wanted: string): string {
  const path = resolve(wanted);
  try {
    const logs = join(path, 'log');
    mkdirSync(logs, { recursive: true });
    chmodSync(logs, 0o700);
    const probe = join(path, `.writable-${process.pid}`);
    writeFileSync(probe, '');
    rmSync(probe);
    return realpathSync(path);
  } catch (error) {
    throw new Error(
      `LOCAL_DIR ${path} cannot be written (${(error as Error).message}). Set LOCAL_DIR to a folder of yours`,
    );
  }
}

function readJson<T>(file: string): T | undefined {
  try {
    return JSON.parse(readFileSync(file, 'utf8')) as T;
  } catch {
    return undefined;
  }
}

interface Holder extends ProcessRecord {
  /** Records that the holder is stopping, so that the next start waits for it. */
  stopping?: boolean;
}

interface Lock {
  stopping(): void;
  release(): void;
}

/**
 * Allows one start per folder. The lock contains the pid of its holder. The lock of a process that has ended is taken
 * over. If the holder is stopping, the start waits for it, because under npm a stop can still be in progress after npm
 * itself has ended.
 */
async function takeLock(file: string): Promise<Lock> {
  const mine: ProcessRecord = {
    name: 'launcher',
    pid: process.pid,
    identity: processIdentity(process.pid) ?? '',
    marker: '',
  };
  const draft = `${file}.${process.pid}`;
  const patience = performance.now() + STOP_WAIT_MS;
  for (let attempt = 0; attempt < 5; attempt++) {
    writeFileSync(draft, JSON.stringify(mine), { mode: 0o600 });
    try {
      linkSync(draft, file); // Fails if it exists. The file is complete as soon as it exists.
      return {
        stopping() {
          // The folder may have been removed or moved meanwhile, which must not keep its programs from being stopped.
          if (existsSync(file)) writeAtomically(file, JSON.stringify({ ...mine, stopping: true } satisfies Holder));
        },
        release: () => rmSync(file, { force: true }),
      };
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
    } finally {
      rmSync(draft, { force: true });
    }
    const holder = readJson<Holder>(file);
    if (holder !== undefined && isSameProcess(holder)) {
      if (holder.stopping && performance.now() < patience) {
        await sleep(100);
        attempt = 0;
        continue;
      }
      throw new Error(
        `${dirname(file)} is already in use by process ${holder.pid}. Stop it, or set LOCAL_DIR and PORT for a second copy`,
      );
    }
    removeStale(file, holder);
  }
  throw new Error(`the lock ${file} could not be taken; several starts at once?`);
}

/** Removes the lock of a holder that has ended. If another start has replaced it in between, that lock is restored. */
function removeStale(file: string, holder: ProcessRecord | undefined): void {
  const aside = `${file}.stale-${process.pid}`;
  try {
    renameSync(file, aside);
    if (readJson<ProcessRecord>(aside)?.pid !== holder?.pid) linkSync(aside, file);
  } catch {
    // Another process was faster; the next attempt checks again.
  } finally {
    rmSync(aside, { force: true });
  }
}
