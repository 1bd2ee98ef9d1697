import { beforeAll, expect, it } from 'vitest';
import { bucketForKey, bucketOfId } from '#libs/contracts/ids.ts';
import { commandPartition } from '#libs/contracts/topics.ts';
import { type Answer, newKey, type RestAccount, type RestTransfer } from '../support/client.ts';
import { readTopic } from '../support/kafka.ts';
import { eventually, together, useBank } from '../support/world.ts';

/**
 * Tests transfers to an account that is hot for the first gateway and not for the second (hot-accounts.ts), so that they
 * arrive in the partition of the destination through the one, and of the source through the other.
 */
const world = useBank({ gateways: 2, ledgers: 2, env: { SPREAD_COMMANDS: 'true' } });
const { api } = world;
const [byDestination, bySource] = [world.gateway(0), world.gateway(1)];
const both = [byDestination, bySource];
let hot: RestAccount;
let payers: RestAccount[] = [];
const partition = ({ account_id }: RestAccount) => commandPartition(bucketForKey(account_id));
const payer = (i: number) => payers[i % payers.length] as RestAccount;
const transfer = (i: number, amount = 1) => ({
  from_account_id: payer(i).account_id,
  to_account_id: hot.account_id,
  amount,
});

/** Returns the partitions of the commands under this id. */
const partitionsOf = async (transferId: string) =>
  (await readTopic(world.bank, 'ledger.commands'))
    .filter(({ headers }) => headers['ce_id'] === transferId)
    .map(({ partition: found }) => found);

beforeAll(async () => {
  hot = await api.newAccount();
  // The payers are in other partitions than the hot account.
  const opened = await together(24, () => api.newAccount({ initial_deposit: 1_000 }));
  payers = opened.filter((account) => partition(account) !== partition(hot)).slice(0, 10);
  let isHot = false;
  const load = together(32, async (lane) => {
    while (!isHot) await byDestination.post('/transfers', transfer(lane, 0.01));
  });
  try {
    await eventually(async () => {
      const one = (await byDestination.post('/transfers', transfer(0, 0.01))).data<RestTransfer>();
      return (await partitionsOf(one.transfer_id)).includes(partition(hot));
    }, 90_000);
  } finally {
    isHot = true;
    await load;
  }
});

it('transfers through one gateway are in the partition of the hot account, through the other in that of the source', async () => {
  const made = await Promise.all(both.map((gateway) => gateway.post('/transfers', transfer(0))));
  const ids = made.map((answer) => answer.data<RestTransfer>().transfer_id);
  expect(await Promise.all(ids.map(partitionsOf))).toEqual([[partition(hot)], [partition(payer(0))]]);
  // Of both, the id has the bucket of the source.
  for (const id of ids) expect(bucketOfId(id)).toBe(bucketForKey(payer(0).account_id));
});

it('concurrent repeats by both routes have one outcome under one id, and move the money once', async () => {
  const before = await api.balance(hot.account_id);
  const answers = await together(20, async (i) => {
    const key = newKey();
    return Promise.all([0, 1, 2, 3].map((n) => (both[n % 2] ?? api).once(key, '/transfers', transfer(i))));
  });
  for (const repeats of answers) {
    expect(repeats.map(({ status }) => status)).toEqual([201, 201, 201, 201]);
    expect(new Set(repeats.map(({ text }) => text)).size).toBe(1);
  }
  expect(await api.balance(hot.account_id)).toBeCloseTo(before + 20);
  // A reused key collides although the partition of the other request is another.
  const key = newKey();
  expect((await byDestination.once(key, '/transfers', transfer(0))).status).toBe(201);
  expect((await bySource.once(key, '/transfers', transfer(1))).status).toBe(422);
});

it('what a 202 named is never unknown to either gateway, whichever the route, and is executed once', async () => {
  const before = await api.balance(hot.account_id);
  const [first, second] = [newKey(), newKey()];
  const ledgers = ['ledger', 'ledger-2'].map((name) => world.bank.process(name));
  for (const ledger of ledgers) ledger.kill('SIGSTOP');
  let pending: Answer[];
  try {
    // The repeat of each takes the other route.
    pending = await Promise.all([
      byDestination.once(first, '/transfers', transfer(2)),
      bySource.once(second, '/transfers', transfer(3)),
      bySource.once(first, '/transfers', transfer(2)),
      byDestination.once(second, '/transfers', transfer(3)),
    ]);
  } finally {
    for (const ledger of ledgers) ledger.kill('SIGCONT');
  }
  expect(pending.map(({ status }) => status)).toEqual([202, 202, 202, 202]);
  const ids = pending.map((answer) => answer.data<RestTransfer>().transfer_id);
  expect([ids[2], ids[3]]).toEqual([ids[0], ids[1]]);
  for (const id of ids.slice(0, 2))
    for (const gateway of both)
      await eventually(async () => {
        const answer = await gateway.get(`/transfers/${id}`);
        expect(answer.status, answer.text).not.toBe(404);
        return answer.status === 200 && answer.data<RestTransfer>().status === 'Completed';
      });
  expect(await api.balance(hot.account_id)).toBeCloseTo(before + 2);
});

it('a freeze stops transfers of both routes at once, and a reversal finds them', async () => {
  const account = await api.newAccount({ initial_deposit: 1_000 });
  const body = { from_account_id: account.account_id, to_account_id: hot.account_id, amount: 1 };
  let frozenAt = Infinity;
  const load = together(8, async (lane) => {
    const sent: { at: number; answer: Answer }[] = [];
    for (let n = 0; n < 12; n++) {
      const at = performance.now();
      sent.push({ at, answer: await (both[(lane + n) % 2] ?? api).post('/transfers', body) });
    }
    return sent;
  });
  await api.setStatus(account.account_id, 'Frozen', 'legal');
  frozenAt = performance.now();
  const sent = (await load).flat();
  const done = sent.filter(({ answer }) => answer.status === 201);
  expect(sent.filter(({ at, answer }) => at > frozenAt && answer.status !== 400)).toEqual([]);
  for (const { answer } of sent) expect([201, 400], answer.text).toContain(answer.status);
  expect(await api.balance(account.account_id)).toBe(1_000 - done.length);
  const { transfer_id } = (await byDestination.post('/transfers', transfer(4))).data<RestTransfer>();
  const reversed = await bySource.post(`/transactions/txn_${transfer_id.slice(4)}/reversal`, { reason: 'test' });
  expect(reversed.status, reversed.text).toBe(201);
});
