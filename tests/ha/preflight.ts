import { accessSync, constants } from 'node:fs';
import { join } from 'node:path';
import { haveJars, haveMaven, javaVersion } from '../../tools/local/kafka-jars.ts';

/** Programs that `npm run test:ha` needs in addition, with their Debian packages. */
const packages: Record<string, string> = {
  patroni: 'patroni',
  etcd: 'etcd-server',
  haproxy: 'haproxy',
  pg_isready: 'postgresql-client',
  openssl: 'openssl',
  git: 'git',
  tar: 'tar',
};
/** The folders of programs that only administrators have in PATH. */
const more = ['/usr/local/sbin', '/usr/sbin', '/usr/bin', '/bin'];
const minJava = 17;

/** Returns the path of a program of the list above, or undefined if it is not installed. */
export function findProgram(program: string): string | undefined {
  for (const folder of [...(process.env['PATH'] ?? '').split(':'), ...more]) {
    const path = join(folder, program);
    try {
      accessSync(path, constants.X_OK);
      return path;
    } catch {
      // The program is not in this folder.
    }
  }
  return undefined;
}

export function programPath(program: string): string {
  const path = findProgram(program);
  if (path === undefined) throw new Error(`${program} is missing: install the Debian package ${packages[program]}`);
  return path;
}

/** Throws an error with everything that this machine lacks and how to install it. Nothing is skipped. */
export function requirePrograms(): void {
  if (process.platform !== 'linux')
    throw new Error('test:ha needs Linux: it freezes processes, and gives each pair of brokers an address of its own');
  const missing = Object.entries(packages)
    .filter(([program]) => findProgram(program) === undefined)
    .map(([program, name]) => ({ program, name }));
  const java = javaVersion();
  if (java === undefined || java < minJava)
    missing.push({ program: `java ${minJava} or later`, name: 'openjdk-17-jre-headless' });
  if (!haveJars() && !haveMaven()) missing.push({ program: 'mvn', name: 'maven' });
  if (missing.length === 0) return;
  const install = `apt-get install -y --no-install-recommends ${missing.map(({ name }) => name).join(' ')}`;
  throw new Error(`test:ha needs ${missing.map(({ program }) => program).join(', ')}. On Debian: ${install}`);
}
