import type { Command } from 'commander';
import { type Bank, BankError } from '../clients/typescript/index.ts';
import { createProgress, Failure, openBank, print, printJson, wholeNumber } from './api.ts';
import { fetch } from './fetch.ts';
import { inLanes } from './lanes.ts';
import { createPlan, type SeedOptions, type SeedPlan, type Step } from './seed-plan.ts';

/** `bank seed`: creates a realistic bank, which is the same for the same options. */
export function addSeed(command: Command): void {
  command
    .option('--clients <number>', 'the number of clients', wholeNumber(5, 99_999), 200)
    .option('--days <number>', 'the number of days', wholeNumber(1, 3650), 90)
    .option('--seed <number>', 'the seed of the random numbers', wholeNumber(0, 9999), 7)
    .option('--json', 'print the counts as JSON')
    .addHelpText(
      'after',
      `
The same options give the same data: the Idempotency-Keys follow from them, so that a second run with the same API key adds
nothing, and an interrupted one continues. Descriptions and references name days from 2026-01-01 on; the postings have the time of
the requests, because no caller can set created_at. Some have a value date a few days before, and some accounts have limits. No day is
closed: an import could then not post with earlier value dates.

Example:
  bank seed --clients 200 --days 90 --seed 7`,
    )
    .action(async ({ json, ...options }: SeedOptions & { json?: true }) => {
      const [sent, replayed] = [new Set<string>(), new Set<string>()];
      const counting: typeof fetch = async (url, request) => {
        const response = await fetch(url, request);
        const key = request.headers['idempotency-key'];
        // What has no key gives the same result each time.
        if (key === undefined) return response;
        // A value date some days ago is another one on another day, so that the key was used with another request.
        const isKnown = response.headers.get('idempotent-replayed') === 'true' || response.status === 422;
        if (!isKnown) sent.add(key);
        else if (!sent.has(key)) replayed.add(key);
        return response;
      };
      const bank = openBank({ attempts: 8, deadlineMs: 120_000, fetch: counting });
      const counts = { ...(await seed(bank, options)), already_there: replayed.size };
      if (json) return printJson(counts);
      print(
        `${counts.clients} clients, ${counts.accounts} accounts, ${counts.operations} operations, of which ${counts.refused} were refused as meant, in ${counts.seconds} s`,
      );
      if (replayed.size === 0) return;
      print(
        sent.size === 0
          ? 'all of it was already there'
          : `${replayed.size} of ${replayed.size + sent.size} requests had been executed before`,
      );
    });
}

interface Counts {
  clients: number;
  accounts: number;
  operations: number;
  refused: number;
  seconds: number;
}

async function seed(bank: Bank, options: SeedOptions): Promise<Counts> {
  const begun = performance.now();
  const plan = createPlan(options);
  const key = (kind: string, ...numbers: number[]) => ({
    idempotencyKey: `seed ${options.seed}, ${options.clients} clients, ${options.days} days: ${kind} ${numbers.join('/')}`,
  });
  const clientIds = await each(
    'clients',
    plan.clients,
    async (client, index) => (await bank.createClient(client, key('client', index))).client_id,
  );
  const accountIds = await each(
    'accounts',
    plan.accounts,
    async ({ client, ...account }, index) =>
      (await bank.openAccount({ client_id: clientIds[client] ?? '', ...account }, key('account', index))).account_id,
  );
  const steps = plan.chains.reduce((sum, chain) => sum + chain.length, 0);
  const told = createProgress('operations', steps);
  let done = 0;
  // The longest chain comes first, because a chain is sequential and should not run alone at the end.
  const longestFirst = [...plan.chains.entries()].sort(([, left], [, right]) => right.length - left.length);
  await inLanes(longestFirst, async ([chain, chainSteps]) => {
    for (const [index, step] of chainSteps.entries()) {
      await take(bank, accountIds, step, key('step', chain, index));
      told(++done);
    }
  });
  return {
    clients: clientIds.length,
    accounts: accountIds.length,
    operations: steps,
    refused: countRefusals(plan),
    seconds: Number(((performance.now() - begun) / 1000).toFixed(1)),
  };
}

function countRefusals({ chains }: SeedPlan): number {
  return chains.flat().filter((step) => 'refused' in step && step.refused !== undefined).length;
}

/** Executes one step. Throws a Failure if its outcome is not the planned one. */
async function take(bank: Bank, accountIds: string[], step: Step, options: { idempotencyKey: string }): Promise<void> {
  const id = (account: number) => accountIds[account] ?? '';
  if (step.kind === 'limits') {
    const { kind: _kind, account, ...limits } = step;
    await bank.setAccountLimits({ account_id: id(account), ...limits });
  } else if (step.kind === 'status') {
    const { kind: _kind, account, ...body } = step;
    await bank.changeAccountStatus({ account_id: id(account), ...body }, options);
  } else if (step.kind === 'hold') {
    const { kind: _kind, account, captured, ...body } = step;
    const { hold_id } = await bank.placeHold({ account_id: id(account), ...body }, options);
    if (captured)
      await bank.captureHold(
        { hold_id, to_account_id: id(captured.to), amount: captured.amount },
        { idempotencyKey: `${options.idempotencyKey}, capture` },
      );
  } else if (step.kind === 'batch') {
    const items = step.items.map(({ to, ...body }) => ({
      transfer: { from_account_id: id(step.from), to_account_id: id(to), ...body },
    }));
    const { counts } = await bank.createBatch({ mode: 'independent', items }, options);
    if (counts.completed !== items.length)
      throw new Failure(1, `the bank posted ${counts.completed} items of a batch of ${items.length}`);
  } else if (step.kind === 'transfer') {
    const { kind: _kind, from, to, ...body } = step;
    await bank.createTransfer({ from_account_id: id(from), to_account_id: id(to), ...body }, options);
  } else {
    const { kind: _kind, account, refused, daysAgo, ...body } = step;
    const dated = daysAgo === undefined ? {} : { effective_date: dayBefore(daysAgo) };
    const outcome = await bank
      .createTransaction({ account_id: id(account), ...body, ...dated }, options)
      .then(() => undefined, errorCode);
    const isDated = daysAgo !== undefined && ['idempotency_key_reused', 'day_closed'].includes(outcome ?? '');
    if (outcome !== refused && !isDated)
      throw new Failure(1, `${body.description}: expected ${refused}, but the outcome was ${outcome ?? 'Completed'}`);
  }
}

/** Returns a day in the past of every time zone, if `days` is at least 2. */
const dayBefore = (days: number): string => new Date(Date.now() - days * 86_400_000).toISOString().slice(0, 10);

function errorCode(error: unknown): string {
  if (error instanceof BankError && error.status < 500) return error.code;
  throw error;
}

/** Makes calls concurrently for all items; returns the responses in their order. */
async function each<Item, Answer>(
  title: string,
  items: Item[],
  call: (item: Item, index: number) => Promise<Answer>,
): Promise<Answer[]> {
  const told = createProgress(title, items.length);
  const answers: Answer[] = [];
  let done = 0;
  await inLanes([...items.entries()], async ([index, item]) => {
    answers[index] = await call(item, index);
    told(++done);
  });
  return answers;
}
