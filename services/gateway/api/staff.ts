import { isPerson, type StaffDay } from '#libs/contracts/staff-days.ts';
import type { Till } from '#libs/contracts/tills.ts';
import type { Caller } from '../access/caller.ts';
import { refuse, refuseViolations } from '../http/errors.ts';
import { pathId } from '../http/unknown-ids.ts';
import { requireData } from './answer.ts';
import { type Planners, planCreate, planFor } from './plan.ts';
import { type Page, queryById, type ReadDependencies, type ReadInput, readOne, readPage } from './reads.ts';

/** Reads of what a person has posted (contract: tills): their own without a further scope, that of others with books:read. */

/** Returns whose postings the caller asks for. Throws a Refused if the caller may not see them. */
function requirePerson({ actor: self, scopes }: Caller, actor: unknown): string {
  const asked = typeof actor === 'string' ? actor : self;
  if (asked !== self && !scopes.has('books:read'))
    throw refuse('insufficient_scope', 'the scope books:read is required for what another person has posted');
  if (isPerson(asked)) return asked;
  const message =
    asked === self
      ? 'actor is required, because API keys have no day and no tills; books:read is required for those of persons'
      : 'actor must be a person, such as jwt:https://issuer.example|ada, and not an API key';
  throw refuseViolations([{ field: 'actor', code: 'validation_failed', message }]);
}

/** The names of colleagues are for people, not for programs. */
export function readStaffNames(input: ReadInput, deps: ReadDependencies): Promise<unknown> {
  if (!input.origin.caller.isStaff) throw refuse('insufficient_scope', 'only a person of the bank can do this');
  return readOne('list_staff_names', input, deps);
}

export async function readStaffDay(input: ReadInput, deps: ReadDependencies): Promise<StaffDay> {
  const { query, origin } = input;
  const actor = requirePerson(origin.caller, query['actor']);
  const day = (await readOne('get_staff_day', { ...input, query: { ...query, actor } }, deps)) as StaffDay;
  return origin.caller.scopes.has('transactions:read') ? day : { ...day, customers: [] };
}

/** A till is opened and closed by its person, or closed by a person who sees all tills. */
function requireSelf({ isStaff }: Caller): void {
  if (!isStaff) throw refuse('insufficient_scope', 'a till belongs to a person: API keys and OAuth clients have none');
}

export const tillPlanners = {
  open_till({ body, bits, caller }) {
    requireSelf(caller);
    return planCreate('till_id', bits, (till_id) => ({ till_id, counted: body.counted }));
  },
  close_till(input) {
    requireSelf(input.caller);
    const { counted, reason = null } = input.body;
    return planFor('till_id', input, (till_id) => ({
      till_id,
      counted,
      reason,
      of_others: input.caller.scopes.has('books:read'),
    }));
  },
} satisfies Partial<Planners>;

/** Removes what an open till has taken for its own person, who must not know it before the count. */
const asSeenBy = ({ actor }: Caller, { so_far, ...till }: Till): Till =>
  so_far === undefined || till.actor === actor ? till : { ...till, so_far };

/** A till of another person is not found without books:read. */
export async function readTill({ params, origin }: ReadInput, { forwarder }: ReadDependencies) {
  const till_id = pathId('till_id', params);
  const till = requireData(await queryById('get_till', { till_id }, till_id, origin, forwarder));
  const { actor, scopes } = origin.caller;
  if (till.actor === actor || scopes.has('books:read')) return asSeenBy(origin.caller, till);
  throw refuse('till_not_found', `till ${till_id} not found`);
}

export async function readTills(input: ReadInput, deps: ReadDependencies): Promise<Page> {
  const { query, origin } = input;
  const { caller } = origin;
  const isOfAll = query['actor'] === undefined && caller.scopes.has('books:read');
  const actor = isOfAll ? undefined : requirePerson(caller, query['actor']);
  const asked = { ...query, ...(actor !== undefined && { actor }) };
  const page = await readPage('list_tills', { ...input, query: asked }, deps);
  return { ...page, items: (page.items as Till[]).map((till) => asSeenBy(caller, till)) };
}
