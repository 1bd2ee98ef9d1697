import { z } from 'zod';
import { MacKeys, refusedKey, type Signer } from '#libs/contracts/mac.ts';
import { createSigner, createVerifier } from '#libs/contracts/signature.ts';
import { list, pem, works } from './config.ts';

/** The keys by which services authenticate each other's messages (docs/security.md). */

const minLength = 32;

const tooShort = `must have at least ${minLength} characters; create one with: openssl rand -hex 32`;
const secret = z.string().min(minLength, tooShort);
const macKey = z.string().refine((key) => key.length >= minLength || refusedKey.test(key), tooShort);
const secrets = list
  .pipe(z.array(secret).min(1, 'must contain at least one key'))
  .meta({ title: 'secrets, separated by commas' });

/** The current secret and, during a rotation, the previous one. */
export const rotatedSecret = list
  .pipe(
    z
      .array(z.string().min(16, 'must have at least 16 characters'))
      .min(1, 'names no secret')
      .max(2, 'must be one secret, or two: the new one and the one before it'),
  )
  .meta({ title: 'secret, or two separated by a comma' });

export const pepperConfig = {
  API_KEY_PEPPER: rotatedSecret.describe(
    'Secret for hashing API keys, the same for all gateways. Of two, the first one hashes new keys, and keys hashed with either work (docs/operations.md)',
  ),
};

const macKeysSetting = (service: string) =>
  list
    .pipe(z.array(macKey))
    .refine((keys) => keys.some((key) => !refusedKey.test(key)), 'must contain at least one key')
    .meta({ title: 'secrets, separated by commas' })
    .describe(
      `Keys of the MACs of messages by ${service}: the first one signs, all are accepted, except that refused:<name of a key> refuses a key (docs/operations.md, Rotating secrets)`,
    );

/** For services that read commands. The gateway has only its own key. */
export const macConfig = {
  GATEWAY_MAC_KEYS: macKeysSetting('the gateways'),
  ACCOUNTS_MAC_KEYS: macKeysSetting('accounts'),
  LEDGER_MAC_KEYS: macKeysSetting('the ledgers'),
};

/** For accounts, which stores the audit records of webhooks. */
export const webhooksMac = { WEBHOOKS_MAC_KEYS: macKeysSetting('webhooks') };
/** For webhooks, which receives commands from gateways and redriven ones from accounts. */
export const webhooksMacConfig = {
  GATEWAY_MAC_KEYS: macConfig.GATEWAY_MAC_KEYS,
  ACCOUNTS_MAC_KEYS: macConfig.ACCOUNTS_MAC_KEYS,
  ...webhooksMac,
};

type MacConfig = typeof macConfig & typeof webhooksMac;
const variables: Record<Signer, keyof MacConfig> = {
  gateway: 'GATEWAY_MAC_KEYS',
  accounts: 'ACCOUNTS_MAC_KEYS',
  ledger: 'LEDGER_MAC_KEYS',
  webhooks: 'WEBHOOKS_MAC_KEYS',
};

export function macKeys(config: Partial<z.output<z.ZodObject<MacConfig>>>): MacKeys {
  const known = Object.entries(variables).map(([signer, name]) => [signer, config[name] ?? []]);
  return new MacKeys(Object.fromEntries(known) as Record<Signer, string[]>);
}

/** For processes that write the states of API keys. */
export const keySigningConfig = {
  API_KEY_SIGNING_KEY: pem('PRIVATE KEY')
    .refine(works(createSigner), 'is not a private key of Ed25519; create one with: openssl genpkey -algorithm ed25519')
    .describe(
      'PEM of the private key with which accounts signs the states of API keys; usually given as API_KEY_SIGNING_KEY_FILE',
    ),
};

/** For gateways, which generate the secrets of webhooks, and for webhooks, which signs with them. */
export const secretKeysConfig = {
  WEBHOOK_SECRET_KEYS: secrets.describe(
    'Keys for sealing the secrets of webhooks: the first one seals, all can open (docs/webhooks.md)',
  ),
};

export const keyVerifyingConfig = {
  API_KEY_PUBLIC_KEYS: pem('PUBLIC KEY')
    .refine(works(createVerifier), 'must contain only public keys of Ed25519; create them with: openssl pkey -pubout')
    .describe(
      'PEM of the public key of API_KEY_SIGNING_KEY. States of API keys without a valid signature are ignored. During a rotation, several concatenated',
    ),
};
