import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { beforeAll, describe, expect, it } from 'vitest';
import type { AuditRecord } from '#libs/contracts/audit.ts';
import type { DeadLetter, DeadLetterContent } from '#libs/contracts/dead-letters.ts';
import { bucketForKey, formatId, withBucket } from '#libs/contracts/ids.ts';
import { messageType } from '#libs/contracts/messages.ts';
import { commandPartition, type TopicName, topicName } from '#libs/contracts/topics.ts';
import type { ReceivedMessage } from '#libs/kafka/consume/consume.ts';
import type { OutgoingMessage } from '#libs/kafka/publish/publish.ts';
import { expectError, newKey, type RestAccount, type RestTransaction, unknownId } from '../support/client.ts';
import { createTestKafka, publish, readTopic } from '../support/kafka.ts';
import { eventually, useBank } from '../support/world.ts';

/**
 * Dead letters over REST and on the command line: each is listed once and can be shown, redriven
 * with its original bytes, or dropped.
 */
const world = useBank();
const { api } = world;
const path = '/admin/dead-letters';

let account: RestAccount;
let good: ReceivedMessage;
beforeAll(async () => {
  account = await api.newAccount();
  await api.transact(account.account_id, 'Deposit', 1);
  good = (await readTopic(world.bank, 'ledger.commands')).find(
    ({ headers }) => headers['ce_type'] === messageType('create_transaction'),
  ) as ReceivedMessage;
});

const letters = (query = '') => api.all<DeadLetter>(`${path}?limit=5${query}`);
const show = async (id: string) => (await api.get(`${path}/${id}`)).data<DeadLetterContent>();
let requests = 0;

/** Publishes a message to a topic, in the account's partition, and returns the resulting dead letter. */
async function die(topic: TopicName, message: Partial<OutgoingMessage>): Promise<DeadLetter> {
  const request_id = `dead-${++requests}`;
  const headers = { ...good.headers, ...message.headers, 'request-id': request_id };
  await publish(world.bank, [
    {
      key: account.account_id,
      value: null,
      partition: commandPartition(bucketForKey(account.account_id)),
      ...message,
      headers,
      topic: topicName(world.bank.topic_prefix, topic),
    },
  ]);
  return eventually(async () => (await letters()).find((letter) => letter.request_id === request_id));
}

/** A deposit that is valid except for its reply topic, which services do not reply to. */
function deposit(headers: Record<string, string> = {}): { transaction_id: string; message: Partial<OutgoingMessage> } {
  const transaction_id = formatId('transaction', withBucket(unknownId('txn').slice(-32), account.account_id));
  const value = JSON.stringify({ ...(JSON.parse(String(good.value)) as object), transaction_id, amount: '5' });
  const time = { ce_time: new Date().toISOString(), deadline: new Date(Date.now() + 25_000).toISOString() };
  return {
    transaction_id,
    message: {
      value,
      headers: { ...time, ce_id: transaction_id, 'reply-topic': `${world.bank.topic_prefix}balances`, ...headers },
    },
  };
}

const decided = (id: string) =>
  eventually(async () => {
    const answer = await api.get(`/transactions/${id}`);
    return answer.status === 200 && answer.data<RestTransaction>();
  });

describe('Dead letters: list and show', () => {
  it.each(['ledger.commands', 'accounts.commands', 'ledger.queries', 'accounts.queries'] as const)(
    'poison on %s is listed once, with its reason and origin',
    async (topic) => {
      const letter = await die(topic, { value: '{"no": "JSON' });
      expect(letter).toMatchObject({
        dead_letter_id: expect.stringMatching(/^dlt_[0-9a-f]{32}$/),
        topic: `${topic}.dlq`,
        partition: 0,
        source_topic: topic,
        source_partition: commandPartition(bucketForKey(account.account_id)),
        source_offset: expect.any(Number),
        key: account.account_id,
        code: expect.stringMatching(/^(malformed_json|unknown_type)$/),
        reason: expect.any(String),
        size_bytes: 12,
        message: 'create_transaction',
        state: 'open',
        decided_by: null,
        decided_at: null,
      });
      expect((await letters(`&topic=${topic}.dlq`)).map(({ dead_letter_id }) => dead_letter_id)).toEqual([
        letter.dead_letter_id,
      ]);
      expect(await show(letter.dead_letter_id)).toMatchObject({
        ...letter,
        available: true,
        value: '{"no": "JSON',
        encoding: 'utf-8',
        truncated: false,
        headers: { 'request-id': letter.request_id, 'dlq-code': letter.code },
      });
    },
  );

  it('bytes that are not text are shown in base64, null as null, and 200 KB cut to 64 KiB', async () => {
    const bytes = Buffer.from([0xff, 0x00, 0xfe, 0x80, 0x0a]);
    expect(await show((await die('ledger.commands', { value: bytes })).dead_letter_id)).toMatchObject({
      value: bytes.toString('base64'),
      encoding: 'base64',
      size_bytes: 5,
    });
    expect(await show((await die('ledger.commands', { value: null })).dead_letter_id)).toMatchObject({
      value: null,
      encoding: null,
      available: true,
    });
    const large = await show((await die('ledger.commands', { value: 'é'.repeat(100_000) })).dead_letter_id);
    expect(large).toMatchObject({
      encoding: 'utf-8',
      truncated: true,
      size_bytes: 200_000,
      value: 'é'.repeat(32 * 1024),
    });
  });

  it('a message that no column can store does not delay others', async () => {
    const odd = { key: 'k\0ey', headers: { ce_type: 'x'.repeat(5000) } };
    expect(await die('ledger.commands', odd)).toMatchObject({ key: 'k\uFFFDey', message: null });
  });

  it('after a complete redelivery each is listed once, and decisions are kept', async () => {
    const dropped = await die('ledger.commands', { value: '[' });
    await api.post(`${path}/${dropped.dead_letter_id}/drop`);
    const before = await letters();
    const accounts = world.bank.process('accounts');
    await accounts.stop();
    await createTestKafka(world.bank).withAdmin((admin) => admin.deleteGroups([`${world.bank.topic_prefix}accounts`]));
    await accounts.restart();
    const marker = await die('ledger.commands', { value: '[' });
    expect(await letters()).toEqual([marker, ...before]);
    expect(before.find(({ dead_letter_id }) => dead_letter_id === dropped.dead_letter_id)?.state).toBe('dropped');
  });

  it('the metric counts open dead letters', async () => {
    const metrics = await (await fetch(new URL('/metrics', world.bank.process('accounts').health_url))).text();
    const open = (await letters('&state=open')).length;
    expect(metrics).toMatch(new RegExp(`^corebanking_dead_letters_open\\{[^}]*\\} ${open}$`, 'm'));
  });
});

describe('Dead letters: redrive', () => {
  it('posts the command once, with its original bytes; the same request again gets the same outcome, a different one is refused', async () => {
    const { transaction_id, message } = deposit();
    const { dead_letter_id } = await die('ledger.commands', message);
    const before = await api.balance(account.account_id);
    const key = newKey();
    const redriven = await api.once(key, `${path}/${dead_letter_id}/redrive`);
    expect([redriven.status, redriven.data()]).toMatchObject([
      200,
      { dead_letter_id, state: 'redriven', decided_by: expect.stringMatching(/^key:/), decided_at: expect.any(String) },
    ]);
    expect(await decided(transaction_id)).toMatchObject({ status: 'Completed', amount: 5 });
    const repeat = await api.once(key, `${path}/${dead_letter_id}/redrive`);
    expect([repeat.status, repeat.body, repeat.header('idempotent-replayed')]).toEqual([200, redriven.body, 'true']);
    expectError(await api.post(`${path}/${dead_letter_id}/redrive`), 400, 'invalid_status_transition');
    expectError(await api.post(`${path}/${dead_letter_id}/drop`), 400, 'invalid_status_transition');
    expect(await api.balance(account.account_id)).toBe(before + 5);
    const sent = (await readTopic(world.bank, 'ledger.commands')).filter(
      ({ headers }) => headers['ce_id'] === transaction_id,
    );
    expect(sent).toHaveLength(2);
    const [first, second] = sent as [ReceivedMessage, ReceivedMessage];
    const {
      'reply-topic': _topic,
      'reply-partition': _partition,
      'correlation-id': _id,
      'reply-by': _by,
      ...kept
    } = first.headers;
    expect([second.value, second.key, second.partition, second.headers]).toEqual([
      first.value,
      first.key,
      first.partition,
      kept,
    ]);
    const audited = await eventually(async () => {
      const records = await api.all<AuditRecord>(`/admin/audit?resource_id=${dead_letter_id}`);
      return records.length >= 3 && records.map(({ action, outcome, details }) => ({ action, outcome, details }));
    });
    expect(audited.find(({ outcome }) => outcome === 'success')).toMatchObject({
      action: 'redrive_dead_letter',
      details: { topic: 'ledger.commands.dlq', message: 'create_transaction', renew_deadline: false },
    });
    expect(audited.filter(({ outcome }) => outcome === 'invalid_status_transition')).toHaveLength(2);
  });

  it('a command that became two dead letters, redriven three times because of a crash, is posted once', async () => {
    const { transaction_id, message } = deposit();
    const [one, two] = [await die('ledger.commands', message), await die('ledger.commands', message)];
    const before = await api.balance(account.account_id);
    for (const { dead_letter_id } of [one, two])
      expect((await api.post(`${path}/${dead_letter_id}/redrive`)).status).toBe(200);
    // This is the state after a crash between publishing and committing. The database allows no way back to it.
    await world.sql('alter table accounts.dead_letters disable trigger deciding_again');
    await world.sql(
      "update accounts.dead_letters set state = 'open', decided_by = null, decided_at = null where dead_letter_id = $1",
      [one.dead_letter_id],
    );
    await world.sql('alter table accounts.dead_letters enable trigger deciding_again');
    expect((await api.post(`${path}/${one.dead_letter_id}/redrive`)).status).toBe(200);
    expect((await decided(transaction_id)).status).toBe('Completed');
    await eventually(
      async () =>
        (await readTopic(world.bank, 'ledger.commands')).filter(({ headers }) => headers['ce_id'] === transaction_id)
          .length === 5,
    );
    await api.transact(account.account_id, 'Deposit', 1);
    expect(await api.balance(account.account_id)).toBe(before + 6);
  });

  it('keeps the deadline: an expired command is Failed with deadline_exceeded; with a new deadline it is posted', async () => {
    const late = {
      ce_time: new Date(Date.now() - 120_000).toISOString(),
      deadline: new Date(Date.now() - 90_000).toISOString(),
    };
    const [kept, renewed] = [deposit(late), deposit(late)];
    const [keptLetter, renewedLetter] = [
      await die('ledger.commands', kept.message),
      await die('ledger.commands', renewed.message),
    ];
    expect((await api.post(`${path}/${keptLetter.dead_letter_id}/redrive`, { renew_deadline: false })).status).toBe(
      200,
    );
    expect((await api.post(`${path}/${renewedLetter.dead_letter_id}/redrive`, { renew_deadline: true })).status).toBe(
      200,
    );
    expect(await decided(kept.transaction_id)).toMatchObject({ status: 'Failed', failure_code: 'deadline_exceeded' });
    expect((await decided(renewed.transaction_id)).status).toBe('Completed');
  });

  it('a message that is still poison becomes a new dead letter', async () => {
    const letter = await die('accounts.commands', { value: 'still no JSON' });
    await api.post(`${path}/${letter.dead_letter_id}/redrive`);
    const again = await eventually(async () => {
      const found = (await letters('&topic=accounts.commands.dlq')).filter(
        ({ request_id }) => request_id === letter.request_id,
      );
      return found.length === 2 && found;
    });
    expect(again.map(({ state }) => state).sort()).toEqual(['open', 'redriven']);
  });

  it('if retention has deleted the bytes, it is shown without them, redriving is 410, and it can be dropped', async () => {
    const letter = await die('accounts.queries', { value: 'x' });
    const topic = topicName(world.bank.topic_prefix, 'accounts.queries.dlq');
    await createTestKafka(world.bank).withAdmin(async (admin) => {
      await admin.fetchTopicOffsets(topic);
      await admin.deleteTopicRecords({ topic, partitions: [{ partition: 0, offset: String(letter.offset + 1) }] });
    });
    expect(await show(letter.dead_letter_id)).toMatchObject({
      available: false,
      value: null,
      headers: {},
      state: 'open',
    });
    expectError(await api.post(`${path}/${letter.dead_letter_id}/redrive`), 410, 'dead_letter_expired');
    expect((await api.post(`${path}/${letter.dead_letter_id}/drop`, { reason: 'gone' })).data()).toMatchObject({
      state: 'dropped',
      drop_reason: 'gone',
    });
  });
});

describe('Dead letters: permissions and errors', () => {
  it('requires ops:manage, and clients:read for the content, whose reading is audited', async () => {
    // contract: audit-9
    const letter = await die('ledger.commands', { value: '}' });
    const withScopes = async (...scopes: string[]) => api.withKey((await api.key({ scopes })).api_key);
    for (const caller of [
      await withScopes('audit:read', 'keys:manage'),
      await withScopes('books:read', 'clients:read'),
    ]) {
      for (const answer of [
        await caller.get(path),
        await caller.get(`${path}/${letter.dead_letter_id}`),
        await caller.post(`${path}/${letter.dead_letter_id}/redrive`),
        await caller.post(`${path}/${letter.dead_letter_id}/drop`),
      ]) {
        expectError(answer, 403, 'insufficient_scope');
      }
    }
    const operator = await withScopes('ops:manage');
    expect((await operator.get(path)).status).toBe(200);
    expectError(await operator.get(`${path}/${letter.dead_letter_id}`), 403, 'insufficient_scope', /clients:read/);
    expect(
      (await (await withScopes('ops:manage', 'clients:read')).get(`${path}/${letter.dead_letter_id}`)).data(),
    ).toMatchObject({ state: 'open' });
    await eventually(async () => {
      const records = (await api.get(`/admin/audit?resource_id=${letter.dead_letter_id}`)).list<{
        action: string;
        outcome: string;
      }>();
      return records.some(({ action, outcome }) => action === 'get_dead_letter' && outcome === 'success');
    });
  });

  it('unknown and malformed ids are 404, invalid filters and bodies 400', async () => {
    for (const id of [unknownId('dlt'), 'x', unknownId('txn')]) {
      for (const answer of [
        await api.get(`${path}/${id}`),
        await api.post(`${path}/${id}/redrive`),
        await api.post(`${path}/${id}/drop`),
      ])
        expectError(answer, 404, 'dead_letter_not_found');
    }
    for (const query of ['topic=ledger.commands', 'state=done', 'from=yesterday'])
      expectError(await api.get(`${path}?${query}`), 400, 'validation_failed');
    const [letter] = await letters();
    expectError(
      await api.post(`${path}/${letter?.dead_letter_id}/redrive`, { renew_deadline: 'yes' }),
      400,
      'validation_failed',
    );
    expectError(await api.post(`${path}/${letter?.dead_letter_id}/drop`, { because: 'x' }), 400, 'unknown_field');
  });
});

describe('Dead letters on the command line', () => {
  const bank = (...parameters: string[]) =>
    new Promise<{ code: number; out: string; err: string }>((resolve) => {
      const env = { ...process.env, BANK_URL: api.baseUrl, BANK_API_KEY: world.bank.api_key };
      execFile(
        process.execPath,
        [join(import.meta.dirname, '../../cli/bank.ts'), ...parameters],
        { env, timeout: 30_000 },
        (error, out, err) => resolve({ code: error ? Number(error.code) : 0, out, err }),
      );
    });

  it('list, show, redrive, drop', async () => {
    const { transaction_id, message } = deposit();
    const [command, poison] = [
      await die('ledger.commands', message),
      await die('ledger.commands', { value: 'beep \u001b[31m' }),
    ];
    const listed = await bank('dead-letters', 'list', '--state', 'open', '--limit', '2');
    expect(
      listed.out
        .trim()
        .split('\n')
        .map((line) => line.split(/\s+/).slice(0, 2)),
    ).toEqual([
      [poison.dead_letter_id, 'open'],
      [command.dead_letter_id, 'open'],
    ]);
    expect(JSON.parse((await bank('dead-letters', 'list', '--limit', '1', '--json')).out)).toEqual([poison]);
    const shown = await bank('dead-letters', 'show', poison.dead_letter_id);
    expect(shown.out).toContain('beep \\u001b[31m');
    expect(JSON.parse((await bank('dead-letters', 'show', poison.dead_letter_id, '--json')).out)).toMatchObject({
      value: 'beep \u001b[31m',
    });
    expect(await bank('dead-letters', 'drop', poison.dead_letter_id, '--reason', 'noise')).toEqual({
      code: 0,
      out: `${poison.dead_letter_id} dropped\n`,
      err: '',
    });
    expect((await bank('dead-letters', 'redrive', command.dead_letter_id, '--renew-deadline')).out).toBe(
      `${command.dead_letter_id} redriven\n`,
    );
    expect((await decided(transaction_id)).status).toBe('Completed');
  });

  it('the exit code shows whether the bank refused, the usage is wrong, or nothing responds', async () => {
    expect(await bank('dead-letters', 'drop', unknownId('dlt'))).toMatchObject({
      code: 1,
      out: '',
      err: expect.stringContaining('404 dead_letter_not_found'),
    });
    expect(await bank('dead-letters', 'list', '--state', 'done')).toMatchObject({
      code: 2,
      err: expect.stringContaining('Allowed choices'),
    });
    expect(await bank('dead-letters', '--help')).toMatchObject({ code: 0, out: expect.stringContaining('redrive') });
    const gateway = world.bank.process('gateway');
    await gateway.stop();
    expect(await bank('dead-letters', 'list')).toMatchObject({ code: 3, err: expect.stringContaining('no answer') });
    await gateway.restart();
  });
});
