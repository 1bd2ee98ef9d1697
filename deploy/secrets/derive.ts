import { createPrivateKey, createPublicKey, hkdfSync } from 'node:crypto';

/** The processes that have secrets of their own. */
export const readers = ['gateway', 'dashboard', 'ledger', 'accounts', 'webhooks'] as const;
export type Reader = (typeof readers)[number];

/** The secrets of each process, by the names of its variables. */
export type Secrets = Record<Reader, Record<string, string>>;

/** The header of an Ed25519 private key in PKCS #8; its 32 bytes follow (RFC 8410). */
const ed25519 = Buffer.from('302e020100300506032b657004220420', 'hex');

/**
 * Derives everything random that a bank needs from master keys (HKDF-SHA-256, labelled by use), so that one text is
 * stored, backed up, and rotated: [old], [old, new], [new, old], [new], with a restart of all processes after each. The
 * first one signs, seals, hashes, and is the password that migrations set; what was made with the others is accepted. A
 * process must be given its own part only, never a master key. The same master keys give the same secrets in every version.
 */
export function deriveSecrets(masterKeys: readonly string[]): Secrets {
  const bytes = (use: string) =>
    masterKeys.map((key) => Buffer.from(hkdfSync('sha256', key, '', `core-banking ${use}`, 32)));
  const texts = (use: string, most = masterKeys.length) =>
    bytes(use)
      .slice(0, most)
      .map((key) => key.toString('hex'))
      .join();
  const signing = bytes('api key signing').map((seed) =>
    createPrivateKey({ key: Buffer.concat([ed25519, seed]), format: 'der', type: 'pkcs8' }),
  );
  const gateway = { GATEWAY_MAC_KEYS: texts('mac of gateway') };
  const accounts = { ACCOUNTS_MAC_KEYS: texts('mac of accounts') };
  const ledger = { LEDGER_MAC_KEYS: texts('mac of ledger') };
  const webhooks = { WEBHOOKS_MAC_KEYS: texts('mac of webhooks') };
  const sealing = { WEBHOOK_SECRET_KEYS: texts('sealing of webhook secrets') };
  const password = (service: string) => ({ DATABASE_PASSWORD: texts(`database password of ${service}`) });
  return {
    gateway: {
      ...gateway,
      ...sealing,
      API_KEY_PEPPER: texts('api key pepper', 2),
      API_KEY_PUBLIC_KEYS: signing
        .map((key) => createPublicKey(key).export({ type: 'spki', format: 'pem' }).toString())
        .join(''),
    },
    dashboard: { SESSION_SECRET: texts('dashboard sessions', 2) },
    ledger: { ...gateway, ...accounts, ...ledger, ...password('ledger') },
    accounts: {
      ...gateway,
      ...accounts,
      ...ledger,
      ...webhooks,
      ...password('accounts'),
      API_KEY_SIGNING_KEY: signing[0]?.export({ type: 'pkcs8', format: 'pem' }).toString() ?? '',
    },
    webhooks: { ...gateway, ...accounts, ...webhooks, ...sealing, ...password('webhooks') },
  };
}
