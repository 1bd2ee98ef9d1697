import { hash, randomUUID } from 'node:crypto';
import type { z } from 'zod';
import { endpoints } from '#libs/contracts/endpoints.ts';
import type { HomeCountry } from '#libs/contracts/phones.ts';
import { parseFields } from '#services/gateway/api/input.ts';
import { ApprovalNeededError, type Bank, BankError, type CallOptions } from '../clients/typescript/index.ts';
import { accountBody, asRead, clientBody, type Kind, type Row } from './import-rows.ts';

/** The result of a row. */
export type Outcome = 'imported' | 'already_there' | { refused: string };

/** The ids of this many clients are kept in memory; those of others are read from the bank. */
const mostClientIds = 100_000;

/**
 * Sends rows, each as one request: the opening balance is the account's initial deposit, posted in
 * the database transaction of its opening. The bank's response to a row is its outcome; a failure
 * that concerns all rows (credentials, no response) throws.
 */
export function createImporter(
  bank: Bank,
  home: HomeCountry | undefined,
): Record<Kind, (row: Row) => Promise<Outcome>> {
  const clientIds = new Map<string, string>();
  const keepClientId = (external_id: string, client_id: string): void => {
    clientIds.set(external_id, client_id);
    if (clientIds.size > mostClientIds) for (const oldest of clientIds.keys()) return void clientIds.delete(oldest);
  };
  return {
    async clients(row) {
      const body = clientBody(row, home);
      const external_id = row.values['external_id'] ?? '';
      return await take(row, 'client', body, endpoints.create_client.body, {
        create: async (options) =>
          keepClientId(
            external_id,
            (await bank.createClient(body as Parameters<Bank['createClient']>[0], options)).client_id,
          ),
        find: async () => {
          const [client] = await bank.listClients({ external_id }).toArray(1);
          if (client) keepClientId(external_id, client.client_id);
          return client;
        },
      });
    },
    async accounts(row) {
      const { external_id = '', client_external_id = '' } = row.values;
      const client_id =
        clientIds.get(client_external_id) ??
        (await bank.listClients({ external_id: client_external_id }).toArray(1))[0]?.client_id;
      if (client_id === undefined) return { refused: 'client_external_id: no client of the bank has it' };
      keepClientId(client_external_id, client_id);
      const body = accountBody(row, client_id);
      return await take(row, 'account', body, endpoints.open_account.body, {
        create: async (options) => void (await bank.openAccount(body as Parameters<Bank['openAccount']>[0], options)),
        find: async () => {
          const [account] = await bank.listAccounts({ external_id }).toArray(1);
          return account && { ...account, initial_deposit: account.balance, migrated: true };
        },
      });
    },
  };
}

interface Calls {
  create: (options: CallOptions) => Promise<void>;
  /** Returns the resource with the external_id of the row. */
  find: () => Promise<object | undefined>;
}

async function take(
  { values }: Row,
  what: string,
  body: Record<string, unknown>,
  schema: z.ZodType,
  { create, find }: Calls,
): Promise<Outcome> {
  let replayed = false;
  const options = (idempotencyKey: string): CallOptions => ({
    idempotencyKey,
    onHeaders: (headers) => void (replayed = headers.get('idempotent-replayed') === 'true'),
  });
  // The content is part of the key, so that a refused and then corrected row is a different
  // request.
  const key = `import ${what} ${values['external_id']} ${hash('sha256', JSON.stringify(body)).slice(0, 32)}`;
  try {
    try {
      await create(options(key));
    } catch (error) {
      // A refusal is stored under its key, so a new key is needed to find out whether it still applies. external_id
      // prevents a second resource.
      if (!isKept(error)) throw error;
      await create(options(`${key} ${randomUUID()}`));
    }
    return replayed ? 'already_there' : 'imported';
  } catch (error) {
    if (error instanceof ApprovalNeededError)
      return { refused: `approval_required: ${error.message} (${error.approval.approval_id})` };
    if (!(error instanceof BankError) || ![400, 404, 409, 413].includes(error.status)) throw error;
    if (error.code !== 'duplicate_external_id') return { refused: `${error.code}: ${error.message}` };
    const others = differences(parseFields(schema, asRead(body)) as Record<string, unknown>, (await find()) ?? {});
    return others.length === 0
      ? 'already_there'
      : { refused: `duplicate_external_id: the bank has it with another ${others.join(', ')}` };
  }
}

function isKept(error: unknown): boolean {
  return error instanceof BankError && [400, 404, 409].includes(error.status) && error.errors.length === 0;
}

/** Returns the fields in which a resource of the bank differs from the row. */
function differences(asked: Record<string, unknown>, there: object): string[] {
  return Object.entries(asked)
    .filter(([field, value]) => {
      const other: unknown = Reflect.get(there, field);
      return (
        value != null &&
        JSON.stringify(field === 'initial_deposit' ? Number(value) : value) !== JSON.stringify(other ?? null)
      );
    })
    .map(([field]) => (field === 'initial_deposit' ? 'balance' : field));
}
