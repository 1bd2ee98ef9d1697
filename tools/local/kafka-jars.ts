import { spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { constants, existsSync, readFileSync } from 'node:fs';
import { access, mkdir, open, readdir, readFile, rename, rm } from 'node:fs/promises';
import { homedir } from 'node:os';
import { dirname, join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { runToEnd, trySignal } from './child.ts';

const POM = join(import.meta.dirname, 'pom.xml');
const MAVEN_TIMEOUT_MS = 5 * 60_000;

/** Returns the folder of Kafka's jars, which all copies of the project share. Its name depends on pom.xml. */
export function jarFolder(): string {
  const pom = readFileSync(POM, 'utf8');
  const version = /kafka_2\.13<\/artifactId>\s*<version>([^<]+)</.exec(pom)?.[1] ?? 'unknown';
  const hash = createHash('sha256').update(pom).digest('hex').slice(0, 8);
  return join(process.env['XDG_CACHE_HOME'] || join(home(), '.cache'), 'core-banking', `kafka-${version}-${hash}`);
}

/** Without HOME, the home of a user id that has no name is unknown. */
function home(): string {
  try {
    return homedir();
  } catch {
    return '/';
  }
}

/** Reports whether the jars exist: the folder appears only when it is complete. */
export function haveJars(): boolean {
  return existsSync(jarFolder());
}

/** Returns the environment of a Java program, which reads and writes the names of files in the encoding of its locale. */
export function javaEnvironment(): NodeJS.ProcessEnv {
  return { ...process.env, LC_ALL: 'C.UTF-8' };
}

/** Returns the major version of `java`; undefined if there is none. */
export function javaVersion(): number | undefined {
  const result = spawnSync('java', ['-version'], { encoding: 'utf8', timeout: 10_000 });
  const major = /version "(\d+)/.exec(result.stderr ?? '')?.[1];
  return result.status === 0 && major !== undefined ? Number(major) : undefined;
}

/** Reports whether `mvn` can be run. */
export function haveMaven(): boolean {
  return (
    spawnSync('mvn', ['--version'], { timeout: 20_000, stdio: 'ignore', shell: process.platform === 'win32' })
      .status === 0
  );
}

/**
 * Returns the folder with Kafka's jars, and downloads them with Maven if they are missing. If several copies start at
 * the same time, one downloads and the others wait. Throws an error of one line with Maven's error.
 */
export async function ensureJars(): Promise<string> {
  const folder = jarFolder();
  if (existsSync(folder)) return folder;
  await mkdir(dirname(folder), { recursive: true }).catch((error: Error) => {
    throw new Error(
      `Kafka's jars cannot be kept in ${dirname(folder)} (${error.message}). Set XDG_CACHE_HOME or HOME to a folder that can be written`,
    );
  });
  const unlock = await lock(`${folder}.lock`, () => existsSync(folder));
  try {
    if (!existsSync(folder)) await fetchJars(folder);
  } finally {
    await unlock();
  }
  return folder;
}

async function fetchJars(folder: string): Promise<void> {
  const partial = `${folder}.partial-${process.pid}`;
  try {
    const args = [
      '-B',
      '-ntp',
      '-q',
      '-f',
      POM,
      'dependency:copy-dependencies',
      '-DincludeScope=runtime',
      `-DoutputDirectory=${partial}`,
      ...((await isWritable(home())) ? [] : [`-Dmaven.repo.local=${partial}-repository`]),
    ];
    const { code, stdout, stderr } = await runToEnd('mvn', args, {
      env: javaEnvironment(),
      timeoutMs: MAVEN_TIMEOUT_MS,
    });
    if (code !== 0) {
      const cause = firstError(stdout + stderr) ?? `exit code ${code}`;
      throw new Error(
        `Maven could not fetch Kafka's jars (the network is needed once, or set KAFKA_BROKERS): ${cause}`,
      );
    }
    const jars = await readdir(partial);
    if (!jars.some((name) => name.startsWith('kafka_'))) throw new Error('Maven fetched no Kafka jars');
    await rename(partial, folder);
  } finally {
    for (const unfinished of [partial, `${partial}-repository`]) await rm(unfinished, { recursive: true, force: true });
  }
}

const isWritable = (folder: string): Promise<boolean> =>
  access(folder, constants.W_OK).then(
    () => true,
    () => false,
  );

function firstError(output: string): string | undefined {
  const line = output.split('\n').find((text) => text.includes('[ERROR]'));
  return line
    ?.replaceAll(/\u001b\[[0-9;]*m/g, '')
    .replace('[ERROR]', '')
    .trim();
}

/**
 * Takes a lock file with the pid of its holder. The lock of a process that has ended is taken over. Returns early if
 * `done` returns true.
 */
async function lock(file: string, done: () => boolean): Promise<() => Promise<void>> {
  const end = Date.now() + MAVEN_TIMEOUT_MS;
  while (!done() && Date.now() < end) {
    try {
      const handle = await open(file, 'wx');
      await handle.writeFile(String(process.pid));
      await handle.close();
      return () => rm(file, { force: true });
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
    }
    const holder = Number(await readFile(file, 'utf8').catch(() => ''));
    if (holder > 0 && !trySignal(holder, 0)) await rm(file, { force: true });
    else await sleep(200);
  }
  return async () => {};
}
