import { generateKeyPairSync } from 'node:crypto';
import { pino } from 'pino';
import { expect, it } from 'vitest';
import { approvalActions } from '#libs/contracts/approvals.ts';
import { ConfigError, loadConfig } from '#libs/service/config.ts';
import { appSettings, gatewayConfig, signInScopes } from './config.ts';

const base = {
  NODE_ENV: 'test',
  KAFKA_BROKERS: 'broker:9092',
  JWT_ISSUER: 'http://issuer.example',
  JWT_AUDIENCE: 'core-banking',
  JWKS_URL: 'http://issuer.example/jwks',
  API_KEY_PEPPER: 'a pepper of sixteen',
  GATEWAY_MAC_KEYS: 'a MAC key of at least thirty-two characters',
  WEBHOOK_SECRET_KEYS: 'a key of at least thirty-two characters',
  API_KEY_PUBLIC_KEYS: generateKeyPairSync('ed25519').publicKey.export({ type: 'spki', format: 'pem' }).toString(),
};
const dashboard = {
  DASHBOARD_CLIENT_ID: 'dashboard',
  DASHBOARD_CLIENT_SECRET: 'a secret of sixteen',
  SESSION_SECRET: 'a secret of sixteen',
  PUBLIC_URL: 'http://bank.example',
};

it('the dashboard is configured completely or not at all', () => {
  expect(loadConfig(gatewayConfig, base).PUBLIC_URL).toBeUndefined();
  expect(loadConfig(gatewayConfig, { ...base, ...dashboard })).toMatchObject({
    ...dashboard,
    SESSION_SECRET: [dashboard.SESSION_SECRET],
  });
});

it('all actions need a second person unless the settings say otherwise', () => {
  // contract: four-eyes-1
  expect(appSettings(loadConfig(gatewayConfig, base), pino({ level: 'silent' })).fourEyes).toMatchObject({
    actions: new Set(approvalActions),
    keys: false,
  });
});

it('a currency has one limit', () => {
  const limits = (FOUR_EYES_LIMITS: string) =>
    loadConfig(gatewayConfig, { ...base, FOUR_EYES_LIMITS }).FOUR_EYES_LIMITS;
  expect(limits('KES:1000000, USD:10.50')).toEqual(
    new Map([
      ['KES', '1000000'],
      ['USD', '10.50'],
    ]),
  );
  for (const wrong of ['USD:1 USD:9999', 'USD:-1', 'USD:1e9', 'USD:0.001', 'XXL:1', 'USD'])
    expect(() => limits(wrong)).toThrow(/FOUR_EYES_LIMITS: must be currencies with amounts/);
});

it('roles have existing scopes, and need a named claim', () => {
  const roles = (JWT_ROLE_SCOPES: string, JWT_SCOPES_CLAIM: string | undefined = 'roles') =>
    loadConfig(gatewayConfig, { ...base, JWT_SCOPES_CLAIM, JWT_ROLE_SCOPES }).JWT_ROLE_SCOPES;
  expect(roles('teller = clients:read transactions:write; auditor=books:read;')).toEqual(
    new Map([
      ['teller', ['clients:read', 'transactions:write']],
      ['auditor', ['books:read']],
    ]),
  );
  for (const wrong of ['teller=clients:reed', '=clients:read', 'teller', 'teller='])
    expect(() => roles(wrong)).toThrow(/JWT_ROLE_SCOPES: must be role=/);
  expect(() => loadConfig(gatewayConfig, { ...base, JWT_ROLE_SCOPES: 'teller=clients:read' })).toThrow(
    'needs JWT_SCOPES_CLAIM',
  );
});

it('people sign in with the scopes of the bank, unless a claim of the issuer has the permissions', () => {
  const scopesFor = (env: Record<string, string>) => signInScopes(loadConfig(gatewayConfig, { ...base, ...env }));
  expect(scopesFor({})).toMatch(/^openid profile clients:read .*webhooks:manage$/);
  expect(scopesFor({ JWT_SCOPES_CLAIM: 'roles' })).toBe('openid profile');
  const DASHBOARD_SCOPES = 'openid profile api://core-banking/.default';
  expect(scopesFor({ JWT_SCOPES_CLAIM: 'roles', DASHBOARD_SCOPES })).toBe(DASHBOARD_SCOPES);
  expect(() => scopesFor({ DASHBOARD_SCOPES: 'profile' })).toThrow(/DASHBOARD_SCOPES: must be openid/);
});

it.each([...Object.keys(dashboard), 'JWKS_URL'])('without %s startup names the missing settings', (missing) => {
  const attempt = () => loadConfig(gatewayConfig, { ...base, ...dashboard, [missing]: undefined });
  expect(attempt).toThrow(ConfigError);
  expect(attempt).toThrow(/must be set together/);
});
