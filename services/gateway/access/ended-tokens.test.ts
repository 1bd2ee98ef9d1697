import { pino } from 'pino';
import { expect, it } from 'vitest';
import type { Signer } from '#libs/contracts/mac.ts';
import type { OutgoingMessage } from '#libs/kafka/publish/publish.ts';
import { testKeys } from '#libs/service/test/keys.ts';
import { createEndedTokens } from './ended-tokens.ts';

const second = 1000;

function signed<M extends { value: string | Buffer | null; headers: Record<string, string> }>(
  message: M,
  by: Signer = 'gateway',
): M {
  const made = { ...message, headers: { ...message.headers } };
  testKeys.sign(by, made);
  return made;
}

function setUp(publish?: () => Promise<void>) {
  const time = { ms: Date.parse('2026-01-02T03:04:05Z') };
  const sent: OutgoingMessage[] = [];
  const publisher = { publish: publish ?? (async (message: OutgoingMessage) => void sent.push(signed(message))) };
  const make = () =>
    createEndedTokens({
      publisher,
      keys: testKeys,
      prefix: '',
      maxLifetimeS: 3600,
      logger: pino({ level: 'silent' }),
      now: () => time.ms,
    });
  const testToken = (id: string, owner = 'jwt:issuer|ada|dashboard') => ({
    id,
    owner,
    issuedMs: time.ms,
    expiresMs: time.ms + 3600 * second,
  });
  const deliver = (to: ReturnType<typeof make>) => {
    for (const { key, value, headers } of sent) to.take(key ?? null, Buffer.from(value ?? ''), headers);
  };
  return { time, sent, make, testToken, deliver };
}

it('a token that was signed out has ended, here immediately and on other gateways by a message', async () => {
  const { make, testToken, deliver } = setUp();
  const [here, elsewhere] = [make(), make()];
  const [token, other] = [testToken('a'), testToken('b')];
  await here.end(token);
  expect([here.isEnded(token), here.isEnded(other), elsewhere.isEnded(token)]).toEqual([true, false, false]);
  deliver(elsewhere);
  expect([elsewhere.isEnded(token), elsewhere.isEnded(other)]).toEqual([true, false]);
});

it('a sign-in ends the earlier tokens of the person for that client, and no others; a late message changes nothing', async () => {
  const { time, sent, make, testToken, deliver } = setUp();
  const [here, elsewhere] = [make(), make()];
  const [first, eve, elsewhereSignedIn] = [
    testToken('a'),
    testToken('b', 'jwt:issuer|eve|dashboard'),
    testToken('c', 'jwt:issuer|ada|other'),
  ];
  time.ms += second;
  const next = testToken('d');
  await here.endEarlier(next);
  deliver(elsewhere);
  for (const gateway of [here, elsewhere])
    expect([first, eve, elsewhereSignedIn, next].map(gateway.isEnded)).toEqual([true, false, false, false]);
  sent.length = 0;
  await make().endEarlier(first);
  deliver(elsewhere);
  expect(elsewhere.isEnded(first)).toBe(true);
});

it('of two sign-ins in one second the last one published counts on all gateways', async () => {
  const { make, testToken, deliver } = setUp();
  const [here, elsewhere] = [make(), make()];
  const [first, second] = [testToken('a'), testToken('b')];
  await here.endEarlier(first);
  await elsewhere.endEarlier(second);
  for (const gateway of [here, elsewhere]) {
    deliver(gateway);
    expect([first, second].map(gateway.isEnded)).toEqual([true, false]);
  }
});

it('a record of a gateway before this version ends only what was issued earlier', () => {
  const { time, make, testToken } = setUp();
  const ended = make();
  const [token, owner] = [testToken('a'), 'jwt:issuer|ada|dashboard'];
  const before = new Date(time.ms).toISOString();
  const expires_at = new Date(time.ms + 3600 * second).toISOString();
  const { value, headers } = signed({ value: JSON.stringify({ key: owner, expires_at, before }), headers: {} });
  ended.take(owner, Buffer.from(value), headers);
  expect([ended.isEnded(token), ended.isEnded({ ...token, issuedMs: token.issuedMs - second })]).toEqual([false, true]);
});

it('a token is ended here although the broker does not accept the message', async () => {
  const { make, testToken } = setUp(() => Promise.reject(new Error('away')));
  const ended = make();
  await expect(ended.end(testToken('a'))).rejects.toThrow('away');
  expect(ended.isEnded(testToken('a'))).toBe(true);
});

it('tokens that expired by themselves are forgotten, and unreadable messages are ignored', () => {
  const { time, make, testToken } = setUp();
  const ended = make();
  const take = (key: string, text: string) => {
    const { value, headers } = signed({ value: text, headers: {} });
    ended.take(key, Buffer.from(value), headers);
  };
  const until = (key: string, ms: number) => JSON.stringify({ key, expires_at: new Date(time.ms + ms).toISOString() });
  take('a', until('a', second));
  take('b', '{"key":"b","expires_at":"soon"}');
  take('c', 'nonsense');
  ended.take('d', null, {});
  expect(['a', 'b', 'c', 'd'].map((id) => ended.isEnded(testToken(id)))).toEqual([true, false, false, false]);
  time.ms += 2 * second;
  take('e', until('e', second));
  expect(['a', 'e'].map((id) => ended.isEnded(testToken(id)))).toEqual([false, true]);
});

it('a message that no gateway has signed ends no token, nor does one that was signed for another', async () => {
  const { sent, make, testToken } = setUp();
  const [here, elsewhere] = [make(), make()];
  await here.end(testToken('mine'));
  const [real] = sent as [OutgoingMessage];
  const value = Buffer.from(real.value ?? '');
  const { mac: _, ...unsigned } = real.headers;
  elsewhere.take('mine', value, unsigned);
  elsewhere.take('mine', value, signed({ value, headers: {} }, 'ledger').headers);
  elsewhere.take('mine', Buffer.from(String(value).replace('mine', 'mime')), real.headers);
  elsewhere.take('yours', value, real.headers);
  expect(['mine', 'mime', 'yours'].map((id) => elsewhere.isEnded(testToken(id)))).toEqual([false, false, false]);
  elsewhere.take('mine', value, real.headers);
  expect(elsewhere.isEnded(testToken('mine'))).toBe(true);
});
