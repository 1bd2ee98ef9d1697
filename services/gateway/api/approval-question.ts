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
 * What a command is about, read from those who know, as far as it decides whether a second person must approve it and
 * what that person is shown. A thing that does not exist is refused here, as the command itself would be.
 */
export interface Question {
  deed: Deed;
  /** Whoever decides needs these besides approvals:write. */
  scopes: Scope[];
  summary: string;
  changes: Approval['changes'];
}

export interface Asker {
  reads: ReadDependencies;
  origin: Origin;
  fourEyes: FourEyes;
}

/** Nothing of what is read here is shown to the caller, so that no record says that they have read it. */
export function quiet({ origin }: Asker): Origin {
  return { ...origin, caller: { ...origin.caller, isStaff: false } };
}

/** A destination may be anyone's. */
export function unbound(origin: Origin): Origin {
  return { ...origin, caller: { ...origin.caller, boundClientId: undefined } };
}

export const forwarderOf = ({ reads }: Asker): Forwarder => reads.forwarder;

export async function accountOf(account_id: string, asker: Asker, origin = quiet(asker)): Promise<AccountMaster> {
  return dataOf(await forwarderOf(asker).query('get_account', { account_id }, account_id, origin)) as AccountMaster;
}

/** What a capture takes: the amount asked for, or what is left of the hold. */
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
