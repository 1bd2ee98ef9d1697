import { setTimeout as sleep } from 'node:timers/promises';
import { type Command, Option } from 'commander';
import { type Bank, BankError, NoAnswerError } from '../clients/typescript/index.ts';
import { openBank, print, printJson, say, wholeNumber } from './api.ts';

interface LoadOptions {
  seconds: number;
  rate: number;
  accounts: number;
  kind: 'transfer' | 'deposit' | 'balance';
  json?: true;
}

/** The maximum number of requests in progress. Further ones are counted but not sent. */
const mostUnderWay = 2_000;
const ticksMs = 2;

/** `bank load`: operations at a fixed rate, regardless of their outcome. */
export function addLoad(command: Command): void {
  command
    .option('--seconds <number>', 'duration', wholeNumber(1, 86_400), 10)
    .option('--rate <number>', 'operations per second', wholeNumber(1, 100_000), 200)
    .option('--accounts <number>', 'number of new accounts', wholeNumber(2, 10_000), 50)
    .addOption(
      new Option('--kind <kind>', 'kind of operation').choices(['transfer', 'deposit', 'balance']).default('transfer'),
    )
    .option('--json', 'print the summary as JSON')
    .addHelpText(
      'after',
      `
Creates a new client with accounts in KES and posts to them; this remains in the books. Latency is measured from the
time at which a request was due. For reliable measurements, use \`npm run bench\`.

Example:
  bank load --rate 500 --seconds 30`,
    )
    .action(async (options: LoadOptions) => {
      // Refusals are counted, not repeated.
      const bank = openBank({ attempts: 1, deadlineMs: 15_000 });
      const summary = await load(bank, await openAccounts(openBank(), options.accounts), options);
      if (options.json) return printJson(summary);
      print(
        `${summary.completed} of ${summary.sent} completed, ${summary.per_second} a second; p50 ${summary.p50_ms} ms, p99 ${summary.p99_ms} ms, longest ${summary.max_ms} ms`,
      );
      for (const [outcome, count] of Object.entries(summary.outcomes)) print(`  ${outcome} ${count}`);
    });
}

async function openAccounts(bank: Bank, count: number): Promise<string[]> {
  say(`opening ${count} accounts …`);
  const { client_id } = await bank.createClient({
    client_type: 'Corporate',
    company_name: 'Load of the command line',
    registration_number: 'LOAD',
    email: 'load@example.com',
    contact_number: '+254700000000',
  });
  const accounts: string[] = [];
  for (let at = 0; at < count; at += 50) {
    const opened = await Promise.all(
      Array.from({ length: Math.min(50, count - at) }, () =>
        bank.openAccount({ client_id, account_type: 'Current', currency: 'KES', initial_deposit: 1_000_000 }),
      ),
    );
    accounts.push(...opened.map(({ account_id }) => account_id));
  }
  return accounts;
}

interface Summary {
  sent: number;
  completed: number;
  per_second: number;
  /** Latency of completed requests from the time at which each was due. */
  p50_ms: number;
  p99_ms: number;
  max_ms: number;
  /** The number of requests by outcome: Completed, the code of the bank's error, no_answer, or not_sent. */
  outcomes: Record<string, number>;
}

async function load(bank: Bank, accounts: string[], { seconds, rate, kind }: LoadOptions): Promise<Summary> {
  say(`${rate} operations a second for ${seconds} s …`);
  const outcomes: Record<string, number> = {};
  const tookMs: number[] = [];
  const underWay = new Set<Promise<void>>();
  const count = (outcome: string) => (outcomes[outcome] = (outcomes[outcome] ?? 0) + 1);
  const begun = performance.now();
  for (let n = 0; n < seconds * rate; ) {
    for (const due = Math.min(seconds * rate, ((performance.now() - begun) / 1000) * rate); n < due; n++) {
      if (underWay.size >= mostUnderWay) {
        count('not_sent');
        continue;
      }
      const dueAt = begun + (n * 1000) / rate;
      const call: Promise<void> = send(bank, accounts, n, kind)
        .then(
          () => {
            tookMs.push(performance.now() - dueAt);
            count('Completed');
          },
          (error: unknown) => void count(describeOutcome(error)),
        )
        .finally(() => underWay.delete(call));
      underWay.add(call);
    }
    await sleep(ticksMs);
  }
  await Promise.all(underWay);
  const elapsed = (performance.now() - begun) / 1000;
  tookMs.sort((left, right) => left - right);
  const at = (part: number) =>
    Number((tookMs[Math.min(tookMs.length - 1, Math.floor(tookMs.length * part))] ?? 0).toFixed(1));
  return {
    sent: seconds * rate - (outcomes['not_sent'] ?? 0),
    completed: tookMs.length,
    per_second: Math.round(tookMs.length / elapsed),
    p50_ms: at(0.5),
    p99_ms: at(0.99),
    max_ms: at(1),
    outcomes,
  };
}

async function send(bank: Bank, accounts: string[], n: number, kind: LoadOptions['kind']): Promise<void> {
  const account_id = accounts[n % accounts.length] ?? '';
  if (kind === 'balance') await bank.getAccount({ account_id });
  else if (kind === 'deposit')
    await bank.createTransaction({ account_id, transaction_type: 'Deposit', amount: 1.25, description: 'Load' });
  else
    await bank.createTransfer({
      from_account_id: account_id,
      to_account_id: accounts[(n + 1) % accounts.length] ?? '',
      amount: 0.25,
      description: 'Load',
    });
}

function describeOutcome(error: unknown): string {
  if (error instanceof BankError) return error.code;
  if (error instanceof NoAnswerError) return 'no_answer';
  throw error;
}
