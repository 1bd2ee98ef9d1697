import type { Approval } from '#libs/contracts/approvals.ts';
import type { Hold } from '#libs/contracts/holds.ts';
import { fromMinor, toMinor } from '#libs/contracts/money.ts';
import type { AccountMaster } from '#libs/contracts/resources.ts';
import type { Scope } from '#libs/contracts/scopes.ts';
import type { Deed, FourEyes, Posting } from '../access/four-eyes.ts';
import { dataOf } from './answer.ts';
import type { Forwarder, Origin } from './forward.ts';
import type { ReadDependencies } from './reads.ts';

/**
 * The facts about a command that determine whether it needs an approval, and that its approver needs to know. They are
 * read from the services. If a resource does not exist, the command is refused here, as the service would refuse it.
 */
export interface Question {
  deed: Deed;
  /** The scopes that the approver needs in addition to approvals:write. */
  scopes: Scope[];
  summary: string;
  changes: Approval['changes'];
}

export interface Asker {
  reads: ReadDependencies;
  origin: Origin;
  fourEyes: FourEyes;
}

/** Marks reads that are not shown to the caller and therefore leave no audit record. */
export function quiet({ origin }: Asker): Origin {
  return { ...origin, caller: { ...origin.caller, isStaff: false } };
}

/** Removes the binding to a client for reading the destination, which may belong to any client. */
export function unbound(origin: Origin): Origin {
  return { ...origin, caller: { ...origin.caller, boundClientId: undefined } };
}

export const forwarderOf = ({ reads }: Asker): Forwarder => reads.forwarder;

export async function accountOf(account_id: string, asker: Asker, origin = quiet(asker)): Promise<AccountMaster> {
  return dataOf(await forwarderOf(asker).query('get_account', { account_id }, account_id, origin)) as AccountMaster;
}

/** Returns the amount that a capture takes: the requested one, or what remains of the hold. */
export async function capturedPosting(
  hold_id: string,
  asked: string | null,
  asker: Asker,
): Promise<Posting & { account_id: string }> {
  const found = await forwarderOf(asker).query('get_hold', { hold_id }, hold_id, quiet(asker));
  const { account_id, currency, amount, captured_amount } = dataOf(found) as Hold;
  const left = BigInt(toMinor(amount, currency)) - BigInt(toMinor(captured_amount, currency));
  return { account_id, currency, amount: asked ?? fromMinor(left, currency) };
}
