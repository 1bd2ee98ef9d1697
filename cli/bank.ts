import { Command, CommanderError } from 'commander';
import { Failure, toFailure } from './api.ts';
import { addApprovals } from './approvals.ts';
import { addBatches } from './batches.ts';
import { addDeadLetters } from './dead-letters.ts';
import { addDemo } from './demo.ts';
import { addHolds } from './holds.ts';
import { addImport } from './import.ts';
import { addKeys } from './keys.ts';
import { addLoad } from './load.ts';
import { addOpening } from './opening.ts';
import { addOperations } from './operations.ts';
import { addPostings } from './postings.ts';
import { addRepublish } from './republish.ts';
import { addSeed } from './seed.ts';
import { addShow } from './show.ts';
import { addTail } from './tail.ts';
import { addWebhooks } from './webhooks.ts';

/**
 * `npm run bank -- <command>`: the command line for operators and newcomers. It calls the REST API and reads events.
 * Results go to stdout, progress to stderr. Exit codes: 0 done; 1 refused by the bank; 2 wrong usage or configuration;
 * 3 no response.
 */
const program = new Command('bank')
  .description('Operates a bank over its REST interface')
  .addHelpText(
    'after',
    `
Connects to BANK_URL with BANK_API_KEY or BANK_TOKEN (for events, to KAFKA_BROKERS with TOPIC_PREFIX), or else to the local
bank (LOCAL_DIR/connection.json). Results go to stdout, as JSON with --json; progress to stderr.
Exit codes: 0 done, 1 refused by the bank, 2 wrong usage or configuration, 3 no answer.`,
  )
  .showHelpAfterError('(--help tells more)')
  .exitOverride();

for (const add of [
  addSeed,
  addDemo,
  addOpening,
  addPostings,
  addHolds,
  addBatches,
  addShow,
  addImport,
  addKeys,
  addApprovals,
  addOperations,
  addDeadLetters,
  addRepublish,
  addTail,
  addWebhooks,
  addLoad,
])
  add(program);

// The reader closed the pipe (`| head`), which is not an error.
process.stdout.on('error', (error: NodeJS.ErrnoException) => {
  if (error.code !== 'EPIPE') throw error;
  process.exit(0);
});

try {
  await program.parseAsync();
} catch (thrown) {
  const error = toFailure(thrown);
  if (error instanceof CommanderError) process.exitCode = error.exitCode === 0 ? 0 : 2;
  else if (error instanceof Failure) {
    process.stderr.write(`${error.message}\n`);
    process.exitCode = error.exitCode;
  } else throw thrown;
}
