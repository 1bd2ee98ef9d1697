import type { StaffDay } from '#libs/contracts/staff-days.ts';
import { isPerson } from '#libs/contracts/staff-days.ts';
import type { Caller } from '../access/caller.ts';
import { refuse, refuseViolations } from '../http/errors.ts';
import { type ReadDependencies, type ReadInput, readOne } from './reads.ts';

/** Reads of what a person has posted (contract: tills): their own without a further scope, that of others with books:read. */

/** Returns whose postings the caller asks for. Throws a Refused if the caller may not see them. */
function requirePerson({ actor: self, scopes }: Caller, actor: unknown): string {
  const asked = typeof actor === 'string' ? actor : self;
  if (asked !== self && !scopes.has('books:read'))
    throw refuse('insufficient_scope', 'the scope books:read is required for what another person has posted');
  if (isPerson(asked)) return asked;
  const message = 'actor must be a person, such as jwt:https://issuer.example|ada, and not an API key';
  throw refuseViolations([{ field: 'actor', code: 'validation_failed', message }]);
}

export function readStaffDay(input: ReadInput, deps: ReadDependencies): Promise<StaffDay> {
  const { query, origin } = input;
  const actor = requirePerson(origin.caller, query['actor']);
  return readOne('get_staff_day', { ...input, query: { ...query, actor } }, deps) as Promise<StaffDay>;
}
