/** A caller of the bank with generated types: docs/guides/typescript.md. */
import { setTimeout as sleep } from 'node:timers/promises';
import { Decimal } from 'decimal.js';
import createClient from 'openapi-fetch';
import type { components, paths } from './build/bank.d.ts';

type Transaction = components['schemas']['Transaction'];
type ErrorBody = components['schemas']['ErrorBody'];

const connect = (key: string) =>
  createClient<paths>({ baseUrl: process.env['BANK_URL'] ?? '', headers: { 'x-api-key': key } });
const bank = connect(process.env['BANK_API_KEY'] ?? '');

class Refused extends Error {
  readonly status: number;
  readonly body: ErrorBody;
  constructor(status: number, body: ErrorBody) {
    super(`${status} ${body.code}: ${body.message}`);
    this.status = status;
    this.body = body;
  }
}

class WaitsForApproval extends Error {}

// #region post
/**
 * Returns the Completed transaction, or throws Refused or WaitsForApproval. Any other error says that the outcome is
 * unknown: call it later with the same key. The key is the id of the payment in your database, stored before the first
 * call: it posts at most once per key, however often it is called.
 */
async function post(key: string, body: components['schemas']['CreateTransactionRequest']): Promise<Transaction> {
  const endsAt = Date.now() + 60_000;
  for (let pause = 200; ; pause = Math.min(2 * pause, 5000)) {
    let wait = pause;
    const params = { header: { 'Idempotency-Key': key } };
    const signal = AbortSignal.timeout(10_000);
    const answer = await bank.POST('/transactions', { params, body, signal }).catch((error: Error) => error);
    if (!(answer instanceof Error)) {
      const { status, headers } = answer.response;
      const location = headers.get('location') ?? '';
      if (status === 201) return answer.data as Transaction;
      if (location.includes('/approvals/')) throw new WaitsForApproval(location.split('/').at(-1));
      const final = status < 500 && status !== 408 && status !== 429;
      // Without a code, it is not the bank's answer.
      if (final && answer.error?.code) throw new Refused(status, answer.error as ErrorBody);
      wait = Math.max(wait, 1000 * (Number(headers.get('retry-after')) || 0));
    }
    if (Date.now() + wait > endsAt) throw new Error(`outcome of ${key} unknown`, { cause: answer });
    await sleep(wait);
  }
}
// #endregion

async function printAll(account_id: string): Promise<void> {
  let [sum, count, cursor] = [new Decimal(0), 0, undefined as string | undefined];
  do {
    const query = { account_id, limit: 250, cursor };
    const { data, response } = await bank.GET('/transactions', { params: { query } });
    for (const { amount } of data?.data ?? []) {
      sum = sum.plus(amount);
      count++;
    }
    cursor = /<[^>]*[?&]cursor=([^&>]+)[^>]*>; rel="next"/.exec(response.headers.get('link') ?? '')?.[1];
  } while (cursor !== undefined);
  console.log('pages', count, sum.toString());
}

async function printError(call: Promise<unknown>): Promise<void> {
  const error = await call.catch((refused: unknown) => refused);
  if (error instanceof WaitsForApproval) return console.log('approval', error.message);
  if (!(error instanceof Refused)) throw new Error('it must be refused');
  console.log('error', error.status, error.body.code, error.body.details?.['transaction_id']);
}

async function getAccount(account_id: string, client = bank) {
  const { data, error, response } = await client.GET('/accounts/{account_id}', { params: { path: { account_id } } });
  if (!data) throw new Refused(response.status, error as ErrorBody);
  return data.data;
}

const key = () => crypto.randomUUID(); // stands for an id in your database
const once = () => ({ header: { 'Idempotency-Key': key() } });
const created = await bank.POST('/clients', {
  params: once(),
  body: {
    client_type: 'Retail',
    first_name: 'Amina',
    last_name: 'Otieno',
    email: 'amina@example.org',
    contact_number: '+254700000001',
  },
});
const client_id = created.data?.data.client_id ?? '';
const opened = await bank.POST('/accounts', {
  params: once(),
  body: { client_id, account_type: 'Savings', currency: 'KES' },
});
if (!opened.data || !('account_id' in opened.data.data)) throw new Error('a second person must approve it first');
const { account_id } = opened.data.data;
console.log('account', account_id);

for (const [amount, reference] of [
  ['400000.13', 'cut'],
  ['0.20', 'slow'],
  ['0.30', 'bad gateway'],
] as const) {
  const deposit = new Decimal(amount);
  // #region money
  const done = await post(key(), { account_id, transaction_type: 'Deposit', amount: deposit.toNumber(), reference });
  // #endregion
  console.log(reference, done.transaction_id, done.status);
}
console.log('balance', new Decimal((await getAccount(account_id)).balance).toString());
await printAll(process.env['ACCOUNT_ID'] ?? '');
const withdrawal = { account_id, transaction_type: 'Withdrawal', amount: 499_999.99 } as const;
await printError(post(key(), { ...withdrawal, reference: 'too much' }));
await printError(post(key(), { ...withdrawal, reference: 'slow, too much' }));
await printError(post(key(), { account_id, transaction_type: 'Deposit', amount: 600_000_000, reference: 'large' }));
await printError(getAccount(`acc_${'0'.repeat(32)}`));
await printError(getAccount(account_id, connect('wrong')));
// Codes and types that came after this client are texts like the others.
await printError(getAccount(`acc_${'f'.repeat(32)}`));
const last = await post(key(), { account_id, transaction_type: 'Deposit', amount: 1, reference: 'later' });
const read = await bank.GET('/transactions/{transaction_id}', { params: { path: last } });
console.log('type', read.data?.data.transaction_type);
