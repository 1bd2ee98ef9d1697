import { generateKeyPairSync } from 'node:crypto';
import { expect, test } from 'vitest';
import { createSigner, createVerifier } from './signature.ts';

const pair = () =>
  generateKeyPairSync('ed25519', {
    publicKeyEncoding: { type: 'spki', format: 'pem' },
    privateKeyEncoding: { type: 'pkcs8', format: 'pem' },
  });
const foreign = generateKeyPairSync('x25519', {
  publicKeyEncoding: { type: 'spki', format: 'pem' },
  privateKeyEncoding: { type: 'pkcs8', format: 'pem' },
});
const [present, next] = [pair(), pair()];
const sign = createSigner(present.privateKey);
const state = '{"key_id":"key_1","scopes":["accounts:read"],"name":"Zoë"}';

test('the public key verifies signatures of accounts, and rejects any other value, signature, or key', () => {
  const isSigned = createVerifier(present.publicKey);
  expect(isSigned(Buffer.from(state), sign(state))).toBe(true);
  expect(isSigned(Buffer.from(state.replace('read', 'write')), sign(state))).toBe(false);
  const [id, text] = sign(state).split(':');
  for (const signature of [undefined, '', ':', id, `${id}:`, `${id}:${text?.slice(4)}`, `00000000:${text}`, text])
    expect(isSigned(Buffer.from(state), signature), signature).toBe(false);
  expect(isSigned(null, sign(state))).toBe(false);
  expect(createVerifier(next.publicKey)(Buffer.from(state), sign(state))).toBe(false);
});

test('during a rotation, both keys are accepted', () => {
  const isSigned = createVerifier(`${next.publicKey}\n${present.publicKey}`);
  for (const { privateKey } of [present, next])
    expect(isSigned(Buffer.from(state), createSigner(privateKey)(state))).toBe(true);
});

test('keys of another type, and an empty list of keys, are rejected', () => {
  expect(() => createSigner(foreign.privateKey)).toThrow('not one of Ed25519');
  expect(() => createVerifier(foreign.publicKey)).toThrow('not one of Ed25519');
  expect(() => createVerifier('no key')).toThrow('no public key');
});
