import { generateKeyPairSync } from 'node:crypto';
import { pino } from 'pino';
import { expect, it } from 'vitest';
import { approvalActions } from '#libs/contracts/approvals.ts';
import { loadConfig } from '#libs/service/config.ts';
import { appSettings, gatewayConfig } from './config.ts';

const base = {
  BANK_MODE: 'trial',
  KAFKA_BROKERS: 'broker:9092',
  JWT_ISSUER: 'http://issuer.example',
  JWT_AUDIENCE: 'core-banking',
  JWKS_URL: 'http://issuer.example/jwks',
  API_KEY_PEPPER: 'a pepper of sixteen',
  GATEWAY_MAC_KEYS: 'a MAC key of at least thirty-two characters',
  WEBHOOK_SECRET_KEYS: 'a key of at least thirty-two characters',
  API_KEY_PUBLIC_KEYS: generateKeyPairSync('ed25519').publicKey.export({ type: 'spki', format: 'pem' }).toString(),
};

it('all actions need a second person unless the settings say otherwise', () => {
  // contract: four-eyes-1
  expect(appSettings(loadConfig(gatewayConfig, base), pino({ level: 'silent' })).fourEyes).toMatchObject({
    actions: new Set(approvalActions),
    keys: false,
  });
});

it('actions are separated by commas or blanks, and a refusal says which there are', () => {
  const named = (FOUR_EYES: string) => loadConfig(gatewayConfig, { ...base, FOUR_EYES }).FOUR_EYES;
  for (const text of ['reverse,unfreeze', 'reverse unfreeze', 'reverse, unfreeze'])
    expect(named(text)).toEqual(['reverse', 'unfreeze']);
  expect(() => named('reverse;unfreeze')).toThrow(
    /FOUR_EYES: must be all, none, or some of reverse, .*, such as "reverse,unfreeze"; reverse;unfreeze is none of them/,
  );
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
