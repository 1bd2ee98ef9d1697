import type { Operations } from '#libs/contracts/administration.ts';
import type { MessageResult } from '#libs/contracts/messages.ts';
import type { Outcome } from './forward.ts';
import type { ReadDependencies, ReadInput } from './reads.ts';

/** How the bank is. It is asked when something is wrong: what does not answer is shown as such, and fails nothing else. */
export async function readOperations({ origin }: ReadInput, { forwarder, consumerLag, metrics }: ReadDependencies): Promise<Operations> {
  const [ofLedger, ofAccounts, consumer_lag] = await Promise.all([
    forwarder.query('get_ledger_operations', {}, origin.requestId, origin),
    forwarder.query('get_accounts_operations', {}, origin.requestId, origin),
    consumerLag().catch(() => null),
  ]);
  const ledger = answered<'get_ledger_operations'>(ofLedger);
  const accounts = answered<'get_accounts_operations'>(ofAccounts);
  return {
    services: [
      { service: 'ledger', answers: ledger !== undefined, outbox: ledger?.outbox ?? null },
      { service: 'accounts', answers: accounts !== undefined, outbox: accounts?.outbox ?? null },
    ],
    breakers: forwarder.breakers(),
    dead_letters_open: accounts?.dead_letters_open ?? null,
    consumer_lag,
    last_verification: ledger?.last_verification ?? null,
    requests: metrics.recent(),
  };
}

function answered<N extends 'get_ledger_operations' | 'get_accounts_operations'>(outcome: Outcome): MessageResult<N> | undefined {
  return outcome.kind === 'done' ? (outcome.data as MessageResult<N>) : undefined;
}
