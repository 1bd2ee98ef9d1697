import { expect, it } from 'vitest';
import { ConfigError, loadConfig } from '#libs/service/config.ts';
import { dashboardConfig } from './config.ts';

const base = {
  NODE_ENV: 'test',
  API_URL: 'http://gateway.example',
  PUBLIC_URL: 'http://staff.bank.example',
  JWT_ISSUER: 'http://issuer.example',
  DASHBOARD_CLIENT_ID: 'dashboard',
  DASHBOARD_CLIENT_SECRET: 'a secret of sixteen',
  SESSION_SECRET: 'another secret of sixteen',
};

it('people sign in with the scopes of the bank, unless the settings name others', () => {
  const scopesFor = (env: Record<string, string>) => loadConfig(dashboardConfig, { ...base, ...env }).DASHBOARD_SCOPES;
  expect(scopesFor({})).toMatch(/^openid profile clients:read .*webhooks:manage transactions:backdate( .*)?$/);
  const named = 'openid profile api://core-banking/.default';
  expect(scopesFor({ DASHBOARD_SCOPES: named })).toBe(named);
  expect(() => scopesFor({ DASHBOARD_SCOPES: 'profile' })).toThrow(/DASHBOARD_SCOPES: must be openid/);
});

it('no proxy is trusted by default, or with none', () => {
  const proxies = (TRUST_PROXY?: string) => loadConfig(dashboardConfig, { ...base, TRUST_PROXY }).TRUST_PROXY;
  expect([proxies(), proxies('none'), proxies('192.0.2.1, 192.0.2.2')]).toEqual([[], [], ['192.0.2.1', '192.0.2.2']]);
});

it.each(Object.keys(base).filter((name) => name !== 'NODE_ENV'))(
  'without %s, startup names what is missing',
  (missing) => {
    const attempt = () => loadConfig(dashboardConfig, { ...base, [missing]: undefined });
    expect(attempt).toThrow(ConfigError);
    expect(attempt).toThrow(`${missing}: is missing`);
  },
);
