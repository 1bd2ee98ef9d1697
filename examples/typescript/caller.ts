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

// #region post
/** Returns the decided transaction, which was posted at most once. */
async function post(body: components['schemas']['CreateTransactionRequest']): Promise<Transaction> {
  const key = crypto.randomUUID(); // stored with the payment, before the first attempt
  for (let attempt = 1; ; attempt++) {
    try {
      const { data, error, response } = await bank.POST('/transactions', {
        params: { header: { 'Idempotency-Key': key } },
        body,
      });
      if (response.status === 202) return await untilDone(response.headers.get('location')?.split('/').at(-1) ?? '');
      if (data) return data as Transaction;
      throw new Refused(response.status, error as ErrorBody);
    } catch (error) {
      const open = !(error instanceof Refused) || error.status === 429 || error.status >= 503;
      if (!open || attempt === 8) throw error;
    }
    await sleep(200 * 2 ** attempt);
  }
}
// #endregion

// #region await
async function untilDone(transaction_id: string): Promise<Transaction> {
  for (;;) {
    const { data, error, response } = await bank.GET('/transactions/{transaction_id}', {
      params: { path: { transaction_id } },
    });
    if (!data) throw new Refused(response.status, error as ErrorBody);
    if (data.data.status !== 'Pending') return data.data;
    await sleep(500);
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
  if (!(error instanceof Refused)) throw new Error('it must be refused');
  console.log('error', error.status, error.body.code, error.body.details?.['transaction_id']);
}

async function getAccount(account_id: string, client = bank) {
  const { data, error, response } = await client.GET('/accounts/{account_id}', { params: { path: { account_id } } });
  if (!data) throw new Refused(response.status, error as ErrorBody);
  return data.data;
}

const once = () => ({ header: { 'Idempotency-Key': crypto.randomUUID() } });
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
  ['100.10', 'cut'],
  ['0.20', 'slow'],
] as const) {
  const deposit = new Decimal(amount);
  // #region money
  const done = await post({ account_id, transaction_type: 'Deposit', amount: deposit.toNumber(), reference });
  // #endregion
  console.log(reference, done.transaction_id, done.status);
}
console.log('balance', new Decimal((await getAccount(account_id)).balance).toString());
await printAll(process.env['ACCOUNT_ID'] ?? '');
await printError(post({ account_id, transaction_type: 'Withdrawal', amount: 999999.99 }));
await printError(getAccount(`acc_${'0'.repeat(32)}`));
await printError(getAccount(account_id, connect('wrong')));
// Codes and types that came after this client are texts like the others.
await printError(getAccount(`acc_${'f'.repeat(32)}`));
const last = await post({ account_id, transaction_type: 'Deposit', amount: 1, reference: 'later' });
console.log('type', (await untilDone(last.transaction_id)).transaction_type);
