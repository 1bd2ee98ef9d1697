import { generateKeyPairSync } from 'node:crypto';
import { expect, test } from 'vitest';
import { countedText, createSigner, createVerifier } from '#libs/contracts/signature.ts';
import type { OutgoingMessage } from '#libs/kafka/publish/publish.ts';
import { silent } from '#libs/postgres/test/test-database.ts';
import { createKeyFloor } from './key-floor.ts';

const pair = (type: 'ed25519') => generateKeyPairSync(type);
const pem = { private: { type: 'pkcs8', format: 'pem' }, public: { type: 'spki', format: 'pem' } } as const;
const { privateKey, publicKey } = pair('ed25519');
const sign = createSigner(privateKey.export(pem.private).toString());
const forge = createSigner(pair('ed25519').privateKey.export(pem.private).toString());

type Answer = (nonce: string) => object;

/** Starts a comparison with what accounts answers, one answer after the other, and the last one again and again. */
function compare(known: { keys: number; changes: number }, answers: Answer[]) {
  const published: OutgoingMessage[] = [];
  const asked: string[] = [];
  const floor = createKeyFloor({
    apiKeys: { counted: () => known },
    request: async ({ value }) => {
      const { nonce } = JSON.parse(String(value)) as { nonce: string };
      asked.push(nonce);
      const answer = answers[Math.min(asked.length, answers.length) - 1] as Answer;
      return { headers: {}, value: Buffer.from(JSON.stringify({ ok: true, data: answer(nonce) })) };
    },
    publisher: { publish: async (message) => void published.push(message) },
    isSigned: createVerifier(publicKey.export(pem.public).toString()),
    prefix: 'p.',
    logger: silent,
  });
  return { floor, published, asked };
}

const counted =
  (keys: number, changes: number, signer = sign, of?: string): Answer =>
  (nonce) => ({ keys, changes, signature: signer(countedText(of ?? nonce, { keys, changes })) });

test('a gateway starts when it knows what accounts has signed: no forged, older, or changed count', async () => {
  const wrong: [string, Answer][] = [
    ['forged', counted(0, 0, forge)],
    ['of another time', counted(0, 0, sign, 'f'.repeat(32))],
    ['changed', (nonce) => ({ ...counted(9, 9)(nonce), keys: 0, changes: 0 })],
    ['unsigned', () => ({ keys: 0, changes: 0, signature: '' })],
  ];
  const { floor, asked } = compare({ keys: 3, changes: 2 }, [...wrong.map(([, answer]) => answer), counted(3, 2)]);
  expect(floor.health()).toMatchObject({ ok: false });
  await floor.start();
  expect(floor.health()).toEqual({ ok: true });
  expect(asked).toHaveLength(wrong.length + 1);
  expect(new Set(asked).size).toBe(asked.length);
});

test.each([
  ['a key is missing', { keys: 2, changes: 2 }],
  ['a change is missing', { keys: 3, changes: 1 }],
])('while %s, it is not ready, and asks accounts for all states', async (_, known) => {
  const { floor, published } = compare(known, [counted(3, 2)]);
  const started = floor.start();
  await expect.poll(() => published.length, { timeout: 10_000 }).toBe(1);
  expect(published[0]?.headers['ce_type']).toBe('corebanking.command.republish_api_keys.v1');
  expect(floor.health()).toMatchObject({ ok: false, reason: expect.stringContaining('are missing') });
  Object.assign(known, { keys: 4, changes: 2 });
  await started;
  expect(floor.health()).toEqual({ ok: true });
  expect(published).toHaveLength(1);
});

test('it can be stopped before accounts answers', async () => {
  const { floor } = compare({ keys: 0, changes: 0 }, [() => ({})]);
  const started = floor.start();
  floor.stop();
  await started;
  expect(floor.health().ok).toBe(false);
});
