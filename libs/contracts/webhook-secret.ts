import { createCipheriv, createDecipheriv, hash, randomBytes } from 'node:crypto';

export type SecretKeys = ReturnType<typeof createSecretKeys>;

const ivBytes = 12;
const tagBytes = 16;

export function newWebhookSecret(): string {
  return `whsec_${randomBytes(32).toString('base64')}`;
}

/**
 * Seals secrets of webhooks (Standard Webhooks 1.0: `whsec_` and base64). The gateway generates a secret and shows it
 * once. In messages and in the table it is sealed for its webhook (AES-256-GCM with a key from the configuration). The
 * first key seals; all keys can open. A sealed value is `<key id>:<iv, tag, and text in base64url>`.
 */
export function createSecretKeys(secrets: readonly string[]) {
  const keys = secrets.map((secret) => ({
    id: hash('sha256', `the id of this key ${secret}`).slice(0, 8),
    key: Buffer.from(hash('sha256', secret), 'hex'),
  }));
  const [current] = keys;
  if (!current) throw new TypeError('no key is given');
  return {
    seal(webhookId: string, secret: string): string {
      const iv = randomBytes(ivBytes);
      const cipher = createCipheriv('aes-256-gcm', current.key, iv).setAAD(Buffer.from(webhookId));
      const sealed = Buffer.concat([cipher.update(secret, 'utf8'), cipher.final()]);
      return `${current.id}:${Buffer.concat([iv, cipher.getAuthTag(), sealed]).toString('base64url')}`;
    },
    /** Returns the secret. Throws if none of the keys sealed it for this webhook. */
    open(webhookId: string, sealed: string): string {
      const [id, text = ''] = sealed.split(':');
      const found = keys.find((one) => one.id === id);
      if (!found) throw new TypeError(`the key ${id}, which sealed the secret of ${webhookId}, is not configured`);
      const bytes = Buffer.from(text, 'base64url');
      const [iv, tag] = [bytes.subarray(0, ivBytes), bytes.subarray(ivBytes, ivBytes + tagBytes)];
      const decipher = createDecipheriv('aes-256-gcm', found.key, iv, { authTagLength: tagBytes })
        .setAAD(Buffer.from(webhookId))
        .setAuthTag(tag);
      return Buffer.concat([decipher.update(bytes.subarray(ivBytes + tagBytes)), decipher.final()]).toString('utf8');
    },
    /** Values that the current key has sealed begin with this. */
    prefix: `${current.id}:`,
  };
}
