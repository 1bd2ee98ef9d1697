import { createPrivateKey, createPublicKey, hash, type KeyObject, sign, verify } from 'node:crypto';

/**
 * accounts signs the states of API keys (Ed25519). Gateways have only public keys, so they can verify a state but
 * cannot forge one. A signature has the form `<key id>:<signature>`; the key id is derived from the public key.
 */
export const signatureHeader = 'signature';

/** The signed text of a count of API keys. */
export const countedText = (nonce: string, { keys, changes }: { keys: number; changes: number }): string =>
  `${nonce}: ${keys} API keys, changed ${changes} times`;

/** Returns a function that signs text. Throws if the key is not an Ed25519 key. */
export function createSigner(privateKeyPem: string): (value: string) => string {
  const key = ofEd25519(createPrivateKey(privateKeyPem));
  const id = publicKeyId(createPublicKey(key));
  return (value) => `${id}:${sign(null, Buffer.from(value), key).toString('base64url')}`;
}

/**
 * Returns a function that reports whether one of these keys signed the value. The PEMs are concatenated; during a
 * rotation there are several.
 */
export function createVerifier(
  publicKeysPem: string,
): (value: Buffer | null, signature: string | undefined) => boolean {
  const pems = publicKeysPem.match(/-----BEGIN PUBLIC KEY-----[^-]*-----END PUBLIC KEY-----/g) ?? [];
  if (pems.length === 0) throw new TypeError('no public key is given');
  const keys = new Map(pems.map((pem) => ofEd25519(createPublicKey(pem))).map((key) => [publicKeyId(key), key]));
  return (value, signature) => {
    const [id = '', text = ''] = signature?.split(':') ?? [];
    const key = keys.get(id);
    return value !== null && key !== undefined && verify(null, value, key, Buffer.from(text, 'base64url'));
  };
}

function ofEd25519(key: KeyObject): KeyObject {
  if (key.asymmetricKeyType !== 'ed25519')
    throw new TypeError(`a key of ${key.asymmetricKeyType} is not one of Ed25519`);
  return key;
}

function publicKeyId(publicKey: KeyObject): string {
  return hash('sha256', publicKey.export({ type: 'spki', format: 'der' })).slice(0, 8);
}
