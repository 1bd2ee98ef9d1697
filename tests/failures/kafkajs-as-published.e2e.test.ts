import { expect, it } from 'vitest';
import { silent } from '#libs/postgres/test/test-database.ts';
import { verifyEvents } from '#services/ledger/verify/verify-events.ts';
import { createTestKafka, readTopics } from '../support/kafka.ts';
import { eventually, together, useBank } from '../support/world.ts';

/** Tests a bank without libs/kafka/patched, which makes kafkajs cheaper and safer but is not needed for correctness. */
const world = useBank({ env: { KAFKAJS_AS_PUBLISHED: '1' } });
const { api } = world;

it('posts, replies, publishes, and survives a kill with unmodified kafkajs', async () => {
  const client = await api.client();
  const [from, to] = await together(2, () => api.account(client.client_id, { initial_deposit: 500 }));
  const move = (i: number) =>
    api.post('/transfers', {
      from_account_id: from?.account_id,
      to_account_id: to?.account_id,
      amount: i % 5 === 0 ? 5_000 : 1,
    });
  const answers = await together(40, move);
  expect(answers.filter(({ status }) => status === 201)).toHaveLength(32);
  world.bank.process('ledger').kill('SIGKILL');
  await world.bank.process('ledger').restart();
  await api.transfer(from?.account_id ?? '', to?.account_id ?? '', 10);
  const { balance } = (await api.get(`/accounts/${from?.account_id}`)).data<{ balance: number }>();
  expect(balance).toBe(500 - 32 - 10);
  await eventually(
    async () => (await world.sql('select 1 from ledger.outbox_batches where published_at is null')).length === 0,
    20_000,
  );
  expect((await readTopics(world.bank, ['transfers'])).get('transfers')?.length).toBeGreaterThanOrEqual(33);
  expect(await verifyEvents(world.pool, createTestKafka(world.bank), world.bank.topic_prefix, silent)).toEqual([]);
});
