import type { Violation } from '#libs/contracts/errors.ts';
import { type FourEyes, isAboveSome, isWatched, needsApproval } from '../access/four-eyes.ts';
import { type Refused, refuse } from '../http/errors.ts';
import type { Origin } from '../messages/encode.ts';
import { dataOf } from './answer.ts';
import type { ItemPlan } from './batches.ts';
import type { Forwarder } from './forward.ts';

/** The maximum number of accounts per query. */
const maxAccounts = 500;

/**
 * A batch cannot wait for an approval. If an item needs one, returns the refusal of the whole batch, which names all
 * such items (contract: batches-5). The ledger refuses items with unknown accounts.
 */
export async function checkLargeItems(
  plans: ItemPlan[],
  origin: Origin,
  { fourEyes, forwarder }: { fourEyes: FourEyes; forwarder: Forwarder },
): Promise<Refused | undefined> {
  if (!fourEyes.actions.has('post_above') || !isWatched(origin.caller, fourEyes)) return undefined;
  const unnamed = plans.filter(
    ({ data: { amount, currency } }) => currency === null && isAboveSome(amount, fourEyes.limits),
  );
  const currencies = await currenciesOf([...new Set(unnamed.map(({ key }) => key))], origin, forwarder);
  const errors = plans.flatMap(({ key, data }, index): Violation[] => {
    const { amount, currency } = data;
    const known = currency ?? currencies.get(key);
    if (known === undefined || !needsApproval({ amount, currency: known }, origin.caller, fourEyes)) return [];
    const field = `items[${index}].${'transfer_id' in data ? 'transfer' : 'transaction'}`;
    return [
      { field, code: 'approval_required', message: `${field} must be approved by a second person: send it alone` },
    ];
  });
  return errors.length > 0
    ? refuse('approval_required', `${errors[0]?.message}; nothing of the batch was executed`, { errors })
    : undefined;
}

async function currenciesOf(accountIds: string[], origin: Origin, forwarder: Forwarder): Promise<Map<string, string>> {
  const currencies = new Map<string, string>();
  for (let at = 0; at < accountIds.length; at += maxAccounts) {
    const account_ids = accountIds.slice(at, at + maxAccounts);
    const known = dataOf(await forwarder.query('get_ledger_accounts', { account_ids }, account_ids[0] ?? '', origin));
    for (const { account_id, currency } of known) currencies.set(account_id, currency);
  }
  return currencies;
}
