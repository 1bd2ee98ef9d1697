import { setTimeout as sleep } from 'node:timers/promises';
import { Argument, type Command, Option } from 'commander';
import { replayedTopic } from '#libs/contracts/administration.ts';
import type { ReplayedTopic } from '#libs/contracts/topics.ts';
import type { Replay, Verification } from '../clients/typescript/index.ts';
import { Failure, openBank, print, printJson, say } from './api.ts';

const pollMs = 500;

interface ReplayOptions {
  from: string;
  to?: string;
  account?: string;
  wait: boolean;
  json?: true;
}

/** `bank verify-books` and `bank replay`: begun over REST, and waited for. */
export function addOperations(program: Command): void {
  program
    .command('verify-books')
    .description('Check the books against every rule, in one snapshot while postings go on (scope ops:manage)')
    .option('--json', 'print the verification as JSON')
    .addHelpText('after', '\nEnds with 1 where a rule is broken. With access to Postgres and Kafka, `npm run verify-books` also compares the events with the books.')
    .action(async ({ json }: { json?: true }) => showVerification(await verify(), json));

  program
    .command('replay')
    .description('Publish the events of a topic and period again, into its side topic <topic>.replay (scope ops:manage)')
    .addArgument(new Argument('<topic>', 'whose events').choices(replayedTopic.options))
    .requiredOption('--from <time>', 'what the bank wrote at this time or later (ISO 8601)')
    .option('--to <time>', 'and before this one; default: now')
    .option('--account <account_id>', 'of this account only')
    .option('--no-wait', 'only begin it')
    .addOption(new Option('--json', 'print the replay as JSON'))
    .addHelpText('after', '\nExamples:\n  bank replay transactions --from 2026-01-31T00:00:00Z --to 2026-02-01T00:00:00Z\n  bank tail transactions.replay --from-beginning')
    .action(async (topic: ReplayedTopic, options: ReplayOptions) => showReplay(await replay(topic, options), options));
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
  const { state, findings, verification_id } = verification;
  if (asJson) printJson(verification);
  else {
    for (const { rule, rows } of findings) print(`BROKEN ${rule}\n${rows.map((row) => `       ${JSON.stringify(row)}`).join('\n')}`);
    print(state === 'passed' ? 'the books balance' : `${verification_id} ${state}`);
  }
  if (state === 'broken') throw new Failure(1, `${findings.length} rules are broken`);
  if (state !== 'passed') throw new Failure(3, `the verification was ${state}`);
}

async function replay(topic: ReplayedTopic, { from, to, account, wait }: ReplayOptions): Promise<Replay> {
  const bank = openBank();
  let state = await bank.createReplay({ topic, from, to, account_id: account });
  say(`${state.replay_id} publishes into ${state.side_topic} …`);
  for (let told = 0; wait && state.state === 'running'; state = await bank.getReplay({ replay_id: state.replay_id })) {
    if (state.event_count > told) say(`${state.event_count} events`);
    told = state.event_count;
    await sleep(pollMs);
  }
  return state;
}

function showReplay(ended: Replay, { json }: ReplayOptions): void {
  if (json) printJson(ended);
  else print(`${ended.replay_id} ${ended.state}: ${ended.event_count} events in ${ended.side_topic}`);
  if (ended.state === 'failed') throw new Failure(3, `the replay failed: ${ended.failure}`);
}
