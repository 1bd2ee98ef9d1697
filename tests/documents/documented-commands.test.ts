import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import packageJson from '../../package.json' with { type: 'json' };

/** Commands in the documentation: each is run by a test, or the reason why not stands here. */
const root = join(import.meta.dirname, '..', '..');

/** Where a command is run: the file of a test. Else a reason. */
const runBy: Record<string, string> = {
  'npm ci && npm start': 'tools/local/start.e2e.test.ts',
  'npm ci && npm test': 'not within itself: it is what runs this',
  'npm ci': 'not within itself: .ci/run begins with it',
  'npm run check': 'not within itself: it runs this',
  'docker compose up --wait': 'deploy/check/compose.ts',
  'docker compose run --rm --no-deps api-key': 'deploy/check/compose.ts',
  'docker build -f deploy/Dockerfile -t core-banking .': 'deploy/check/image.ts',
  'npm run bank -- demo': 'tests/documents/command-line.e2e.test.ts',
  'npm run bank -- seed --clients 200 --days 90 --seed 7': 'tests/documents/command-line.e2e.test.ts',
  'npm run bank -- tail transactions --from-beginning --count 10': 'tests/documents/command-line.e2e.test.ts',
  'npm run bank -- tail transactions --from 2026-01-31T00:00:00Z': 'tests/documents/command-line.e2e.test.ts',
  'npm run bank -- load --rate 200 --seconds 10': 'tests/documents/command-line.e2e.test.ts',
  'npm run bank -- verify-books': 'tests/documents/command-line.e2e.test.ts',
  'npm run --silent example notifier.ts': 'not here: the examples have tests of their own, which start them otherwise',
  'npm run test:faults -- --quick': 'not by a test: it takes ten minutes and tests the whole bank itself (.ci/run runs a part of it)',
  'npm run test:faults -- --self-test': 'not by a test: it runs the faults on banks of its own, for minutes',
  'npm run bench -- --quick': 'not by a test: it measures, and wants the machine for itself',
  'npm run test:planted': 'not by a test: it runs the tests twelve times',
  'npm run test:mutation': 'not by a test: it runs the unit tests 900 times',
};

/** Documents whose commands need what no test machine has. */
const notHere: Record<string, string> = {
  'docs/kubernetes.md': 'a cluster; the chart itself is checked by the tests of deploy/helm',
};

const documents = ['.', 'docs', 'clients', 'examples', 'deploy']
  .flatMap((folder) => (existsSync(join(root, folder)) ? readdirSync(join(root, folder), { recursive: folder !== '.', encoding: 'utf8' }).map((name) => join(folder, name)) : []))
  .filter((name) => name.endsWith('.md') && !name.includes('node_modules'))
  .map((name) => ({ name, text: readFileSync(join(root, name), 'utf8') }));

/** Lines of shell, without those examples whose answers tests/documents/readme.e2e.test.ts compares. */
function commandsOf(text: string): string[] {
  const others = text.replace(/```sh\n[^`]*```\n```json\n[^`]*```/g, '');
  return [...others.matchAll(/```(\w*)\n([\s\S]*?)```/g)].flatMap(([, language = '', block = '']) => {
    const lines = block.split('\n').filter((line) => line !== '' && !line.startsWith('#'));
    return ['sh', 'bash', 'console', 'shell'].includes(language) ? lines : lines.filter((line) => language === '' && /^(npm|npx|node|docker|kubectl|helm|curl|git)\b/.test(line));
  });
}

it('every command that a document shows is run by a test, or it is said why not', () => {
  expect(documents.length).toBeGreaterThan(10);
  const unknown = documents.flatMap(({ name, text }) => commandsOf(text).filter((command) => runBy[command] === undefined && notHere[name] === undefined).map((command) => `${name}: ${command}`));
  expect(unknown).toEqual([]);
  const shown = new Set(documents.flatMap(({ text }) => commandsOf(text)));
  expect(Object.keys(runBy).filter((command) => !shown.has(command))).toEqual([]);
  expect(Object.values(runBy).filter((where) => where.endsWith('.ts') && !existsSync(join(root, where)))).toEqual([]);
});

it('every npm script and every command of `bank` that a document names is there', () => {
  const bank = readdirSync(join(root, 'cli')).map((file) => readFileSync(join(root, 'cli', file), 'utf8')).join('\n');
  const missing = documents.flatMap(({ name, text }) => [
    ...[...text.matchAll(/\bnpm run (?:--silent |-s )?([\w:-]+)/g)].filter(([, script = '']) => !(script in packageJson.scripts)).map(([command]) => `${name}: ${command}`),
    ...[...text.matchAll(/\bbank -- ([a-z-]+)/g)].filter(([, command = '']) => command !== 'help' && !command.startsWith('-') && !bank.includes(`.command('${command}')`)).map(([command]) => `${name}: ${command}`),
  ]);
  expect(missing).toEqual([]);
});
