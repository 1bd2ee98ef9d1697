import { z } from 'zod';
import { money } from './money.ts';
import { type EndpointRows, field, type Meanings, meaning, message } from './subject.ts';

/** The trial balance, and Teller and Vault (contract: double-entry). */

const trialBalanceSchema = z
  .object({
    currency: z.string(),
    debit_total: money,
    credit_total: money,
    assets: money,
    liabilities: money,
    difference: money,
  })
  .meta({ id: 'TrialBalance' });

export type TrialBalance = z.infer<typeof trialBalanceSchema>;

export const systemAccountSchema = z
  .object({
    account_id: z.string(),
    account_number: z.string(),
    kind: z.enum(['Teller', 'Vault']),
    currency: z.string(),
    balance: money,
    slots: z.array(
      z
        .object({ account_id: z.string(), account_number: z.string(), balance: money })
        .meta({ id: 'SystemAccountSlot' }),
    ),
  })
  .meta({ id: 'SystemAccount' });
export type SystemAccount = z.infer<typeof systemAccountSchema>;

export const bookEndpoints = {
  get_trial_balance: {
    route: 'GET /admin/trial-balance',
    summary: 'Get the trial balance per currency',
    scope: 'books:read',
    query: z.strictObject({ on: field.day.optional() }),
    description: 'With `on`, by value date at the end of that day.',
    shape: 'list',
    answers: { dollars: { debit_total: 125.5, credit_total: 125.5, assets: 125.5, liabilities: 125.5, difference: 0 } },
  },
  get_system_accounts: {
    route: 'GET /admin/system-accounts',
    summary: 'Get Teller and Vault per currency',
    scope: 'books:read',
    shape: 'list',
    answers: { vault: { account_number: 'VLT-USD', kind: 'Vault', slots: [{ account_number: 'VLT-USD/0' }] } },
  },
} satisfies EndpointRows;

export const bookMessages = {
  get_trial_balance: message.ledger.query({ on: field.day.optional() }, z.array(trialBalanceSchema)),
  get_system_accounts: message.ledger.query({}, z.array(systemAccountSchema)),
};

export const bookMeanings = {
  fields: {
    'TrialBalance.debit_total': `Sum of all DR entries, ${meaning.inUnits}`,
    'TrialBalance.credit_total': `Sum of all CR entries, ${meaning.inUnits}`,
    assets: `Teller, Vault, and outstanding loans, ${meaning.inUnits}`,
    liabilities: `What the bank owes its clients, ${meaning.inUnits}`,
    'get_trial_balance.on': 'By value date at the end of this day of the bank, not a future one; default: now',
    difference: `Debits minus credits, ${meaning.inUnits}: 0 if the books balance`,
    kind: 'Teller or Vault',
    slots: 'The slots of the account, each with its own entries',
  },
} satisfies Meanings;
