import { createHash, createPrivateKey, createPublicKey, type KeyObject, sign, verify } from 'node:crypto';

/**
 * The states of API keys are signed by accounts (Ed25519): a gateway, which only has public keys,
 * can check what a key may do, but nobody else can say it. A signature is `<id of the
 * key>:<signature>`; the id follows from the public key.
 */
export const signatureHeader = 'signature';

/** Signs what is published, as text. Throws where the key is none of Ed25519. */
export function createSigner(privateKeyPem: string): (value: string) => string {
  const key = ofEd25519(createPrivateKey(privateKeyPem));
  const id = idOf(createPublicKey(key));
  return (value) => `${id}:${sign(null, Buffer.from(value), key).toString('base64url')}`;
}

/** Whether a value has been signed by one of these keys: one PEM after the other, several while they are rotated. */
export function createVerifier(
  publicKeysPem: string,
): (value: Buffer | null, signature: string | undefined) => boolean {
  const pems = publicKeysPem.match(/-----BEGIN PUBLIC KEY-----[^-]*-----END PUBLIC KEY-----/g) ?? [];
  if (pems.length === 0) throw new TypeError('no public key is given');
  const keys = new Map(pems.map((pem) => ofEd25519(createPublicKey(pem))).map((key) => [idOf(key), key]));
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

function idOf(publicKey: KeyObject): string {
  return createHash('sha256')
    .update(publicKey.export({ type: 'spki', format: 'der' }))
    .digest('hex')
    .slice(0, 8);
}
