import { type Command, Option } from 'commander';
import type { Bank, Client } from '../clients/typescript/index.ts';
import { money, parseAmount, resolveAccountId } from './accounts.ts';
import { answer, callOptions, jsonOption, keyOption, type Names, openBank, toNames, withNames } from './api.ts';

interface ClientOptions extends Names {
  firstName?: string;
  lastName?: string;
  companyName?: string;
  registrationNumber?: string;
  email?: string;
  phone?: string;
  address?: string;
  ussdPhone?: string;
  ussdStatus?: 'active' | 'inactive';
  key?: string;
  json?: true;
}

interface AccountOptions extends Names {
  type: 'Savings' | 'Checking' | 'Current' | 'Loan';
  currency: string;
  initialDeposit?: number;
  number?: string;
  key?: string;
  json?: true;
}

interface StatusOptions {
  reason?: 'fraud' | 'legal' | 'customer_request' | 'deceased' | 'other';
  note?: string;
  key?: string;
  json?: true;
}

interface ListOptions {
  email?: string;
  ussdPhone?: string;
  externalId?: string;
  q?: string;
  json?: true;
}

/** `bank client open|change|list`. */
export function addClients(clients: Command): void {
  withDetails(clients.command('open'))
    .description(
      'Create a client: a person with --first-name and --last-name, or a company with --company-name and --registration-number',
    )
    .addHelpText(
      'after',
      '\nExample:\n  bank client open --first-name Amina --last-name Otieno --email amina@example.org --phone +254700000001',
    )
    .addOption(keyOption())
    .action(async (options: ClientOptions) => {
      const isCompany = options.companyName !== undefined || options.registrationNumber !== undefined;
      // The bank names missing fields and fields of the other client type.
      const body = { client_type: isCompany ? 'Corporate' : 'Retail', ...clientDetails(options) };
      const client = await openBank().createClient(body as Parameters<Bank['createClient']>[0], callOptions(options));
      answer(options, client, clientLine(client));
    });
  withDetails(clients.command('change <client_id>'))
    .description('Change the given fields of a client; the others stay as they are')
    .addHelpText('after', '\nExample:\n  bank client change cli_… --phone +254700000002 --metadata branch=Mombasa')
    .action(async (client_id: string, options: ClientOptions) => {
      const client = await openBank().updateClient({ client_id, ...clientDetails(options) });
      answer(options, client, clientLine(client));
    });
  clients
    .command('list')
    .description('List the clients that match every given filter, newest first, at most 100')
    .option('--email <address>', 'ignoring case')
    .option('--ussd-phone <number>', 'USSD phone number')
    .option('--external-id <text>', 'your own identifier')
    .option('--q <words>', 'words of the name, in any order; beginnings of words suffice')
    .addOption(jsonOption())
    .addHelpText('after', '\nExample:\n  bank client list --q "amina oti"')
    .action(async ({ email, ussdPhone: ussd_phone, externalId: external_id, q, ...options }: ListOptions) => {
      const found = await openBank().listClients({ email, ussd_phone, external_id, q }).toArray(100);
      answer(options, found, ...(found.length === 0 ? ['none'] : found.map(clientLine)));
    });
}

/** `bank account open|status`. */
export function addAccounts(accounts: Command): void {
  withNames(accounts.command('open <client_id>'))
    .description('Open an account for a client')
    .addOption(
      new Option('--type <type>', 'type of account')
        .choices(['Savings', 'Checking', 'Current', 'Loan'])
        .default('Savings'),
    )
    .requiredOption('--currency <code>', 'ISO 4217, such as KES')
    .option(
      '--initial-deposit <amount>',
      'amount of the first deposit; for a Loan, the principal paid out (scope transactions:write)',
      parseAmount,
    )
    .option('--number <number>', 'account number from another system (scope accounts:import)')
    .addOption(keyOption())
    .addOption(jsonOption())
    .addHelpText('after', '\nExample:\n  bank account open cli_… --type Savings --currency KES --initial-deposit 1500')
    .action(async (client_id: string, options: AccountOptions) => {
      const { type: account_type, currency, initialDeposit: initial_deposit, number: account_number } = options;
      const opening = { client_id, account_type, currency, initial_deposit, account_number, ...toNames(options) };
      const account = await openBank().openAccount(opening, callOptions(options));
      answer(options, account, accountLine(account));
    });
  accounts
    .command('status')
    .description('Activate, deactivate or freeze an account (scope accounts:status)')
    .argument('<account>', 'its number, such as SAV-1234567897, or its id')
    .argument('<status>', 'Active, Inactive or Frozen')
    .addOption(
      new Option('--reason <reason>', 'required for Frozen').choices([
        'fraud',
        'legal',
        'customer_request',
        'deceased',
        'other',
      ]),
    )
    .option('--note <text>', 'note for the status history')
    .addOption(keyOption())
    .addOption(jsonOption())
    .addHelpText('after', '\nExample:\n  bank account status SAV-1234567897 Frozen --reason fraud')
    .action(async (name: string, status: 'Active' | 'Inactive' | 'Frozen', options: StatusOptions) => {
      const bank = openBank();
      const { reason, note } = options;
      const account_id = await resolveAccountId(bank, name);
      const account = await bank.changeAccountStatus({ account_id, status, reason, note }, callOptions(options));
      answer(options, account, accountLine(account));
    });
}

function withDetails(command: Command): Command {
  return withNames(
    command
      .option('--first-name <text>')
      .option('--last-name <text>')
      .option('--company-name <text>')
      .option('--registration-number <text>')
      .option('--email <address>')
      .option('--phone <number>', 'contact number, such as +254700000001')
      .option('--address <text>')
      .option('--ussd-phone <number>', 'USSD phone number of a person')
      .addOption(new Option('--ussd-status <status>', 'USSD status of a person').choices(['active', 'inactive'])),
  ).addOption(jsonOption());
}

const clientDetails = (options: ClientOptions) => ({
  first_name: options.firstName,
  last_name: options.lastName,
  company_name: options.companyName,
  registration_number: options.registrationNumber,
  email: options.email,
  contact_number: options.phone,
  address: options.address,
  ussd_phone_number: options.ussdPhone,
  ussd_status: options.ussdStatus,
  ...toNames(options),
});

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
  available_balance = balance,
  currency,
}: Awaited<ReturnType<Bank['getAccount']>>): string {
  const available = available_balance === balance ? [] : [`available ${money(available_balance, currency)}`];
  return [account_id, account_number, account_type, status, money(balance, currency), ...available].join('  ');
}
