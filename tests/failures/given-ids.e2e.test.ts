import { randomBytes } from 'node:crypto';
import { beforeAll, describe, expect, it } from 'vitest';
import type { DeadLetter } from '#libs/contracts/dead-letters.ts';
import type { Hold } from '#libs/contracts/holds.ts';
import { bucketForKey, idBits } from '#libs/contracts/ids.ts';
import { commandPartition } from '#libs/contracts/topics.ts';
import type { ReceivedMessage } from '#libs/kafka/consume/consume.ts';
import type { OutgoingMessage } from '#libs/kafka/publish/publish.ts';
import { type Answer, corporate, expectError, newKey, unknownId } from '../support/client.ts';
import { publish, readTopics } from '../support/kafka.ts';
import { eventually, together, useBank } from '../support/world.ts';

/**
 * What GET answers for every id that a gateway has given to a caller without an outcome: never 404 while its command may
 * still be executed.
 */
const world = useBank({ webhooks: 1 });
const { api } = world;

type Name = (typeof names)[number];
const ofLedger = ['deposit', 'transfer', 'reversal', 'hold', 'capture', 'captured transfer', 'batch'] as const;
const ofOthers = ['client', 'account', 'key', 'rotated key', 'webhook'] as const;
const names = [...ofLedger, ...ofOthers];
/** What leaves a Transaction when it is refused. The transaction has been reversed before, which leaves none. */
const kept: readonly Name[] = ['deposit', 'transfer', 'capture', 'captured transfer'];

/** The requests, each of which creates something. */
let requests: Record<Name, [path: string, body: object]>;
/** The responses without an outcome, and where the ids in them are read. */
const posted = {} as Record<Name, Answer>;
const paths = {} as Record<Name, string>;
/** The commands that were sent. */
const commands = {} as Record<Name, ReceivedMessage>;

beforeAll(async () => {
  const { account_id, client_id } = await api.newAccount({ initial_deposit: 1000 });
  const other = await api.newAccount();
  const { transaction_id } = await api.transact(account_id, 'Deposit', 1);
  const { key_id } = await api.key({ scopes: ['accounts:read'] });
  const holds = await together(2, async () =>
    (await api.post(`/accounts/${account_id}/holds`, { amount: 2 })).data<Hold>(),
  );
  const deposit = { account_id, transaction_type: 'Deposit', amount: 3 };
  requests = {
    deposit: ['/transactions', deposit],
    transfer: ['/transfers', { from_account_id: account_id, to_account_id: other.account_id, amount: 4 }],
    reversal: [`/transactions/${transaction_id}/reversal`, { reason: 'mistake' }],
    hold: [`/accounts/${account_id}/holds`, { amount: 5 }],
    capture: [`/holds/${holds[0]?.hold_id}/capture`, {}],
    'captured transfer': [`/holds/${holds[1]?.hold_id}/capture`, { to_account_id: other.account_id }],
    batch: ['/batches', { mode: 'atomic', items: [{ transaction: deposit }] }],
    client: ['/clients', corporate()],
    account: ['/accounts', { client_id, account_type: 'Savings', currency: 'USD', initial_deposit: 6 }],
    key: ['/admin/api-keys', { name: 'late', scopes: ['accounts:read'] }],
    'rotated key': [`/admin/api-keys/${key_id}/rotation`, {}],
    webhook: ['/webhooks', { url: 'https://receiver.example/', event_types: ['*'] }],
  };
  const silent = ['accounts', 'webhooks'].map((name) => world.bank.process(name));
  const lock = await world.pool.connect();
  try {
    // The ledger answers queries, but none of its commands for the account.
    await lock.query('set idle_in_transaction_session_timeout = 0; begin');
    await lock.query('select from accounts where account_id = $1 for update', [idBits(account_id)]);
    for (const process of silent) process.kill('SIGSTOP');
    await Promise.all(names.map((name) => post(name)));
    await Promise.all(names.map(async (name) => (unanswered[name] = await api.get(paths[name]))));
  } finally {
    for (const process of silent) process.kill('SIGCONT');
    lock.release(true);
  }
  const sent = await readTopics(world.bank, [
    'ledger.commands',
    'ledger.batches',
    'accounts.commands',
    'webhooks.commands',
  ]);
  for (const message of [...sent.values()].flat()) {
    const name = names.find((one) => idBits(message.headers['ce_id'] ?? '') === idBits(paths[one]));
    // The ledger's part of an opening has the same id.
    const isCommand = /\.command\.(?!open_ledger)/.test(message.headers['ce_type'] ?? '');
    if (name !== undefined && isCommand) commands[name] ??= message;
  }
});

const unanswered = {} as Record<Name, Answer>;

/** Sends the request without an Idempotency-Key, unless one is required, and notes where to read the id. */
async function post(name: Name): Promise<void> {
  const [path, body] = requests[name];
  const answer = await (name === 'batch' ? api.once(newKey(), path, body) : api.post(path, body));
  const [, advised] = /GET (\S+) before repeating/.exec(answer.status === 504 ? answer.error.message : '') ?? [];
  const batch = name === 'batch' ? `/batches/${answer.data()['batch_id']}` : undefined;
  posted[name] = answer;
  paths[name] = answer.header('location') ?? batch ?? advised ?? '';
}

/** Returns the same command under another id, and where that is read. */
function another(name: Name, headers: Record<string, string>): { path: string; message: OutgoingMessage } {
  const { topic, key, value, partition, headers: given } = commands[name];
  const old = idBits(paths[name]);
  const isOfLedger = topic.includes('ledger.');
  const bits = isOfLedger ? unknownId('txn').slice(4, -2) + old.slice(-2) : unknownId('txn').slice(4);
  const id = given['ce_id']?.replace(old, bits) ?? '';
  const secret = `"secret_hash":"${randomBytes(32).toString('hex')}"`;
  return {
    path: paths[name].replace(old, bits),
    message: {
      topic,
      partition: isOfLedger ? partition : commandPartition(bucketForKey(id)),
      key: isOfLedger ? key : id,
      value: String(value)
        .replaceAll(old, bits)
        .replace(/"secret_hash":"\w+"/, secret),
      headers: { ...given, ce_id: id, ...headers },
    },
  };
}

/** Reads until the outcome is known. */
const untilOutcome = (path: string) =>
  eventually(async () => {
    const answer = await api.get(path);
    return answer.status !== 503 && answer;
  });

const at = (ms: number) => new Date(Date.now() + ms).toISOString();

/** Expects what is read of a command that was refused after its deadline. */
function expectDeadlineExceeded(name: Name, answer: Answer): void {
  if (kept.includes(name))
    expect(answer.data(), name).toMatchObject({ status: 'Failed', failure_code: 'deadline_exceeded' });
  else if (name === 'batch') expectError(answer, 409, 'deadline_exceeded');
  else expect([answer.status, answer.error.code], name).toEqual([404, expect.stringContaining('_not_found')]);
}

describe('without a reply', () => {
  it.each(names)('%s: the response names its id, and says what to do with it', (name) => {
    // contract: idempotency-19
    const expected = { deposit: 202, transfer: 202, batch: 200 }[name as string] ?? 504;
    expect([posted[name].status, paths[name]]).toEqual([expected, expect.stringMatching(/_[0-9a-f]{32}$/)]);
  });

  it.each(names)('%s: GET is 503 with Retry-After', (name) => {
    // contract: idempotency-20
    expectError(unanswered[name], 503, 'service_unavailable');
    expect(unanswered[name].header('retry-after')).not.toBeNull();
  });

  it.each(names)('%s: GET returns it when it was executed late, and is never 404 before that', async (name) => {
    // contract: idempotency-20
    const answer = await eventually(async () => {
      const read = await api.get(paths[name]);
      expect(read.status).not.toBe(404);
      return read.status === 200 && read;
    });
    expect(answer.data()['status'] ?? 'Completed').toMatch(/^(Completed|Active|active)$/);
  });
});

describe('refused late, because of its deadline', () => {
  it.each(names)('%s: GET returns the refusal of a posting, otherwise 404', async (name) => {
    const { path, message } = another(name, { ce_time: at(-60_000), deadline: at(-30_000) });
    await publish(world.bank, [message]);
    expectDeadlineExceeded(name, await api.get(path));
  });
});

describe('dead-lettered', () => {
  const dead = {} as Record<Name, { path: string; letter: DeadLetter }[]>;
  beforeAll(async () => {
    const made = names.flatMap((name) =>
      ['redrive', 'drop'].map((what) => {
        const reply = { 'reply-topic': `${world.bank.topic_prefix}balances`, 'request-id': `${what} ${name}` };
        return { name, ...another(name, { ce_time: at(0), deadline: at(30_000), ...reply }) };
      }),
    );
    await publish(
      world.bank,
      made.map(({ message }) => message),
    );
    const letters = await eventually(async () => {
      const found = await api.all<DeadLetter>('/admin/dead-letters?state=open');
      return found.length === made.length && found;
    });
    for (const { name, path, message } of made) {
      const letter = letters.find(({ request_id }) => request_id === message.headers?.['request-id']) as DeadLetter;
      (dead[name] ??= []).push({ path, letter });
    }
  });

  it.each(names)('%s: GET is 503, and the outcome once it is redriven or dropped', async (name) => {
    // contract: idempotency-21
    const [redriven, dropped] = dead[name] as [
      { path: string; letter: DeadLetter },
      { path: string; letter: DeadLetter },
    ];
    for (const { path } of [redriven, dropped])
      expectError(await api.get(path), 503, 'service_unavailable', /dead-lettered/);
    await api.post(`/admin/dead-letters/${dropped.letter.dead_letter_id}/drop`);
    expectDeadlineExceeded(name, await untilOutcome(dropped.path));
    // The secret of a webhook is sealed for its own id.
    if (name === 'webhook') return;
    await api.post(`/admin/dead-letters/${redriven.letter.dead_letter_id}/redrive`, { renew_deadline: true });
    const answer = await untilOutcome(redriven.path);
    // The first one has reversed the transaction, and captured the hold.
    if (name === 'reversal') expect(answer.status).toBe(404);
    else expect([answer.status, name]).toEqual([200, name]);
    if (name.startsWith('capture')) expect(answer.data()['failure_code']).toBe('hold_not_active');
    else if (answer.status === 200) expect(answer.data()['failure_code']).toBeUndefined();
  });
});
