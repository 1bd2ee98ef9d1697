import { createHmac } from 'node:crypto';
import type { TokenOptions } from '../access/tokens.ts';

/** A token issuer without a server. An app with these options accepts its tokens. */
const hs256Secret = 'a secret of more than thirty-two characters';
export const hs256Tokens: TokenOptions = {
  issuer: 'https://issuer.example',
  audience: 'core-banking',
  algorithms: ['RS256'],
  types: ['at+jwt', 'JWT'],
  keySet: undefined,
  hs256Secret,
  wholeBankClients: ['*'],
  maxLifetimeS: 3600,
};

const part = (value: object) => Buffer.from(JSON.stringify(value)).toString('base64url');

/** Returns a token that is valid for five minutes. Claims that are undefined are omitted. */
export function hs256Token(claims: Record<string, unknown> = {}, header: Record<string, unknown> = {}): string {
  const now = Math.floor(Date.now() / 1000);
  const whole = { iss: hs256Tokens.issuer, aud: hs256Tokens.audience, sub: 'me', iat: now, exp: now + 300, ...claims };
  const signed = `${part({ alg: 'HS256', typ: 'JWT', ...header })}.${part(whole)}`;
  return `${signed}.${createHmac('sha256', hs256Secret).update(signed).digest('base64url')}`;
}
