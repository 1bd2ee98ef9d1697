import { createCipheriv, createDecipheriv, hkdfSync, randomBytes } from 'node:crypto';

const ivBytes = 12;
const tagBytes = 16;

/**
 * Encrypts and authenticates data that is stored in the browser: with AES-256-GCM under a separate key per purpose,
 * derived from a secret by HKDF, so that data sealed for one purpose cannot be opened for another. The first secret
 * seals and all of them can open, for rotation. No key id is needed, because only the right key can open.
 */
export function createSealer(secrets: readonly string[], purpose: string) {
  const keys = secrets.map((secret) =>
    Buffer.from(hkdfSync('sha256', secret, '', `core-banking dashboard ${purpose}`, 32)),
  );
  const [sealing] = keys;
  if (!sealing) throw new TypeError('a sealer needs a secret');
  return {
    /** Returns base64url with about 4/3 of the bytes plus 38. */
    seal(text: string): string {
      const iv = randomBytes(ivBytes);
      const cipher = createCipheriv('aes-256-gcm', sealing, iv, { authTagLength: tagBytes });
      const body = Buffer.concat([cipher.update(text, 'utf8'), cipher.final()]);
      return Buffer.concat([iv, cipher.getAuthTag(), body]).toString('base64url');
    },
    /** Returns undefined for anything that `seal` did not create or that was changed. */
    open(sealed: string): string | undefined {
      const bytes = Buffer.from(sealed, 'base64url');
      if (bytes.length < ivBytes + tagBytes) return undefined;
      for (const key of keys) {
        const text = openWith(key, bytes);
        if (text !== undefined) return text;
      }
      return undefined;
    },
  };
}

function openWith(key: Buffer, bytes: Buffer): string | undefined {
  const decipher = createDecipheriv('aes-256-gcm', key, bytes.subarray(0, ivBytes), { authTagLength: tagBytes });
  decipher.setAuthTag(bytes.subarray(ivBytes, ivBytes + tagBytes));
  try {
    return Buffer.concat([decipher.update(bytes.subarray(ivBytes + tagBytes)), decipher.final()]).toString();
  } catch {
    return undefined;
  }
}
