import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { ConfigError, loadConfig } from '#libs/service/config.ts';
import { dashboardConfig } from './config.ts';

const base = {
  BANK_MODE: 'trial',
  API_URL: 'http://gateway.example',
  PUBLIC_URL: 'http://staff.bank.example',
  JWT_ISSUER: 'http://issuer.example',
  DASHBOARD_CLIENT: 'dashboard:a secret of sixteen',
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

it('the logo is a small SVG or PNG, and the accent a colour', () => {
  const folder = mkdtempSync(join(tmpdir(), 'logo-'));
  const fileOf = (content: string | Buffer) => {
    const path = join(folder, 'logo');
    writeFileSync(path, content);
    return path;
  };
  const load = (env: Record<string, string>) => loadConfig(dashboardConfig, { ...base, ...env });
  try {
    expect(load({ BANK_LOGO: fileOf('<?xml version="1.0"?><svg xmlns="x"/>') }).BANK_LOGO?.type).toBe('image/svg+xml');
    const png = Buffer.from('89504e470d0a1a0a00', 'hex');
    expect(load({ BANK_LOGO: fileOf(png) }).BANK_LOGO).toEqual({ type: 'image/png', content: png });
    expect(() => load({ BANK_LOGO: fileOf('GIF89a') })).toThrow('BANK_LOGO: the file must be an SVG or a PNG');
    expect(() => load({ BANK_LOGO: fileOf(`<svg>${' '.repeat(65_536)}`) })).toThrow(
      'BANK_LOGO: the file must not exceed 64 KiB',
    );
    expect(() => load({ BANK_LOGO: join(folder, 'none') })).toThrow('BANK_LOGO: the file cannot be read');
    expect(load({ BANK_ACCENT: '#0B5d3b' }).BANK_ACCENT).toBe('#0B5d3b');
    expect(() => load({ BANK_ACCENT: 'green' })).toThrow('BANK_ACCENT: must be a colour of six digits');
  } finally {
    rmSync(folder, { recursive: true });
  }
});

it('the currency in the locale is one', () => {
  const locale = (BANK_LOCALE: string) => loadConfig(dashboardConfig, { ...base, BANK_LOCALE }).BANK_LOCALE;
  expect(locale('en-ke-u-cu-KES')).toBe('en-KE-u-cu-kes');
  expect(() => locale('en-KE-u-cu-xyz')).toThrow('BANK_LOCALE: must have an ISO 4217 code');
  expect(() => locale('nothing of the kind')).toThrow('BANK_LOCALE: must be a language');
});

it.each(Object.keys(base).filter((name) => name !== 'BANK_MODE'))(
  'without %s, startup names what is missing',
  (missing) => {
    const attempt = () => loadConfig(dashboardConfig, { ...base, [missing]: undefined });
    expect(attempt).toThrow(ConfigError);
    expect(attempt).toThrow(`${missing}: is missing`);
  },
);
