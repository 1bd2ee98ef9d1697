import type { AccountMaster } from '#libs/contracts/accounts.ts';
import type { Approval, ApprovalAction } from '#libs/contracts/approvals.ts';
import type { Refusal } from '#libs/contracts/errors.ts';
import type { MessageData, MessageName, MessageResult } from '#libs/contracts/messages.ts';
import { fromMinor, toMinor } from '#libs/contracts/money.ts';
import type { Scope } from '#libs/contracts/scopes.ts';
import type { FourEyes, Posting } from '../access/four-eyes.ts';
import type { Origin } from '../messages/encode.ts';
import { dataOf } from './answer.ts';
import type { ReadDependencies } from './reads.ts';

/**
 * The facts about a command that determine whether it needs an approval, and that its approver needs to know. They are
 * read from the services. If a resource does not exist, the command is refused here, as the service would refuse it.
 */
export interface Question {
  /** The actions that the command is. It needs an approval if one of them does. */
  actions: ApprovalAction[];
  /** The scopes that the approver needs in addition to approvals:write. */
  scopes: Scope[];
  summary: string;
  changes: Approval['changes'];
  /** Why the service would refuse the command now. A repeat still gets its approval. */
  refusal?: Refusal | undefined;
}

export interface Asker {
  reads: ReadDependencies;
  /** Its reads are not shown to the caller and leave no audit record. */
  origin: Origin;
  fourEyes: FourEyes;
  /** Returns the bank's time in ms since 1970. */
  now: () => number;
}

export async function ask<N extends MessageName>(
  name: N,
  data: MessageData<N>,
  key: string,
  { reads, origin }: Asker,
): Promise<MessageResult<N>> {
  return dataOf(await reads.forwarder.query(name, data, key, origin));
}

export function accountOf(account_id: string, asker: Asker): Promise<AccountMaster> {
  return ask('get_account', { account_id }, account_id, asker);
}

/** Reads the account that receives money, which may belong to any client. */
export function destinationOf(account_id: string, asker: Asker): Promise<AccountMaster> {
  const caller = { ...asker.origin.caller, boundClientId: undefined };
  return accountOf(account_id, { ...asker, origin: { ...asker.origin, caller } });
}

/** Returns the amount that a capture takes: the requested one, or what remains of the hold. */
export async function capturedPosting(
  hold_id: string,
  asked: string | null,
  asker: Asker,
): Promise<Posting & { account_id: string }> {
  const { account_id, currency, amount, captured_amount } = await ask('get_hold', { hold_id }, hold_id, asker);
  const left = BigInt(toMinor(amount, currency)) - BigInt(toMinor(captured_amount, currency));
  return { account_id, currency, amount: asked ?? fromMinor(left, currency) };
}
