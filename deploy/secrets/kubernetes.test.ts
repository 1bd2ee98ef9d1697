import { expect, test } from 'vitest';
import { type createApi, storeSecrets } from './kubernetes.ts';

const strong = '07e3a1d94c6b58f20e9d7c3b1a5f8e6d4c2b0a9f7e5d3c1b8a6f4e2d0c9b7a5f';
/** What the generator Password in deploy/kubernetes/secrets.yaml makes. */
const generated = 'x4Tq0Zb7LmW19sKcVr38HyPd62NfGj5UaEoR7iBt4QwXn0Lz9MvCk1Sh8DgYp3Ju';

/** The Secrets of a namespace with these master keys. deploy/check/kubernetes.sh uses a real API server. */
function secretsOf(keys?: string) {
  const stored = new Map<string, Record<string, string>>(keys === undefined ? [] : [['master', { MASTER_KEYS: keys }]]);
  const encoded = (data: Record<string, string>) =>
    Object.fromEntries(Object.entries(data).map(([key, value]) => [key, Buffer.from(value).toString('base64')]));
  const done = { status: 200, body: { metadata: { name: '' }, data: {} } };
  const api: ReturnType<typeof createApi> = {
    read: async (name) => {
      const data = stored.get(name);
      return data && { metadata: { name }, data: encoded(data) };
    },
    create: async ({ metadata, stringData }) => (stored.set(metadata.name, stringData), done),
    change: async (name, stringData) => (stored.set(name, { ...stored.get(name), ...stringData }), done),
  };
  const store = (mode = 'production') =>
    storeSecrets(api, { mode, master: 'master', secrets: [['ledger', 'ledger']] }, { info: () => undefined });
  return { store, stored };
}

test.each([undefined, strong, generated, `${strong}, ${generated}`])(
  'the master keys %s are accepted',
  async (keys) => {
    const { store, stored } = secretsOf(keys);
    await store();
    const passwords = stored.get('ledger')?.['DATABASE_PASSWORD']?.split(',');
    expect(passwords).toHaveLength(stored.get('master')?.['MASTER_KEYS']?.split(',').length ?? 0);
  },
);

test.each([
  ['has too few characters', 'a1b2c3d4'],
  ['is a sentence', 'this is the master key of our bank, do not tell'],
  ['repeats itself', 'ab'.repeat(32)],
])(
  'a master key that %s is refused by its rule, not shown, and nothing is stored; a trial accepts it',
  async (_, weak) => {
    for (const keys of [weak, `${weak},${strong}`, `${strong},${weak}`]) {
      const { store, stored } = secretsOf(keys);
      const refused = await store().catch(String);
      expect(refused).toMatch(/^Error: master: one of MASTER_KEYS (has|is|repeats) .*openssl rand/);
      expect(refused).not.toContain(weak);
      expect([...stored.keys()]).toEqual(['master']);
      await store('trial');
      expect(stored.has('ledger')).toBe(true);
    }
  },
);
