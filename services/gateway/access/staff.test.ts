import { createHmac } from 'node:crypto';
import { expect, test } from 'vitest';
import { ids, ok, samples, testApp } from '../test/test-app.ts';

const issuer = 'https://issuer.example';
const hs256Secret = 'a secret of more than thirty-two characters';
const part = (value: object) => Buffer.from(JSON.stringify(value)).toString('base64url');

function token(claims: Record<string, unknown>): string {
  const exp = Math.floor(Date.now() / 1000) + 300;
  const signed = `${part({ alg: 'HS256' })}.${part({ iss: issuer, aud: 'core-banking', sub: 'me', exp, scope: 'transactions:write', ...claims })}`;
  return `${signed}.${createHmac('sha256', hs256Secret).update(signed).digest('base64url')}`;
}

test('staff in person: a token bound to no client that is not the OAuth client itself; its messages say so', async () => {
  const made = await testApp(() => ok(samples.transaction), { tokens: { issuer, audience: 'core-banking', algorithms: ['RS256'], keySet: undefined, hs256Secret } });
  const payload = { account_id: ids.account, transaction_type: 'Deposit', amount: 25 };
  const post = async (headers: Record<string, string>) => (await made.app.inject({ method: 'POST', url: '/transactions', headers, payload })).statusCode;
  const tokens: [Record<string, unknown>, string | undefined][] = [
    [{ client_id: 'front-end', azp: 'front-end' }, 'true'],
    [{}, 'true'],
    [{ client_id: 'me' }, undefined],
    [{ azp: 'me' }, undefined],
    [{ client_id: 'front-end', bank_client_id: ids.client }, undefined],
  ];
  for (const [claims] of tokens) expect(await post({ authorization: `Bearer ${token(claims)}` })).toBe(201);
  expect(await post(made.keyHeader())).toBe(201);
  expect(made.sent.map(({ headers }) => headers['staff'])).toEqual([...tokens.map(([, expected]) => expected), undefined]);
  await made.app.close();
});
