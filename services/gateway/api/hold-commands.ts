import { pickDay } from '#libs/contracts/days.ts';
import { bucketOfId, debitLegId, formatId, inBucket, withBucket } from '#libs/contracts/ids.ts';
import { pickNames } from '#libs/contracts/names.ts';
import { refuse } from '../http/errors.ts';
import { knownForm, pathId } from '../http/unknown-ids.ts';
import { type Planners, planCreate, planFor } from './plan.ts';

/** Planners for holds. Commands for a hold are executed in order, because its id contains the bucket of its account. */
export const holdPlanners = {
  place_hold({ params, body, bits }) {
    const account_id = pathId('account_id', params);
    const { amount, currency = null, description = null, reference = null, expires_at = null } = body;
    const fields = { account_id, amount, currency, description, reference, expires_at, ...pickNames(body) };
    return planCreate('hold_id', withBucket(bits, account_id), (hold_id) => ({ hold_id, ...fields }), account_id);
  },
  capture_hold({ params, body, bits, caller }) {
    const hold_id = pathId('hold_id', params);
    const to_account_id = body.to_account_id == null ? null : knownForm('account', body.to_account_id);
    const needed = to_account_id === null ? 'transactions:write' : 'transfers:write';
    if (!caller.scopes.has(needed))
      throw refuse('insufficient_scope', `the scope ${needed} is required for this capture`);
    const bucket = bucketOfId(hold_id);
    const transfer_id = formatId('transfer', inBucket(bits, bucket));
    const transaction_id = debitLegId(transfer_id);
    const [resource, location] =
      to_account_id === null
        ? [{ transaction_id }, `/transactions/${transaction_id}`]
        : [{ transfer_id }, `/transfers/${transfer_id}`];
    const { amount = null, final, description = null } = body;
    return {
      id: transaction_id,
      key: hold_id,
      bucket,
      data: {
        transaction_id,
        hold_id,
        amount,
        to_account_id,
        final,
        description,
        ...pickDay(body),
        ...pickNames(body),
      },
      resource: { ...resource, hold_id },
      location,
    };
  },
  release_hold(input) {
    const plan = planFor('hold_id', input, (hold_id) => ({ hold_id }));
    return { ...plan, bucket: bucketOfId(plan.key) };
  },
} satisfies Partial<Planners>;
