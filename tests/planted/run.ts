import { execFileSync, spawn } from 'node:child_process';
import { cpSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import setup from '../support/global-setup.ts';
import { bugs, type PlantedBug } from './bugs.ts';

/**
 * `npm run test:planted`: does the suite notice? Plants one bug after the other in a copy of this checkout and runs the
 * tests that are named to catch it: with the bug each must fail, without any bug each must pass. Arguments are parts of
 * names of bugs: only those. Exit code 0 only if every bug is caught.
 */
const root = join(import.meta.dirname, '..', '..');
const testRunMs = 1_800_000;

/** What git would keep of this checkout, with its packages. */
function copyCheckout(): string {
  const copy = mkdtempSync(join(tmpdir(), 'core-banking-planted-'));
  const files = execFileSync('git', ['ls-files', '--cached', '--others', '--exclude-standard', '-z'], { cwd: root, encoding: 'utf8', maxBuffer: 64 * 1024 * 1024 });
  for (const file of new Set(files.split('\0').filter((name) => name !== ''))) {
    mkdirSync(dirname(join(copy, file)), { recursive: true });
    // Links are links: the chart has some, to a folder too.
    cpSync(join(root, file), join(copy, file), { force: true, recursive: true, verbatimSymlinks: true });
  }
  symlinkSync(join(root, 'node_modules'), join(copy, 'node_modules'));
  return copy;
}

/** Plants the bug; returns what takes it out again. Throws where a text is not there exactly once. */
function plant(copy: string, { name, edits }: PlantedBug): () => void {
  const originals = new Map(edits.map(({ file }) => [file, readFileSync(join(copy, file), 'utf8')]));
  const texts = new Map(originals);
  for (const { file, find, replace } of edits) {
    const parts = (texts.get(file) ?? '').split(find);
    if (parts.length !== 2) throw new Error(`${name}: ${file} has ${parts.length - 1} times: ${find}`);
    texts.set(file, parts.join(replace));
  }
  const write = (contents: Map<string, string>) => contents.forEach((text, file) => writeFileSync(join(copy, file), text));
  write(texts);
  return () => write(originals);
}

type Outcome = 'passed' | 'failed' | 'not run';

interface Report {
  testResults: { name: string; assertionResults: { title: string; status: string }[] }[];
}

/** Runs the named tests in the copy; what became of each. */
async function outcomes(copy: string, tests: PlantedBug['caughtBy']): Promise<{ file: string; test: string; outcome: Outcome }[]> {
  const report = join(copy, 'planted-report.json');
  rmSync(report, { force: true });
  const files = [...new Set(tests.map(({ file }) => file))];
  const pattern = [...new Set(tests.map(({ test }) => test.replace(/[.*+?^${}()|[\]\\]/g, '\\$&')))].join('|');
  const vitest = ['run', '--config', 'tests/planted/vitest.config.ts', ...files, '-t', pattern, '--reporter=json', `--outputFile=${report}`];
  const child = spawn(process.execPath, [join(root, 'node_modules', 'vitest', 'vitest.mjs'), ...vitest], { cwd: copy, stdio: 'ignore', timeout: testRunMs });
  await new Promise((resolve) => child.once('exit', resolve));
  const { testResults } = existsSync(report) ? (JSON.parse(readFileSync(report, 'utf8')) as Report) : { testResults: [] };
  const statusOf = (file: string, test: string) => testResults.find(({ name }) => name.endsWith(file))?.assertionResults.find(({ title }) => title === test)?.status;
  return tests.map(({ file, test }) => {
    const status = statusOf(file, test);
    return { file, test, outcome: status === 'passed' || status === 'failed' ? status : 'not run' };
  });
}

async function main(): Promise<boolean> {
  const wanted = process.argv.slice(2);
  const chosen = bugs.filter(({ name }) => wanted.length === 0 || wanted.some((part) => name.includes(part)));
  const isNamed = Boolean(process.env['KAFKA_BROKERS'] && process.env['DATABASE_URL']);
  const stopServers = isNamed ? async () => undefined : await setup();
  const copy = copyCheckout();
  const say = (line: string) => process.stdout.write(`${line}\n`);
  let passed = 0;
  try {
    for (const { file, test, outcome } of await outcomes(copy, chosen.flatMap(({ caughtBy }) => caughtBy))) {
      if (outcome !== 'passed') throw new Error(`without a bug: ${outcome}: ${file}: ${test}`);
    }
    say('| planted bug | caught by |\n|---|---|');
    for (const bug of chosen) {
      const remove = plant(copy, bug);
      const found = await outcomes(copy, bug.caughtBy).finally(remove);
      const isCaught = found.every(({ outcome }) => outcome === 'failed');
      if (isCaught) passed += 1;
      say(`| ${bug.name} | ${isCaught ? '' : 'NOT CAUGHT: '}${found.map(({ file, test, outcome }) => `${file}: ${test}${outcome === 'failed' ? '' : ` (${outcome})`}`).join('; ')} |`);
    }
  } finally {
    rmSync(copy, { recursive: true, force: true });
    await stopServers();
  }
  say(`${passed} passed, ${chosen.length - passed} failed`);
  return passed === chosen.length && passed > 0;
}

process.exitCode = (await main()) ? 0 : 1;
