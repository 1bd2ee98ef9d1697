import { type Command, Option } from 'commander';
import { type Scope, scopes } from '#libs/contracts/scopes.ts';
import type { ApiKey, ApiKeyWithSecret } from '../clients/typescript/index.ts';
import { jsonOption, openBank, print, printJson, say, wholeNumber } from './api.ts';

interface CreateOptions {
  scopes: Scope[];
  expiresAt?: string;
  client?: string;
  environment: 'live' | 'test';
  json?: true;
}

/**
 * `bank keys list|create|rotate|revoke`: API keys. A new key is printed once, alone on stdout, so that a script can
 * store it.
 */
export function addKeys(group: Command): void {
  group
    .command('list')
    .description('List them, newest first')
    .option('--limit <number>', 'maximum number', wholeNumber(1, 999_999), 100)
    .addOption(jsonOption())
    .action(async ({ limit, json: asJson }: { limit: number; json?: true }) => {
      const keys = await openBank().listApiKeys().toArray(limit);
      if (asJson) return printJson(keys);
      for (const key of keys) print(line(key));
    });

  group
    .command('create <name>')
    .description('Create an API key with the given scopes, at most your own')
    .addOption(new Option('--scopes <scopes...>', 'its scopes').choices(scopes).makeOptionMandatory())
    .option('--expires-at <time>', 'its expiry (ISO 8601); default: the latest allowed')
    .option('--client <client_id>', 'bind it to this client')
    .addOption(
      new Option('--environment <environment>', 'environment in the key').choices(['live', 'test']).default('live'),
    )
    .addOption(jsonOption())
    .addHelpText('after', '\nExample:\n  bank keys create reporting --scopes accounts:read transactions:read')
    .action(async (name: string, { scopes: granted, expiresAt, client, environment, json: asJson }: CreateOptions) => {
      made(
        await openBank().createApiKey({ name, scopes: granted, environment, expires_at: expiresAt, client_id: client }),
        asJson,
      );
    });

  group
    .command('rotate <key_id>')
    .description('Replace an API key; the old one remains valid for a while')
    .option('--overlap-seconds <number>', 'how long the old key remains valid', wholeNumber(0, 30 * 86_400), 3600)
    .addOption(jsonOption())
    .action(async (id: string, { overlapSeconds, json: asJson }: { overlapSeconds: number; json?: true }) => {
      made(await openBank().rotateApiKey({ key_id: id, overlap_seconds: overlapSeconds }), asJson);
    });

  group
    .command('revoke <key_id>')
    .description('Revoke an API key and its family; within two seconds no gateway accepts them')
    .option('--descendants', 'also revoke every key that they created')
    .addOption(jsonOption())
    .action(async (id: string, { descendants = false, json: asJson }: { descendants?: boolean; json?: true }) => {
      const key = await openBank().revokeApiKey({ key_id: id, descendants });
      if (asJson) return printJson(key);
      print(`${key.key_id} ${key.status}`);
      for (const webhook of key.disabled_webhooks ?? []) print(`${webhook} disabled`);
    });
}

function line({ key_id, status, expires_at, name, scopes: granted, client_id }: ApiKey): string {
  return [
    key_id,
    status.padEnd(7),
    `until ${expires_at}`,
    name,
    granted.join(' '),
    ...(client_id === null ? [] : [`for ${client_id}`]),
  ].join('  ');
}

function made(key: ApiKeyWithSecret, asJson: true | undefined): void {
  if (asJson) return printJson(key);
  say(line(key));
  say('The API key, which is not shown again:');
  print(key.api_key ?? '(shown at its making only)');
}
