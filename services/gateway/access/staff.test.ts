import { expect, test } from 'vitest';
import { ids, ok, testApp } from '../test/test-app.ts';
import { testToken, testTokens } from '../test/test-token.ts';

const account = `/accounts/${ids.account}/status-transitions`;

test('a staff user has a token that is bound to no client and is not the OAuth client itself; messages name it as staff', async () => {
  const made = await testApp(() => ok({ items: [] }), { tokens: testTokens });
  const read = async (headers: Record<string, string>) => (await made.app.inject({ url: account, headers })).statusCode;
  const tokens: [Record<string, unknown>, string | undefined][] = [
    [{ client_id: 'front-end', azp: 'front-end' }, 'true'],
    [{}, 'true'],
    [{ client_id: 'me' }, undefined],
    [{ azp: 'me' }, undefined],
    [{ client_id: 'front-end', bank_client_id: ids.client }, undefined],
  ];
  for (const [claims] of tokens)
    expect(await read({ authorization: `Bearer ${testToken({ scope: 'accounts:read', ...claims })}` })).toBe(200);
  expect(await read(made.keyHeader())).toBe(200);
  expect(made.sent.map(({ headers }) => headers['staff'])).toEqual([
    ...tokens.map(([, expected]) => expected),
    undefined,
  ]);
  await made.app.close();
});
