import { chmodSync, existsSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { createPool } from '#libs/postgres/pool.ts';
import { silent } from '#libs/postgres/test/test-database.ts';
import { type Child, commandLine, startChild, trySignal } from '../../tools/local/child.ts';
import { accepts, freePort } from '../../tools/local/ports.ts';
import { chooseUser, findPrograms, postgresUrl } from '../../tools/local/postgres.ts';
import type { ServersContext } from '../faults/cluster.ts';
import { listPids, makeServer, type Server } from '../faults/processes.ts';
import { eventually } from '../support/eventually.ts';
import { patroniSettings } from './patroni/settings.ts';
import { programPath } from './preflight.ts';

/**
 * A primary and a synchronous standby under Patroni, which stores in etcd which one is the primary. HAProxy routes
 * connections to it. The servers come from the npm package; Patroni, etcd, and HAProxy are Debian's.
 */
export interface Database {
  members: Member[];
  /** HAProxy's port, to which the bank connects. */
  port: number;
  /** Both members, etcd, and HAProxy as one server, to start and stop them together. */
  together: Server;
  /** Returns the member that is the primary, or undefined if none is. */
  primary(): Promise<Member | undefined>;
  standby(): Promise<Member | undefined>;
  /** Resolves when there is a primary and the other member is its synchronous standby. */
  paired(timeoutMs?: number): Promise<void>;
  /** Makes both reload their settings and certificates. */
  reload(): Promise<void>;
  /** Requests a controlled switchover to the standby from Patroni. */
  switchover(): Promise<void>;
}

/** Patroni with its server. kill() ends both, like the loss of the machine. */
export interface Member extends Server {
  /** Port and process of Postgres itself. */
  restPort: number;
  /** Freezes the WAL sender of this primary, so that its standby falls behind. */
  freezeSenders(): void;
  /**
   * Patroni's report about itself, such as {role: 'primary', state: 'running'}; undefined if it
   * does not respond.
   */
  status(): Promise<{ role?: string; state?: string; sync_standby?: boolean; timeline?: number } | undefined>;
}

export interface DatabaseOptions {
  /** The certificate that the servers present. */
  tls: { cert: string; key: string };
  /** false: for the self-test, replication is asynchronous. */
  synchronous?: boolean;
}

const startMs = 60_000;

export async function makeDatabase(
  context: ServersContext,
  { tls, synchronous = true }: DatabaseOptions,
): Promise<Database> {
  const { dir, superuserPassword, owner, unexpectedExits } = context;
  const programs = await findPrograms();
  const { prefix, uid, gid } = chooseUser(programs, dir);
  const bin = makeBin(join(dir, 'postgres-bin'), programs);
  const etcd = await makeEtcd(context);
  const ports = await Promise.all(
    ['a', 'b'].map(async (name) => ({ name, port: await freePort(), restPort: await freePort() })),
  );
  const folders = Object.fromEntries(ports.map(({ name, port }) => [port, join(dir, `postgres-${name}`)]));
  const members = ports.map(({ name, port, restPort }): Member => {
    const config = join(dir, `patroni-${name}.json`);
    const settings = patroniSettings({
      name,
      port,
      restPort,
      etcdPort: etcd.port,
      bin,
      folders,
      superuserPassword,
      synchronous,
      tls,
    });
    writeFileSync(config, JSON.stringify(settings, null, 2), { mode: 0o600 });
    const server = makeServer(
      `postgres-${name}`,
      join(dir, 'log', `postgres-${name}.log`),
      port,
      unexpectedExits,
      async (_, log) => {
        const [command, ...args] = [...prefix, programPath('patroni'), config] as unknown as [string, ...string[]];
        const child = startChild({ name: `patroni-${name}`, command, args, uid, gid, log, marker: config });
        await awaitServing(child, () => status(restPort).then((now) => now?.state === 'running'));
        return child;
      },
    );
    const folder = folders[port] ?? '';
    return {
      ...server,
      restPort,
      status: () => status(restPort),
      kill: () => killMachine(server, folder),
      freezeSenders: () => senderPids(folder).forEach((pid) => trySignal(pid, 'SIGSTOP')),
    };
  });
  const haproxy = await makeHaproxy(context, members);
  const byRole = async (role: string) => {
    for (const member of members) if ((await member.status())?.role === role) return member;
    return undefined;
  };
  const primary = async () => (await byRole('primary')) ?? byRole('master');
  const standby = () => byRole('replica');
  const paired = async (timeoutMs = startMs): Promise<void> =>
    void (await eventually(async () => {
      const [first, second] = [await primary(), await standby()];
      const now = await second?.status();
      return (
        first !== undefined &&
        now?.state?.match(/running|streaming/) != null &&
        (!synchronous || now.sync_standby === true) &&
        (await accepts('127.0.0.1', haproxy.port))
      );
    }, timeoutMs));
  const start = async (): Promise<number> => {
    const asleep = [etcd, ...members, haproxy].filter((one) => !one.running());
    for (const one of asleep) await one.start();
    await paired();
    // HAProxy considers every server healthy until its first check.
    await eventually(() => createOwner(haproxy.port, superuserPassword, owner).then(() => true), startMs);
    return performance.now();
  };
  const stop = async (how: 'stop' | 'kill'): Promise<void> => {
    await haproxy[how]();
    // The standby is stopped first, so that the primary does not promote it when it stops.
    for (const member of [await standby(), ...members]) await member?.[how]();
    await etcd[how]();
  };
  return {
    members,
    port: haproxy.port,
    primary,
    standby,
    paired,
    together: {
      ...haproxy,
      name: 'database',
      running: () => [etcd, ...members, haproxy].every((one) => one.running()),
      start,
      stop: () => stop('stop'),
      kill: () => stop('kill'),
    },
    async reload() {
      // The servers themselves reload their settings; Patroni is not involved.
      for (const folder of Object.values(folders)) for (const pid of postmasterPid(folder)) trySignal(pid, 'SIGHUP');
    },
    async switchover() {
      const [from, to] = [await primary(), await standby()];
      const body = JSON.stringify({
        leader: from?.name.replace('postgres-', ''),
        candidate: to?.name.replace('postgres-', ''),
      });
      const response = await fetch(`http://127.0.0.1:${from?.restPort}/switchover`, {
        method: 'POST',
        body,
        signal: AbortSignal.timeout(60_000),
      });
      if (!response.ok) throw new Error(`Patroni rejects the switchover: ${response.status} ${await response.text()}`);
    },
  };
}

/**
 * Fills a folder with the programs of a member: those of the npm package, Debian's pg_isready, and a replacement for
 * pg_controldata.
 */
function makeBin(bin: string, programs: { initdb: string; postgres: string }): string {
  mkdirSync(bin, { recursive: true });
  const native = join(programs.postgres, '..');
  const script = (name: string, text: string) => {
    writeFileSync(join(bin, name), `#!/bin/sh\nexec ${text} "$@"\n`);
    chmodSync(join(bin, name), 0o755);
  };
  // They are copies and not symbolic links, because a server looks for its libraries relative to the path with which it
  // was started.
  for (const name of ['initdb', 'postgres', 'pg_ctl']) script(name, join(native, name));
  if (!existsSync(join(bin, 'pg_isready'))) symlinkSync(programPath('pg_isready'), join(bin, 'pg_isready'));
  script('pg_controldata', `${process.execPath} ${join(import.meta.dirname, 'patroni', 'control-data.ts')}`);
  return bin;
}

async function makeEtcd({ dir, unexpectedExits }: ServersContext): Promise<Server> {
  const peer = await freePort();
  return makeServer('etcd', join(dir, 'log', 'etcd.log'), await freePort(), unexpectedExits, async (port, log) => {
    const url = `http://127.0.0.1:${port}`;
    const peerUrl = `http://127.0.0.1:${peer}`;
    const args = [
      '--data-dir',
      join(dir, 'etcd'),
      '--listen-client-urls',
      url,
      '--advertise-client-urls',
      url,
      '--listen-peer-urls',
      peerUrl,
      '--initial-advertise-peer-urls',
      peerUrl,
      '--initial-cluster',
      `default=${peerUrl}`,
      '--unsafe-no-fsync',
    ];
    const child = startChild({ name: 'etcd', command: programPath('etcd'), args, log, marker: join(dir, 'etcd') });
    await awaitServing(child, async () => (await fetch(`${url}/health`, { signal: AbortSignal.timeout(1000) })).ok);
    return child;
  });
}

/**
 * Checks twice a second which member is the primary, and closes the connections of a member that no
 * longer is.
 */
async function makeHaproxy({ dir, unexpectedExits }: ServersContext, members: Member[]): Promise<Server> {
  return makeServer(
    'haproxy',
    join(dir, 'log', 'haproxy.log'),
    await freePort(),
    unexpectedExits,
    async (port, log) => {
      const config = join(dir, 'haproxy.cfg');
      const servers = members.map(
        ({ name, port: to, restPort }) => `  server ${name} 127.0.0.1:${to} check port ${restPort}`,
      );
      writeFileSync(
        config,
        `${[
          'defaults',
          '  mode tcp',
          '  timeout connect 1s',
          '  timeout client 1h',
          '  timeout server 1h',
          '  timeout check 1s',
          '  retries 0',
          'listen primary',
          `  bind 127.0.0.1:${port}`,
          '  option httpchk OPTIONS /primary',
          '  http-check expect status 200',
          '  default-server inter 500ms fall 2 rise 1 on-marked-down shutdown-sessions',
          ...servers,
        ].join('\n')}\n`,
      );
      const child = startChild({
        name: 'haproxy',
        command: programPath('haproxy'),
        args: ['-db', '-f', config],
        log,
        marker: config,
      });
      await awaitServing(child, () => accepts('127.0.0.1', port));
      return child;
    },
  );
}

async function status(restPort: number): Promise<Awaited<ReturnType<Member['status']>>> {
  try {
    const response = await fetch(`http://127.0.0.1:${restPort}/patroni`, { signal: AbortSignal.timeout(1000) });
    return (await response.json()) as Awaited<ReturnType<Member['status']>>;
  } catch {
    return undefined;
  }
}

async function awaitServing(child: Child, serves: () => Promise<boolean>): Promise<void> {
  await eventually(async () => {
    if (!child.running()) throw new Error(`${child.name} has ended: ${await child.exited}`);
    return serves().catch(() => false);
  }, startMs);
}

/** Returns Patroni and every process of its server, to simulate the loss of their machine. */
async function killMachine(patroni: Server, folder: string): Promise<void> {
  const pids = postmasterPid(folder).flatMap((pid) => listPids({ pid: () => pid }));
  const killed = patroni.kill();
  for (const pid of pids) trySignal(pid, 'SIGKILL');
  await killed;
}

function senderPids(folder: string): number[] {
  return postmasterPid(folder)
    .flatMap((pid) => listPids({ pid: () => pid }))
    .filter((pid) => commandLine(pid).includes('walsender'));
}

/** Returns the server's process for this data folder, if there is one. */
function postmasterPid(folder: string): number[] {
  const file = join(folder, 'postmaster.pid');
  return existsSync(file) ? [Number(readFileSync(file, 'utf8').split('\n')[0])] : [];
}

async function createOwner(port: number, password: string, owner: { name: string; password: string }): Promise<void> {
  const pool = createPool(
    { url: postgresUrl(port, 'postgres', password, 'postgres'), application_name: 'ha', schema: 'public', max: 1 },
    silent,
  );
  try {
    const { rowCount } = await pool.query('select from pg_database where datname = $1', [owner.name]);
    if (rowCount !== 0) return;
    await pool.query(`drop role if exists ${owner.name}`);
    await pool.query(
      `create role ${owner.name} login createrole createdb password '${owner.password}' in role pg_monitor, pg_signal_backend`,
    );
    await pool.query(`create database ${owner.name} owner ${owner.name}`);
  } finally {
    await pool.end();
  }
}
