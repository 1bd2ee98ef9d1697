import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, it } from 'vitest';
import type { Node } from './cluster.ts';
import type { Entrance } from './entrance.ts';
import { type Attempt, Journal } from './journal.ts';
import { type Accounts, Load } from './load.ts';
import { createRandom } from './random.ts';

const dir = mkdtempSync(join(tmpdir(), 'load-test-'));
afterAll(() => rmSync(dir, { recursive: true }));

it('the load is stopped only when the response to every probe is recorded, because a later 202 would not be followed', async () => {
  const response = Promise.withResolvers<Attempt>();
  const gateway = { name: 'gateway' } as Node;
  const entrance: Pick<Entrance, 'pick' | 'call'> = { pick: () => gateway, call: () => response.promise };
  const journal = new Journal(join(dir, 'journal.jsonl'));
  const accounts = { currencies: new Map() } as unknown as Accounts;
  const load = new Load(entrance as Entrance, journal, accounts, createRandom('1'), '1');
  const probe = load.deposit('acc_1', 1);
  void load.send(probe, gateway);

  let stopped = false;
  const stop = load.stop().then(() => (stopped = true));
  await new Promise((resolve) => setImmediate(resolve));
  expect(stopped).toBe(false);

  response.resolve({ sentAt: 0, tookMs: 1, gateway: 'gateway', status: 202, body: {}, replayed: false });
  await stop;
  expect(probe.attempts.map(({ status }) => status)).toEqual([202]);
});
