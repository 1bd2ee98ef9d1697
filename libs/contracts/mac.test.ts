import { createHash, createHmac, randomBytes } from 'node:crypto';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { MacKeys, type Signer } from './mac.ts';

const [first, second] = ['the first secret of the gateway', 'the second secret of the gateway'];
const keys = new MacKeys({ gateway: [first, second], accounts: ['a secret of accounts'] });
const headers = (): Record<string, string> => ({
  ce_id: 'txn_1',
  ce_type: 'a.command',
  actor: 'jwt:issuer|Zoë',
  deadline: '2026-01-01T00:00:30.000Z',
  'correlation-id': 'c',
  traceparent: 't',
});

function signed(value: string | Buffer | null = '{"amount":"5"}', signer: 'gateway' | 'accounts' = 'gateway') {
  const message = { headers: headers(), value };
  keys.sign(signer, message);
  return message;
}

test('the MAC is HMAC-SHA-256 of every covered header with its length, and of the bytes of the body', () => {
  fc.assert(
    fc.property(fc.string({ unit: 'grapheme' }), fc.uint8Array({ maxLength: 40_000 }), (actor, body) => {
      const message = { headers: { actor, 'reply-by': 'x' }, value: Buffer.from(body) };
      keys.sign('gateway', message as never);
      const key = createHash('sha256').update(first).digest();
      const right = createHmac('sha256', key)
        .update(`message\n5:actor${actor.length}:${actor}\n`)
        .update(body)
        .digest('base64url');
      expect((message.headers as Record<string, string>)['mac']?.split(':')[1]).toBe(right);
    }),
  );
});

test('a text body and its bytes have the same MAC; a missing body and an empty one do not', () => {
  expect(signed('{"name":"Zoë"}').headers).toEqual(signed(Buffer.from('{"name":"Zoë"}')).headers);
  expect(signed(null).headers['mac']).not.toBe(signed('').headers['mac']);
});

test('the MAC identifies the signer; a body of any size is signed', () => {
  expect(keys.verifySigner(signed())).toBe('gateway');
  expect(keys.verifySigner(signed(null, 'accounts'))).toBe('accounts');
  expect(keys.verifySigner(signed(randomBytes(1_000_000)))).toBe('gateway');
});

test('any change of body, headers, header names, signer, or MAC is detected', () => {
  const message = signed();
  const changes: Record<string, string>[] = [
    { ce_id: 'txn_2' },
    { actor: 'jwt:issuer|Zoe' },
    { deadline: '2027-01-01T00:00:30.000Z' },
    { staff: 'true' },
    { 'bound-client-id': 'cli_1' },
    { mac: '' },
    { mac: 'gateway' },
    { mac: message.headers['mac']?.replace('gateway', 'accounts') ?? '' },
    { mac: `${message.headers['mac']?.split(':')[0]}:` },
  ];
  for (const change of changes)
    expect(
      keys.verifySigner({ ...message, headers: { ...message.headers, ...change } }),
      JSON.stringify(change),
    ).toBeUndefined();
  const { actor: _, ...without } = message.headers;
  expect(keys.verifySigner({ ...message, headers: without })).toBeUndefined();
  const { mac: _mac, ...unsigned } = message.headers;
  expect(keys.verifySigner({ ...message, headers: unsigned })).toBeUndefined();
  for (const value of ['{"amount":"6"}', '', null]) expect(keys.verifySigner({ ...message, value })).toBeUndefined();
  expect(
    keys.verifySigner({ headers: { ...message.headers, ce_type: 'a.commandactor' }, value: message.value }),
  ).toBeUndefined();
});

test('reply topic, trace, and headers added to dead letters may change in transit', () => {
  const {
    headers: { 'correlation-id': _, ...kept },
    value,
  } = signed();
  const onTheWay = {
    'reply-topic': 'replies',
    'reply-partition': '3',
    'reply-by': 'soon',
    traceparent: 'another',
    baggage: 'b',
    'dlq-code': 'poison',
  };
  expect(keys.verifySigner({ headers: { ...kept, ...onTheWay }, value })).toBe('gateway');
});

test('during a rotation both keys are accepted, and the first one signs', () => {
  const message = signed();
  const rotated = new MacKeys({ gateway: [second, first] });
  expect(rotated.verifySigner(message)).toBe('gateway');
  const later = { headers: headers(), value: message.value };
  rotated.sign('gateway', later);
  expect(later.headers['mac']).not.toBe(message.headers['mac']);
  expect(keys.verifySigner(later)).toBe('gateway');
  expect(new MacKeys({ gateway: [second] }).verifySigner(message)).toBeUndefined();
  expect(new MacKeys({ accounts: [first] }).verifySigner(message)).toBeUndefined();
});

test('what had been decided is signed with the new deadline', () => {
  const message = signed();
  const deadline = '2027-01-01T00:00:00.000Z';
  const renewed = keys.renewed(message.headers, deadline, 'insufficient_funds');
  const { 'decided-before': _, ...without } = renewed;
  expect(keys.verifySigner({ ...message, headers: renewed })).toBe('gateway');
  expect(keys.renewal(renewed)).toEqual({ deadline, decided: 'insufficient_funds' });
  expect(keys.renewal({ ...renewed, 'decided-before': 'inactive_account' })).toBeNull();
  expect(keys.renewal(without)).toBeNull();
  expect(keys.renewal({ ...keys.renewed(message.headers, deadline), 'decided-before': 'x' })).toBeNull();
  expect(keys.renewal(keys.renewed(renewed, deadline))).toEqual({ deadline });
});

test('only accounts can renew the deadline of a message, and only of that message', () => {
  const message = signed();
  const renewed = keys.renewed(message.headers, '2027-01-01T00:00:00.000Z');
  expect(keys.verifySigner({ ...message, headers: renewed })).toBe('gateway');
  expect([keys.renewal(message.headers), keys.renewal(renewed)]).toEqual([
    undefined,
    { deadline: '2027-01-01T00:00:00.000Z' },
  ]);
  expect(keys.renewal({ ...renewed, 'renewed-deadline': '2028-01-01T00:00:00.000Z' })).toBeNull();
  expect(keys.renewal({ ...renewed, mac: signed('{}').headers['mac'] ?? '' })).toBeNull();
  expect(keys.renewal({ ...renewed, 'renewal-mac': message.headers['mac'] ?? '' })).toBeNull();
  expect(() => new MacKeys({ gateway: [first] }).renewed(message.headers, 'x')).toThrow('no MAC key of accounts');
});

test('a key that is missing is told apart from a wrong MAC, for services whose keys this process has', () => {
  const message = signed();
  const name = message.headers['mac']?.split(':')[0] ?? '';
  const missing = (known: Partial<Record<Signer, string[]>>, mac = message.headers['mac']) =>
    new MacKeys(known).missingKey(mac === undefined ? {} : { ...message.headers, mac });
  expect(missing({ gateway: [second] })).toEqual({ signer: 'gateway', name });
  expect(missing({ gateway: [second, first] }, `${name}:wrong`)).toBeUndefined();
  expect(missing({ accounts: [first] })).toBeUndefined();
  expect(missing({ gateway: [second, `refused:${name}`] })).toBeUndefined();
  const malformed = ['', 'gateway', `${name}`, 'gateway/0123456:x', 'gateway/01234567', 'nobody/01234567:x'];
  for (const mac of malformed) expect(missing({ gateway: [second] }, mac), mac).toBeUndefined();
});

test('a refused key neither signs nor verifies', () => {
  const name = signed().headers['mac']?.split(':')[0];
  const refusing = new MacKeys({ gateway: [`refused:${name}`, second] });
  const message = { headers: headers(), value: null };
  refusing.sign('gateway', message);
  expect([refusing.verifySigner(message), refusing.verifySigner(signed())]).toEqual(['gateway', undefined]);
});

test('the key of a renewed deadline can be missing too', () => {
  const renewed = keys.renewed(signed().headers, '2027-01-01T00:00:00.000Z');
  const others = new MacKeys({ gateway: [first], accounts: ['another key of accounts, for this test'] });
  expect([others.missingKey(renewed), keys.missingKey(renewed, 'renewal')]).toEqual([undefined, undefined]);
  expect(others.missingKey(renewed, 'renewal')?.signer).toBe('accounts');
});
