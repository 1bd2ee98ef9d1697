import { Command, CommanderError } from 'commander';

type Row = readonly [name: string, description: string, load: () => Promise<(command: Command) => void>];

/** All commands. Each is loaded when it is called, because loading all of them takes longer than most of them. */
const commands: readonly Row[] = [
  [
    'seed',
    'Fill the bank with demo data: people and companies, salaries, rents, groceries, loans, holds, batches, frozen accounts, refusals',
    async () => (await import('./seed.ts')).addSeed,
  ],
  [
    'demo',
    'Show a deposit, withdrawal, transfer, freeze, refusal, loan and payment, hold, and batch, with entries and events',
    async () => (await import('./demo.ts')).addDemo,
  ],
  [
    'client',
    'Clients (scope clients:write, for the list clients:read)',
    async () => (await import('./opening.ts')).addClients,
  ],
  ['account', 'Accounts (scope accounts:write)', async () => (await import('./opening.ts')).addAccounts],
  [
    'deposit',
    'Deposit cash (scope transactions:write)',
    async () => (await import('./postings.ts')).addCash('Deposit'),
  ],
  [
    'withdraw',
    'Withdraw cash (scope transactions:write)',
    async () => (await import('./postings.ts')).addCash('Withdrawal'),
  ],
  [
    'transfer',
    'Move money from one account to another (scope transfers:write)',
    async () => (await import('./postings.ts')).addTransfer,
  ],
  [
    'reverse',
    'Reverse a transaction or a transfer by posting it in the opposite direction (scope transactions:reverse)',
    async () => (await import('./postings.ts')).addReverse,
  ],
  [
    'hold',
    'Holds: money of an account reserved for later (scope holds:write)',
    async () => (await import('./holds.ts')).addHolds,
  ],
  [
    'batch',
    'Batches: up to 1,000 transactions and transfers in one request',
    async () => (await import('./batches.ts')).addBatches,
  ],
  [
    'show',
    'Show a client, an account (by id or number), a transaction, a transfer or a hold',
    async () => (await import('./show.ts')).addShow,
  ],
  [
    'balance',
    'Show the balance of an account, now, at a given time, or on a day (scope accounts:read)',
    async () => (await import('./show.ts')).addBalance,
  ],
  [
    'statement',
    'Print the entries of a period with its opening and closing balance (scope transactions:read)',
    async () => (await import('./show.ts')).addStatement,
  ],
  [
    'days',
    'Days of the books: list closed days, close one (scope books:close), show one',
    async () => (await import('./days.ts')).addDays,
  ],
  [
    'balances',
    'Print the balances of all accounts of clients, now or on a day (scope books:read)',
    async () => (await import('./days.ts')).addBalances,
  ],
  [
    'limits',
    'Show the limits of an account, or change them (scopes accounts:read, accounts:limits)',
    async () => (await import('./days.ts')).addLimits,
  ],
  [
    'import',
    'Import clients and accounts with their numbers and opening balances (scopes clients:write, clients:read, accounts:write, accounts:read, accounts:import, transactions:write, books:read)',
    async () => (await import('./import.ts')).addImport,
  ],
  ['keys', 'API keys (scope keys:manage)', async () => (await import('./keys.ts')).addKeys],
  [
    'approvals',
    'Requests that need approval (scope approvals:write and that of the action; needs the BANK_TOKEN of a person)',
    async () => (await import('./approvals.ts')).addApprovals,
  ],
  [
    'env',
    'Print the base URL and the API key as commands for a shell: eval "$(npm run -s bank -- env)"',
    async () => (await import('./operations.ts')).addEnv,
  ],
  [
    'verify-books',
    'Check the books against every rule, in one snapshot while postings continue (scope books:read)',
    async () => (await import('./operations.ts')).addVerifyBooks,
  ],
  [
    'reconcile',
    'Compare a closed day with the topic transactions, or with a file of another system (scopes books:read, transactions:read)',
    async () => (await import('./reconcile.ts')).addReconcile,
  ],
  [
    'dead-letters',
    'Messages that could not be processed (scope ops:manage; for their contents also clients:read)',
    async () => (await import('./dead-letters.ts')).addDeadLetters,
  ],
  [
    'republish',
    'Publish data again that topics have lost: events since a given time, all balances, all master data, all API keys',
    async () => (await import('./republish.ts')).addRepublish,
  ],
  ['tail', 'Follow the events of a topic until Ctrl-C', async () => (await import('./tail.ts')).addTail],
  ['webhooks', 'Webhooks (scope webhooks:manage)', async () => (await import('./webhooks.ts')).addWebhooks],
  [
    'load',
    'Send operations at a steady rate, and report their outcomes and latency',
    async () => (await import('./load.ts')).addLoad,
  ],
];

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

const loads = new Map(
  commands.map(([name, description, load]) => [program.command(name).description(description), load]),
);
program.hook('preSubcommand', async (_program, command) => (await loads.get(command)?.())?.(command));

// The reader closed the pipe (`| head`), which is not an error.
process.stdout.on('error', (error: NodeJS.ErrnoException) => {
  if (error.code !== 'EPIPE') throw error;
  process.exit(0);
});

try {
  const [first, ...others] = process.argv.slice(2);
  const isHelp = first === 'help' && others.length > 0;
  await program.parseAsync(isHelp ? [...others, '--help'] : process.argv.slice(2), { from: 'user' });
} catch (thrown) {
  if (thrown instanceof CommanderError) process.exitCode = thrown.exitCode === 0 ? 0 : 2;
  else {
    const { Failure, toFailure } = await import('./api.ts');
    const error = toFailure(thrown);
    if (!(error instanceof Failure)) throw thrown;
    process.stderr.write(`${error.message}\n`);
    process.exitCode = error.exitCode;
  }
}
