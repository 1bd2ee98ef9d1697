import type { z } from 'zod';
import type { holdBodies } from '#libs/contracts/holds.ts';
import { bucketOfId, debitLegId, idOf, inBucket, withBucket } from '#libs/contracts/ids.ts';
import { namesOf } from '#libs/contracts/names.ts';
import { refuse } from '../http/errors.ts';
import { about, type Input, type Plan } from './plan.ts';
import { knownForm, pathId } from './unknown-ids.ts';

type Body<S extends z.ZodType> = z.output<S>;

/** Planners for holds. Commands for a hold are executed in order, because its id contains the bucket of its account. */
export const holdPlanners = {
  place_hold({ params, body, bits }: Input<Body<typeof holdBodies.placeHold>>): Plan<'place_hold'> {
    const account_id = pathId('account_id', params);
    const hold_id = idOf('hold', withBucket(bits, account_id));
    const { amount, currency = null, description = null, reference = null, expires_at = null } = body;
    const data = { hold_id, account_id, amount, currency, description, reference, expires_at, ...namesOf(body) };
    return {
      name: 'place_hold',
      id: hold_id,
      key: account_id,
      data,
      resource: { hold_id },
      location: `/holds/${hold_id}`,
    };
  },
  capture_hold({ params, body, bits, caller }: Input<Body<typeof holdBodies.captureHold>>): Plan<'capture_hold'> {
    const hold_id = pathId('hold_id', params);
    const to_account_id = body.to_account_id == null ? null : knownForm('account', body.to_account_id);
    const needed = to_account_id === null ? 'transactions:write' : 'transfers:write';
    if (!caller.scopes.has(needed))
      throw refuse('insufficient_scope', `the scope ${needed} is required for this capture`);
    const bucket = bucketOfId(hold_id);
    const transfer_id = idOf('transfer', inBucket(bits, bucket));
    const transaction_id = debitLegId(transfer_id);
    const { amount = null, final, description = null } = body;
    const data = { transaction_id, hold_id, amount, to_account_id, final, description, ...namesOf(body) };
    const [resource, location] =
      to_account_id === null
        ? [{ transaction_id }, `/transactions/${transaction_id}`]
        : [{ transfer_id }, `/transfers/${transfer_id}`];
    return {
      name: 'capture_hold',
      id: transaction_id,
      key: hold_id,
      bucket,
      data,
      resource: { ...resource, hold_id },
      location,
    };
  },
  release_hold(input: Input): Plan<'release_hold'> {
    const plan = about('release_hold', 'hold_id', input, (hold_id) => ({ hold_id }));
    return { ...plan, bucket: bucketOfId(plan.key) };
  },
};
