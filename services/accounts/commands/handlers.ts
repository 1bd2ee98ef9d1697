import type { MessageData, MessageName, MessageOn } from '#libs/contracts/messages.ts';
import type { Queries } from '#libs/postgres/pool.ts';
import { createApiKey, rotateApiKey } from '../api-keys/api-keys.ts';
import { claimApprovedKey } from '../approvals/claim-key.ts';
import { decideRequest, requestApproval } from '../approvals/decide.ts';
import { revokeKeys } from '../approvals/revoked.ts';
import { createClients, updateClient } from '../clients/clients.ts';
import { dropDeadLetter, redriveDeadLetter } from '../dead-letters/dead-letters.ts';
import { eraseClient } from '../erasure/erasure.ts';
import { addNote } from '../notes/notes.ts';
import type { Asked, Outcome, Work } from '../outcome.ts';
import { openAccounts } from '../sagas/opening.ts';
import { changeAccountStatuses } from '../sagas/status.ts';

/**
 * There is one handler per command with a reply. It runs in the transaction that stores the command's record. It
 * returns a refusal as a value, having written nothing; every error that it throws is a fault.
 */
export const commandHandlers = {
  update_client: updateClient,
  erase_client: eraseClient,
  add_client_note: addNote,
  add_account_note: addNote,
  create_api_key: createApiKey,
  rotate_api_key: rotateApiKey,
  revoke_api_key: revokeKeys,
  redrive_dead_letter: redriveDeadLetter,
  drop_dead_letter: dropDeadLetter,
  request_approval: requestApproval,
  approve_request: decideRequest('Approved'),
  reject_request: decideRequest('Rejected'),
  claim_approved_key: claimApprovedKey,
} satisfies {
  [N in Exclude<MessageOn<'accounts.commands'>, WithoutReply | Batched>]: (
    work: Work,
    data: MessageData<N>,
  ) => Promise<Outcome>;
};

type WithoutReply = 'record_audit' | 'record_api_key_use' | 'republish_api_keys';
type Batched = keyof typeof batchedCommandHandlers;

/**
 * Handlers that decide several commands together, with one outcome each, in order. They are for commands that arrive in
 * large numbers.
 */
export const batchedCommandHandlers = {
  create_client: createClients,
  open_account: openAccounts,
  change_account_status: changeAccountStatuses,
} satisfies {
  [N in MessageName]?: (client: Queries, asked: Asked<MessageData<N>>[], now: string) => Promise<Outcome[]>;
};

export function isBatched(name: string): name is keyof typeof batchedCommandHandlers {
  return Object.hasOwn(batchedCommandHandlers, name);
}

/** The values that all commands of a transaction share, besides the transaction. */
export type Surroundings = Pick<Work, 'now' | 'prefix' | 'keys' | 'deadLetters' | 'retention'>;

/** Returns the outcomes of commands with one name, in order. There may be several only of batched commands. */
export async function handle(
  client: Queries,
  commands: readonly (Asked<unknown> & { name: MessageName })[],
  around: Surroundings,
): Promise<Outcome[]> {
  const [{ name, context, data }] = commands as [(typeof commands)[number]];
  if (isBatched(name)) {
    const decide = batchedCommandHandlers[name] as (...args: [Queries, unknown, string]) => Promise<Outcome[]>;
    return decide(client, commands, around.now);
  }
  if (!Object.hasOwn(commandHandlers, name)) throw new TypeError(`no handler for ${name}`);
  const decide = commandHandlers[name as keyof typeof commandHandlers] as (
    ...args: [Work, unknown]
  ) => Promise<Outcome>;
  return [await decide({ client, context, ...around }, data)];
}
