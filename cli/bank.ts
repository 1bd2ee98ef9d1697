import { Command, CommanderError } from 'commander';
import { Failure, failureOf } from './api.ts';
import { addDeadLetters } from './dead-letters.ts';

/**
 * `npm run bank -- <command>`: what operators do, over REST. Exit codes: 0 done; 1 the bank refused it; 2 wrong usage or
 * configuration; 3 the bank did not answer, or could not.
 */
const program = new Command('bank')
  .description('Operates a bank over its REST interface')
  .addHelpText('after', '\nThe bank is that of BANK_URL and BANK_API_KEY, else the local one (LOCAL_DIR/connection.json).\nExit codes: 0 done, 1 refused by the bank, 2 wrong usage or configuration, 3 no answer.')
  .exitOverride();

addDeadLetters(program);

try {
  await program.parseAsync();
} catch (thrown) {
  const error = failureOf(thrown);
  if (error instanceof CommanderError) process.exitCode = error.exitCode === 0 ? 0 : 2;
  else if (error instanceof Failure) {
    process.stderr.write(`${error.message}\n`);
    process.exitCode = error.exitCode;
  } else throw thrown;
}
