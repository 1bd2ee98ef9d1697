import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { scopes } from '#libs/contracts/scopes.ts';
import { signedToken, testKey } from '#services/gateway/test/test-token.ts';
import { AUDIENCE, MAIN_CLIENT } from '../../tools/local/bank.ts';
import type { Bank } from './bank.ts';

/** Publishes the key of the tests together with those of the local identity provider, if one runs. */
const issuersKeys = createServer(async (_, response) => {
  const issuer = process.env['TEST_ISSUER'];
  const known = issuer === undefined ? { keys: [] } : await (await fetch(`${issuer}/jwks`)).json();
  response.end(JSON.stringify({ keys: [testKey, ...(known as { keys: object[] }).keys] }));
}).listen(0, '127.0.0.1');
await once(issuersKeys, 'listening');
issuersKeys.unref();

/** With this in its `env`, a bank accepts tokens of people whom the local identity provider does not know. */
export const staffEnv = {
  JWKS_URL: `http://127.0.0.1:${(issuersKeys.address() as AddressInfo).port}`,
  JWT_WHOLE_BANK_CLIENTS: `front-end,${MAIN_CLIENT}`,
};

/** Returns the token of a person who signed in through a front end. */
export function staffToken(bank: Pick<Bank, 'issuer'>, sub: string, claims: Record<string, unknown> = {}): string {
  const iat = Math.floor(Date.now() / 1000);
  const claimed = { scope: scopes.join(' '), client_id: 'front-end', azp: 'front-end', ...claims };
  return signedToken({ iss: bank.issuer, aud: AUDIENCE, sub, iat, exp: iat + 3600, ...claimed });
}
