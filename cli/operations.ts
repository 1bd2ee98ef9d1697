import { setTimeout as sleep } from 'node:timers/promises';
import type { Command } from 'commander';
import type { Verification } from '../clients/typescript/index.ts';
import { addressAndKey, Failure, openBank, print, printJson, say } from './api.ts';

const pollMs = 500;

/** `bank env`: what the requests of README.md need. */
export function addEnv(command: Command): void {
  command.action(() => {
    const { baseUrl, apiKey } = addressAndKey();
    process.stdout.write(`export BASE_URL=${quoted(baseUrl)} API_KEY=${quoted(apiKey)}\n`);
  });
}

const quoted = (text: string): string => `'${text.replaceAll("'", `'\\''`)}'`;

/** `bank verify-books`: starts a verification over REST and waits for it. */
export function addVerifyBooks(command: Command): void {
  command
    .option('--json', 'print the verification as JSON')
    .addHelpText(
      'after',
      '\nThe exit code is 1 if a rule is violated. With access to Postgres and Kafka, `npm run verify-books` also compares the events with the books.',
    )
    .action(async ({ json }: { json?: true }) => showVerification(await verify(), json));
}

async function verify(): Promise<Verification> {
  const bank = openBank();
  const begun = await bank.verifyBooks();
  say(`${begun.verification_id} reads every entry …`);
  for (let now: Verification | null = begun; ; now = (await bank.getOperations()).last_verification) {
    if (now?.verification_id === begun.verification_id && now.state !== 'running') return now;
    await sleep(pollMs);
  }
}

function showVerification(verification: Verification, asJson: true | undefined): void {
  const { state, findings, covers, verification_id } = verification;
  if (asJson) printJson(verification);
  else {
    for (const { rule, rows } of findings)
      print(`BROKEN ${rule}\n${rows.map((row) => `       ${JSON.stringify(row)}`).join('\n')}`);
    if (!covers.includes('audit')) print('       the audit could not be checked');
    print(state === 'passed' ? 'the books balance' : `${verification_id} ${state}`);
  }
  if (state === 'broken') throw new Failure(1, `${findings.length} rules are broken`);
  if (state !== 'passed') throw new Failure(3, `the verification was ${state}`);
}
