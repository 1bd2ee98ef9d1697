import { spawnSync } from 'node:child_process';
import { haveMaven, javaVersion } from '../../tools/local/kafka-jars.ts';

const succeeds = (command: string, ...args: string[]) => spawnSync(command, args).status === 0;
const oldestPython = 'import sys, pip; sys.exit(sys.version_info < (3, 10))';

const programs = {
  Java: { name: 'Java 17', isHere: () => (javaVersion() ?? 0) >= 17 },
  Maven: { name: 'Maven', isHere: haveMaven },
  Python: { name: 'Python 3.10 with pip', isHere: () => succeeds('python3', '-c', oldestPython) },
  Go: { name: 'Go', isHere: () => succeeds('go', 'version') },
};

/**
 * Reports whether these programs of other languages are here, and warns about those that are missing. Throws instead in
 * strict continuous integration (.ci/run), where nothing may be skipped.
 */
export function have(...names: (keyof typeof programs)[]): boolean {
  const missing = names.map((name) => programs[name]).filter(({ isHere }) => !isHere());
  if (missing.length === 0) return true;
  const message = `missing: ${missing.map(({ name }) => name).join(', ')}`;
  if (process.env['CI_STRICT'] === '1') throw new Error(message);
  console.warn(`tests are skipped, ${message}`);
  return false;
}
