import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import packageJson from '../../package.json' with { type: 'json' };

/** Tests that each command in the documentation is run by a test, or that this file gives the reason why not. */
const root = join(import.meta.dirname, '..', '..');

/** The test file that runs a command, or the reason why none does. */
const runBy: Record<string, string> = {
  'npm ci && npm start': 'tools/local/start.e2e.test.ts',
  'npm ci && npm test': 'not within itself: it runs this',
  'eval "$(npm run -s bank -- env)"': 'tools/local/start.e2e.test.ts',
  'npm ci': 'not within itself: .ci/run begins with it',
  'npm run check': 'not within itself: it runs this',
  'docker compose up --wait': 'deploy/check/compose.ts',
  'docker compose run --rm --no-deps api-key': 'deploy/check/compose.ts',
  'docker build -f deploy/Dockerfile -t core-banking .': 'deploy/check/image.ts',
  'npm run bank -- demo': 'tests/documents/command-line.e2e.test.ts',
  'npm run bank -- seed --clients 200 --days 90 --seed 7': 'tests/documents/command-line.e2e.test.ts',
  'npm run bank -- tail transactions --from-beginning --count 10': 'tests/documents/command-line.e2e.test.ts',
  'npm run bank -- tail transactions --from 2026-01-31T00:00:00Z': 'tests/documents/command-line.e2e.test.ts',
  'npm run bank -- client open --first-name Amina --last-name Otieno --email amina@example.org --phone +254700000001':
    'tests/documents/command-line.e2e.test.ts',
  'npm run bank -- load --rate 200 --seconds 10': 'tests/documents/command-line.e2e.test.ts',
  'npm run bank -- webhooks listen --port 4000': 'tests/documents/command-line.e2e.test.ts',
  'npm run bank -- keys create moving-in --scopes clients:read clients:write accounts:read accounts:write accounts:import transactions:write books:read':
    'tests/documents/moving-in.e2e.test.ts',
  'npm run bank -- import --clients clients.csv --accounts accounts.csv --country KE --dry-run':
    'tests/documents/moving-in.e2e.test.ts',
  "sed -i 's/chidi.example/chidi@example/' clients.csv": 'tests/documents/moving-in.e2e.test.ts',
  'npm run bank -- import --clients clients.csv --accounts accounts.csv --country KE':
    'tests/documents/moving-in.e2e.test.ts',
  "pip install duckdb confluent-kafka 'psycopg[binary]'": 'tests/documents/warehouse.e2e.test.ts',
  'export LEDGER_URL=postgres://warehouse:…@postgres/core_banking KAFKA_BROKERS=kafka:9092 WAREHOUSE=/data/bank':
    'tests/documents/warehouse.e2e.test.ts',
  'python warehouse.py load      # once: a snapshot of all entries': 'tests/documents/warehouse.e2e.test.ts',
  'python warehouse.py follow    # repeatedly: the events published since': 'tests/documents/warehouse.e2e.test.ts',
  'python warehouse.py prove     # every night: exit code 1 if an account differs':
    'tests/documents/warehouse.e2e.test.ts',
  'npm run -s bank -- reconcile --date 2026-01-31 --file erp.csv': 'tests/events/reconciliation.e2e.test.ts',
  'KAFKA_BROKERS=127.0.0.1:9092 npm run -s example verify-day.ts 2026-01-31': 'tests/events/reconciliation.e2e.test.ts',
  'npm run bank -- verify-books': 'tests/documents/command-line.e2e.test.ts',
  'curl -sS -G "$BANK_URL/admin/search" -H "x-api-key: $BANK_API_KEY" --data-urlencode "q=$GIVEN"':
    'tests/documents/missing-payment.e2e.test.ts',
  'curl -sS -G "$BANK_URL/transactions" -H "x-api-key: $BANK_API_KEY" -d "account_id=$ACCOUNT_ID" -d limit=20':
    'tests/documents/missing-payment.e2e.test.ts',
  'grep -F "\\"request_id\\":\\"$REQUEST_ID\\"" "$GATEWAY_LOG"': 'tests/documents/missing-payment.e2e.test.ts',
  'curl -sS "$BANK_URL/admin/transactions/$TRANSACTION_ID/timeline" -H "x-api-key: $BANK_API_KEY"':
    'tests/documents/missing-payment.e2e.test.ts',
  'curl -sS "$BANK_URL/accounts/$ACCOUNT_ID/entries?limit=100" -H "x-api-key: $BANK_API_KEY"':
    'tests/documents/missing-payment.e2e.test.ts',
  'curl -sS "$BANK_URL/webhooks" -H "x-api-key: $BANK_API_KEY"': 'tests/documents/missing-payment.e2e.test.ts',
  'curl -sS "$BANK_URL/webhooks/$WEBHOOK_ID/deliveries?limit=500" -H "x-api-key: $BANK_API_KEY" | grep -o "{\\"delivery_id\\":\\"[^\\"]*\\",\\"webhook_id\\":\\"[^\\"]*\\",\\"event_id\\":\\"$EVENT_ID\\".*" | head -c 1000':
    'tests/documents/missing-payment.e2e.test.ts',
  'examples/java/client/generate.sh': 'tests/documents/languages.e2e.test.ts',
  'examples/python/generate.sh': 'tests/documents/languages.e2e.test.ts',
  'examples/go/generate.sh': 'tests/documents/languages.e2e.test.ts',
  'examples/typescript/generate.sh': 'tests/documents/languages.e2e.test.ts',
  'examples/csharp/generate.sh': 'tests/documents/languages.e2e.test.ts',
  'mvn dependency:copy-dependencies -DoutputDirectory=jars': 'tests/documents/connect.e2e.test.ts',
  "java -cp 'jars/*' org.apache.kafka.connect.cli.ConnectStandalone worker.properties sink.properties":
    'tests/documents/connect.e2e.test.ts',
  'npm run --silent example notifier.ts': 'not here: the examples have tests of their own, which start them otherwise',
  'openssl dgst -sha256 -verify release.pub -signature <(base64 -d SHA256SUMS.sig) SHA256SUMS && sha256sum -c SHA256SUMS':
    'tools/release/release.int.test.ts',
  'npm run test:faults -- --quick':
    'not by a test: it takes ten minutes and tests the whole bank itself (.ci/run runs a part of it)',
  'npm run bench -- --quick': 'not by a test: it measures, and wants the machine for itself',
  'npm run test:planted': 'not by a test: it runs the tests twelve times',
  'npm run test:mutation': 'not by a test: it runs the unit tests 900 times',
};

/** Documents whose commands need servers that no test machine has. */
const notHere: Record<string, string> = {
  'docs/kubernetes.md':
    'a cluster and its operators; chart and files are checked by deploy/helm and deploy/check/kubernetes.sh',
};

const documents = ['.', 'docs', 'clients', 'examples', 'deploy']
  .flatMap((folder) =>
    existsSync(join(root, folder))
      ? readdirSync(join(root, folder), { recursive: folder !== '.', encoding: 'utf8' }).map((name) =>
          join(folder, name),
        )
      : [],
  )
  .filter((name) => name.endsWith('.md') && !/node_modules|\/build\//.test(name))
  .map((name) => ({ name, text: readFileSync(join(root, name), 'utf8') }));

/**
 * Lines of shell, except the examples whose responses tests/documents/readme.e2e.test.ts compares.
 */
function extractCommands(text: string): string[] {
  const others = text.replace(/```sh\n[^`]*```\n```json\n[^`]*```/g, '');
  return [...others.matchAll(/```(\w*)\n([\s\S]*?)```/g)].flatMap(([, language = '', block = '']) => {
    const lines = block.split('\n').filter((line) => line !== '' && !line.startsWith('#'));
    return ['sh', 'bash', 'console', 'shell'].includes(language)
      ? lines
      : lines.filter((line) => language === '' && /^(npm|npx|node|docker|kubectl|helm|curl|git)\b/.test(line));
  });
}

it('every command in a document is run by a test or has a reason', () => {
  expect(documents.length).toBeGreaterThan(10);
  const unknown = documents.flatMap(({ name, text }) =>
    extractCommands(text)
      .filter((command) => runBy[command] === undefined && notHere[name] === undefined)
      .map((command) => `${name}: ${command}`),
  );
  expect(unknown).toEqual([]);
  const shown = new Set(documents.flatMap(({ text }) => extractCommands(text)));
  expect(Object.keys(runBy).filter((command) => !shown.has(command))).toEqual([]);
  expect(Object.values(runBy).filter((where) => where.endsWith('.ts') && !existsSync(join(root, where)))).toEqual([]);
});

it('every npm script and every command of `bank` in a document exists', () => {
  const bank = readFileSync(join(root, 'cli/bank.ts'), 'utf8');
  const missing = documents.flatMap(({ name, text }) => [
    ...[...text.matchAll(/\bnpm run (?:--silent |-s )?([\w:-]+)/g)]
      .filter(([, script = '']) => !(script in packageJson.scripts))
      .map(([command]) => `${name}: ${command}`),
    ...[...text.matchAll(/\bbank -- ([a-z-]+)/g)]
      .filter(
        ([, command = '']) =>
          command !== 'help' &&
          !command.startsWith('-') &&
          !bank.includes(`['${command}',`) &&
          !bank.includes(`[\n    '${command}',`),
      )
      .map(([command]) => `${name}: ${command}`),
  ]);
  expect(missing).toEqual([]);
});
