import { generateKeyPairSync, sign } from 'node:crypto';
import { importSPKI } from 'jose';
import type { TokenOptions } from '../access/tokens.ts';

const { privateKey, publicKey } = generateKeyPairSync('ed25519');
const found = await importSPKI(publicKey.export({ type: 'spki', format: 'pem' }).toString(), 'EdDSA', {
  extractable: true,
});

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

/** Returns a token that is valid for five minutes. Claims that are undefined are omitted. */
export function testToken(claims: Record<string, unknown> = {}, header: Record<string, unknown> = {}): string {
  const now = Math.floor(Date.now() / 1000);
  const whole = { iss: testTokens.issuer, aud: testTokens.audience, sub: 'me', iat: now, exp: now + 300, ...claims };
  const signed = `${part({ alg: 'EdDSA', kid: 'test', typ: 'JWT', ...header })}.${part(whole)}`;
  return `${signed}.${sign(null, Buffer.from(signed), privateKey).toString('base64url')}`;
}
