import { type Command, Option } from 'commander';
import type { Bank, Client } from '../clients/typescript/index.ts';
import { amountOf, money } from './accounts.ts';
import { jsonOption, openBank, print, printJson } from './api.ts';

interface ClientOptions {
  firstName?: string;
  lastName?: string;
  companyName?: string;
  registrationNumber?: string;
  email: string;
  phone: string;
  address?: string;
  externalId?: string;
  key?: string;
  json?: true;
}

interface AccountOptions {
  type: 'Savings' | 'Checking' | 'Current' | 'Loan';
  currency: string;
  initialDeposit?: number;
  number?: string;
  externalId?: string;
  key?: string;
  json?: true;
}

const key = () => new Option('--key <text>', 'Idempotency-Key: the same command with the same key is done once');

/** `bank client open`, `bank account open`. */
export function addOpening(program: Command): void {
  program
    .command('client')
    .description('Clients (scope clients:write)')
    .command('open')
    .description(
      'Take on a client: a person by --first-name and --last-name, a company by --company-name and --registration-number',
    )
    .option('--first-name <text>')
    .option('--last-name <text>')
    .option('--company-name <text>')
    .option('--registration-number <text>')
    .requiredOption('--email <address>')
    .requiredOption('--phone <number>', 'contact number, such as +254700000001')
    .option('--address <text>')
    .option('--external-id <text>', 'your own name for the client')
    .addOption(key())
    .addOption(jsonOption())
    .addHelpText(
      'after',
      '\nExample:\n  bank client open --first-name Amina --last-name Otieno --email amina@example.org --phone +254700000001',
    )
    .action(async ({ json: asJson, key: idempotencyKey, ...options }: ClientOptions) => {
      const client = await openBank().createClient(
        clientOf(options),
        idempotencyKey === undefined ? {} : { idempotencyKey },
      );
      if (asJson) return printJson(client);
      print(clientLine(client));
    });

  program
    .command('account')
    .description('Accounts (scope accounts:write)')
    .command('open <client_id>')
    .description('Open an account for a client')
    .addOption(
      new Option('--type <type>', 'what it is').choices(['Savings', 'Checking', 'Current', 'Loan']).default('Savings'),
    )
    .requiredOption('--currency <code>', 'ISO 4217, such as KES')
    .option('--initial-deposit <amount>', 'cash paid in at once; of a Loan, paid out (transactions:write)', amountOf)
    .option('--number <number>', 'the number that it has had elsewhere (accounts:import)')
    .option('--external-id <text>', 'your own name for the account')
    .addOption(key())
    .addOption(jsonOption())
    .addHelpText('after', '\nExample:\n  bank account open cli_… --type Savings --currency KES --initial-deposit 1500')
    .action(
      async (
        client_id: string,
        { type, currency, initialDeposit, number, externalId, key: idempotencyKey, json: asJson }: AccountOptions,
      ) => {
        const opening = {
          client_id,
          account_type: type,
          currency,
          initial_deposit: initialDeposit,
          account_number: number,
          external_id: externalId,
        };
        const account = await openBank().openAccount(opening, idempotencyKey === undefined ? {} : { idempotencyKey });
        if (asJson) return printJson(account);
        print(accountLine(account));
      },
    );
}

/** What is missing or of the other kind the bank says, by name. */
function clientOf({
  firstName,
  lastName,
  companyName,
  registrationNumber,
  email,
  phone,
  address,
  externalId,
}: ClientOptions): Parameters<Bank['createClient']>[0] {
  const common = { email, contact_number: phone, address, external_id: externalId };
  const names = {
    first_name: firstName,
    last_name: lastName,
    company_name: companyName,
    registration_number: registrationNumber,
  };
  const client_type = companyName === undefined && registrationNumber === undefined ? 'Retail' : 'Corporate';
  return { client_type, ...names, ...common } as Parameters<Bank['createClient']>[0];
}

export function clientLine(client: Client): string {
  const name =
    client.client_type === 'Corporate'
      ? `${client.company_name} (${client.registration_number})`
      : `${client.first_name} ${client.last_name}`;
  return [client.client_id, client.client_type, name, client.email, client.contact_number].join('  ');
}

export function accountLine({
  account_id,
  account_number,
  account_type,
  status,
  balance,
  currency,
}: Awaited<ReturnType<Bank['getAccount']>>): string {
  return [account_id, account_number, account_type, status, money(balance, currency)].join('  ');
}
