import { z } from 'zod';
import { scopes } from '#libs/contracts/scopes.ts';
import { bankConfig } from '#libs/service/bank-config.ts';
import { httpConfig, processConfig, url } from '#libs/service/config.ts';
import { rotatedSecret } from '#libs/service/signing.ts';
import { brandConfig } from './html/brand.ts';

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
  DASHBOARD_CLIENT: z
    .string()
    .regex(/^[^:]+:.{16,}$/, 'must be id:secret, with a secret of at least 16 characters')
    .transform((text) => ({ id: text.slice(0, text.indexOf(':')), secret: text.slice(text.indexOf(':') + 1) }))
    .meta({ title: 'id:secret' })
    .describe('The OAuth client with which people sign in; JWT_WHOLE_BANK_CLIENTS of the gateway must name its id'),
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
  ...bankConfig,
  ...brandConfig,
});
