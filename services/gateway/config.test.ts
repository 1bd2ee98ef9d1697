import { expect, it } from 'vitest';
import { ConfigError, loadConfig } from '#libs/service/config.ts';
import { gatewayConfig } from './config.ts';

const base = {
  KAFKA_BROKERS: 'broker:9092',
  JWT_ISSUER: 'http://issuer.example',
  JWT_AUDIENCE: 'core-banking',
  JWKS_URL: 'http://issuer.example/jwks',
  API_KEY_PEPPER: 'a pepper of sixteen',
  IDEMPOTENCY_SECRET: 'a secret of sixteen',
};
const dashboard = { DASHBOARD_CLIENT_ID: 'dashboard', DASHBOARD_CLIENT_SECRET: 'a secret of sixteen', SESSION_SECRET: 'a secret of sixteen', PUBLIC_URL: 'http://bank.example' };

it('the dashboard is configured as a whole or not at all', () => {
  expect(loadConfig(gatewayConfig, base).PUBLIC_URL).toBeUndefined();
  expect(loadConfig(gatewayConfig, { ...base, ...dashboard })).toMatchObject(dashboard);
});

it.each([...Object.keys(dashboard), 'JWKS_URL'])('without %s the start says what belongs together', (missing) => {
  const attempt = () => loadConfig(gatewayConfig, { ...base, ...dashboard, [missing]: undefined });
  expect(attempt).toThrow(ConfigError);
  expect(attempt).toThrow(/belong together/);
});
