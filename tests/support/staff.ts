import { createHmac } from 'node:crypto';
import { scopes } from '#libs/contracts/scopes.ts';
import { AUDIENCE, MAIN_CLIENT } from '../../tools/local/bank.ts';
import type { Bank } from './bank.ts';

/** With this in its `env`, a bank accepts tokens of people whom the local identity provider does not know. */
export const staffEnv = {
  JWT_HS256_SECRET: 'signs tokens of people, in tests only',
  JWT_WHOLE_BANK_CLIENTS: `front-end,${MAIN_CLIENT}`,
};

const part = (value: object) => Buffer.from(JSON.stringify(value)).toString('base64url');

/** Returns the token of a person who signed in through a front end. */
export function staffToken(bank: Pick<Bank, 'issuer'>, sub: string, claims: Record<string, unknown> = {}): string {
  const iat = Math.floor(Date.now() / 1000);
  const signed = `${part({ alg: 'HS256', typ: 'JWT' })}.${part({ iss: bank.issuer, aud: AUDIENCE, sub, iat, exp: iat + 3600, scope: scopes.join(' '), client_id: 'front-end', azp: 'front-end', ...claims })}`;
  return `${signed}.${createHmac('sha256', staffEnv.JWT_HS256_SECRET).update(signed).digest('base64url')}`;
}
