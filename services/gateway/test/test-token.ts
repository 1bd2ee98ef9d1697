import { generateKeyPairSync, sign } from 'node:crypto';
import { type CryptoKey, importJWK } from 'jose';
import type { TokenOptions } from '../access/tokens.ts';

const { privateKey, publicKey } = generateKeyPairSync('ed25519');

/** The key that verifies the tokens of tests, as an issuer publishes it. */
export const testKey = { ...publicKey.export({ format: 'jwk' }), kid: 'test', use: 'sig', alg: 'EdDSA' };
const found = (await importJWK({ ...testKey, ext: true })) as CryptoKey;

/** A token issuer without a server. An app with these options accepts its tokens. */
export const testTokens: TokenOptions = {
  issuer: 'https://issuer.example',
  audience: 'core-banking',
  algorithms: ['EdDSA'],
  types: ['at+jwt', 'JWT'],
  keySet: { find: async () => found, current: () => 'the key' },
  wholeBankClients: ['*'],
  maxLifetimeS: 3600,
};

const part = (value: object) => Buffer.from(JSON.stringify(value)).toString('base64url');

/** Returns a token with these claims, signed with the key of tests. Claims that are undefined are omitted. */
export function signedToken(claims: object, header: object = {}): string {
  const signed = `${part({ alg: testKey.alg, kid: testKey.kid, typ: 'JWT', ...header })}.${part(claims)}`;
  return `${signed}.${sign(null, Buffer.from(signed), privateKey).toString('base64url')}`;
}

/** Returns a token that is valid for five minutes. */
export function testToken(claims: Record<string, unknown> = {}, header: Record<string, unknown> = {}): string {
  const now = Math.floor(Date.now() / 1000);
  const { issuer, audience } = testTokens;
  return signedToken({ iss: issuer, aud: audience, sub: 'me', iat: now, exp: now + 300, ...claims }, header);
}
