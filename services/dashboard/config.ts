import { z } from 'zod';
import { isCurrency } from '#libs/contracts/money.ts';
import { scopes } from '#libs/contracts/scopes.ts';
import { bankConfig } from '#libs/service/bank-config.ts';
import { httpConfig, processConfig, url } from '#libs/service/config.ts';
import { rotatedSecret } from '#libs/service/signing.ts';
import { brandConfig } from './html/brand.ts';

const secret = z.string().min(16, 'must have at least 16 characters');

export const dashboardConfig = z.object({
  ...processConfig,
  ...httpConfig,
  API_URL: url('http', 'https').describe(
    'URL of the REST API, as the dashboard reaches it. TRUST_PROXY of the gateway must name the address of the dashboard, so that limits and audit records have that of the browser',
  ),
  PUBLIC_URL: url('http', 'https').describe(
    'URL at which browsers reach the dashboard, such as https://staff.bank.example; the issuer must allow <PUBLIC_URL>/admin/callback as redirect URI',
  ),
  JWT_ISSUER: url('http', 'https').describe('The identity provider at which people sign in; that of the gateway'),
  DASHBOARD_CLIENT_ID: z
    .string()
    .min(1)
    .describe('The OAuth client with which people sign in; JWT_WHOLE_BANK_CLIENTS of the gateway must name it'),
  DASHBOARD_CLIENT_SECRET: secret.describe('Its secret'),
  DASHBOARD_SCOPES: z
    .string()
    .regex(/^openid( \S+)*$/, 'must be openid, and any others after it, separated by spaces')
    .default(['openid', 'profile', ...scopes].join(' '))
    .describe(
      'The scopes to request when people sign in; openid profile if the gateway reads permissions from another claim (JWT_SCOPES_CLAIM)',
    ),
  SESSION_SECRET: rotatedSecret.describe(
    'Secret from which the keys of session cookies are derived; the same for all dashboards. Of two, the first one seals and both can open; changing a single one signs everybody out',
  ),
  BANK_BRANCH: z.string().min(1).max(100).optional().describe('Branch in which the dashboard is used, on receipts'),
  BANK_CURRENCY: z
    .string()
    .refine(isCurrency, 'must be an ISO 4217 code, such as KES')
    .optional()
    .describe('Currency of most accounts, preset where a till or an account is opened'),
  ...bankConfig,
  ...brandConfig,
});
