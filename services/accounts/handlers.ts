import type { MessageData, MessageName } from '#libs/contracts/messages.ts';
import { createApiKey, revokeApiKey, rotateApiKey } from './api-keys.ts';
import { createClient, updateClient } from './clients.ts';
import { openAccount } from './opening.ts';
import type { Outcome, Work } from './outcome.ts';
import { changeAccountStatus } from './status.ts';

/**
 * One handler per command of accounts.commands that has a reply. A handler runs inside the command's transaction; a refusal
 * is a value that it returns, what it throws is a fault.
 */
export const commandHandlers = {
  create_client: createClient,
  update_client: updateClient,
  open_account: openAccount,
  change_account_status: changeAccountStatus,
  create_api_key: createApiKey,
  rotate_api_key: rotateApiKey,
  revoke_api_key: revokeApiKey,
} satisfies { [N in MessageName]?: (work: Work, data: MessageData<N>) => Promise<Outcome> };

export type CommandName = keyof typeof commandHandlers;

export function isCommandName(name: string): name is CommandName {
  return Object.hasOwn(commandHandlers, name);
}
