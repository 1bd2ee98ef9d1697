import { errorCodes, refusal } from '#libs/contracts/errors.ts';
import { bankDay } from '#libs/service/formats.ts';
import type { Origin } from '../messages/encode.ts';
import { isNotFound } from './answer.ts';
import type { Forwarder, Outcome } from './forward.ts';
import { queryById } from './reads.ts';
import type { Send } from './write.ts';

/** A value date other than the bank's day requires a scope of its own (contract: days-6). */

export interface Dated {
  effective_date?: string | null | undefined;
}

/** Reports whether a value date is given that is not the bank's day at this time. */
export const hasOtherDay = ({ effective_date: day }: Dated, at: Date): boolean =>
  day != null && day !== bankDay(at.getTime());

const lacksScope: Outcome<never> = {
  kind: 'refused',
  refusal: refusal(
    'insufficient_scope',
    'an effective_date other than the current day of the bank requires the scope transactions:backdate',
  ),
  replayed: false,
};

/** Refuses such a request unless its caller has the scope or, at midnight, it is repeated. */
export function withValueDate({ forwarder }: { forwarder: Forwarder }, next: Send): Send {
  return async (write) => {
    const { input, plan, origin } = write;
    return (await refusedDay([input.body as Dated], plan.id, input.acceptedAt, origin, forwarder)) ?? next(write);
  };
}

/**
 * Returns the refusal of postings with these dates, if they need the scope and the caller lacks it. The request with this
 * id may have been executed on the day that it names, which has ended since; its repeat must then get the same response.
 */
export async function refusedDay(
  bodies: readonly Dated[],
  id: string,
  acceptedAt: Date,
  origin: Origin,
  forwarder: Forwarder,
): Promise<Outcome<never> | undefined> {
  if (origin.caller.scopes.has('transactions:backdate') || !bodies.some((body) => hasOtherDay(body, acceptedAt)))
    return undefined;
  if (origin.idempotencyKey === undefined) return lacksScope;
  const kind = id.startsWith('trf_') ? 'transfer' : id.startsWith('bat_') ? 'batch' : 'transaction';
  const known = await queryById(`get_${kind}`, { [`${kind}_id`]: id }, id, origin, forwarder);
  if (isNotFound(known)) return lacksScope;
  // Only an answer about the command itself shows that there was one.
  const isKnown = known.kind === 'refused' ? errorCodes[known.refusal.code].status < 500 : known.kind === 'done';
  return isKnown ? undefined : { kind: 'failed', stage: 'not_sent' };
}
