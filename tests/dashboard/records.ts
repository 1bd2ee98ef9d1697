import { beforeAll } from 'vitest';
import {
  newKey,
  type RestAccount,
  type RestClient,
  type RestTransaction,
  type RestTransfer,
} from '../support/client.ts';
import type { World } from '../support/world.ts';

/** A client with an account and its postings. Available from `beforeAll` on. */
export interface Records {
  client: RestClient;
  account: RestAccount;
  deposit: RestTransaction;
  transfer: RestTransfer;
  /** The Idempotency-Key of the deposit. */
  key: string;
}

export function useRecords({ api }: World): () => Records {
  let made: Records | undefined;
  beforeAll(async () => {
    const key = newKey();
    const client = await api.client({ first_name: 'Hedda', last_name: 'Høpper', contact_number: '+4799000001' });
    const account = await api.account(client.client_id, { initial_deposit: 100 });
    const body = {
      account_id: account.account_id,
      transaction_type: 'Deposit',
      amount: 1234.5,
      reference: 'INVOICE 77',
      description: '=1+1',
    };
    const deposit = (
      await api.post('/transactions', body, { 'idempotency-key': key, 'x-request-id': 'the very request' })
    ).body as RestTransaction;
    made = {
      client,
      account,
      deposit,
      key,
      transfer: await api.transfer(account.account_id, (await api.newAccount()).account_id, 2.5),
    };
  });
  return () => {
    if (!made) throw new Error('the records do not exist yet: use them inside tests');
    return made;
  };
}
