import { expect, test } from 'vitest';
import { auditId, formatId, itemBits } from '#libs/contracts/ids.ts';
import { type MessageName, messageType } from '#libs/contracts/messages.ts';
import type { ReceivedMessage } from '#libs/kafka/consume/consume.ts';
import { addAccountsEvent, addLedgerEvent, callersCommand, type Evidence } from './evidence.ts';
import { type Command, planSendings, wasDecided } from './plan.ts';

const testBits = (n: number) => n.toString(16).padStart(32, '0');
const at = '2026-01-02T03:04:05.678Z';
const account = (n: number) => formatId('account', testBits(n));

function message(headers: Record<string, string>, data: object, key: string | null = null): ReceivedMessage {
  const value = Buffer.from(JSON.stringify(data));
  return { topic: 't', partition: 0, offset: 0n, key, value, headers, timestamp_ms: Date.parse(at) };
}

function command(name: MessageName, id: string, data: object, request = id): Command {
  const topic =
    name === 'create_batch' ? 'ledger.batches' : /account/.test(name) ? 'accounts.commands' : 'ledger.commands';
  const headers = { ce_id: id, ce_type: messageType(name), 'request-id': request, deadline: at };
  return { topic, name, message: message(headers, data) };
}

const transaction = (n: number, request?: string) =>
  command('create_transaction', formatId('transaction', testBits(n)), {}, request);

type Event = readonly [type: string, id: string, data: object, key?: string, request?: string];
function testEvidence(...events: Event[]): Evidence {
  const evidence: Evidence = { decisions: new Map(), firsts: new Map(), events: [] };
  for (const [type, id, data, key = account(1), request = id] of events) {
    const headers = { ce_id: id, ce_time: at, ce_type: `corebanking.${type}.v1`, 'request-id': request };
    const add = /^(audit|account)/.test(type) ? addAccountsEvent : addLedgerEvent;
    add(message(headers, data, key), evidence);
  }
  return evidence;
}

const posted = (n: number, batch_position: number, rest: object = {}, batch_id = 7) =>
  ['transaction.completed', testBits(n), { transaction: { ...rest }, batch_id, batch_position }] as const;

const shown = (commands: Command[], evidence: Evidence) =>
  planSendings(commands, evidence).map(({ message: { headers }, isRenewed, decided }) =>
    [headers['ce_id'], isRenewed ? 'renewed' : 'late', decided === '' ? 'done' : decided]
      .filter((part) => part !== undefined)
      .join(' '),
  );

test('commands of one batch are sent in the order in which they were decided, whatever the sequences of their accounts', () => {
  const evidence = testEvidence(posted(1, 4, { sequence: 1 }), posted(2, 0, { sequence: 900 }), posted(3, 9, {}, 6));
  expect(shown([transaction(1), transaction(2), transaction(3)], evidence)).toEqual(
    [3, 2, 1].map((n) => `${formatId('transaction', testBits(n))} renewed done`),
  );
});

test('a refused command is renewed with its code, a late one keeps its deadline, and so does one without evidence', () => {
  const evidence = testEvidence(
    posted(1, 0, { failure_code: 'insufficient_funds' }),
    posted(2, 1, { failure_code: 'deadline_exceeded' }),
  );
  const [first, second, third] = [1, 2, 3].map((n) => transaction(n)) as [Command, Command, Command];
  const ids = [first, second, third].map((one) => one.message.headers['ce_id']);
  expect(shown([first, second, third], evidence)).toEqual([
    `${ids[0]} renewed insufficient_funds`,
    `${ids[1]} late`,
    `${ids[2]} late`,
  ]);
});

test('a hold is placed and released again, by the request that released it', () => {
  const hold = { hold_id: formatId('hold', testBits(5)) };
  const evidence = testEvidence(
    ['hold.placed', testBits(50), { hold, batch_id: 7, batch_position: 0 }],
    ['hold.released', testBits(51), { hold, batch_id: 8, batch_position: 0 }, account(1), 'second'],
  );
  const commands = [
    command('release_hold', 'cmd_1', hold, 'first'),
    command('release_hold', 'cmd_2', hold, 'second'),
    command('place_hold', hold.hold_id, {}),
  ];
  expect(shown(commands, evidence)).toEqual([`${hold.hold_id} renewed done`, 'cmd_2 renewed done', 'cmd_1 late']);
});

test('an independent batch is sent in the parts in which it was executed, with each item’s outcome, and the rest late', () => {
  const batch_id = formatId('batch', testBits(9));
  const items = [{}, {}, {}, {}];
  const part = (index: number, batch: number, position: number, rest: object = {}) =>
    [
      'transaction.completed',
      itemBits(batch_id, index),
      { transaction: { ...rest }, batch_id: batch, batch_position: position },
    ] as const;
  const evidence = testEvidence(
    part(0, 7, 0),
    part(1, 7, 3, { failure_code: 'inactive_account' }),
    posted(1, 0, {}, 8),
    part(2, 9, 0),
  );
  const independent = command('create_batch', batch_id, { batch_id, mode: 'independent', items });
  expect(shown([transaction(1), independent], evidence)).toEqual([
    `${batch_id} renewed {"0":"","1":"inactive_account"}`,
    `${formatId('transaction', testBits(1))} renewed done`,
    `${batch_id} renewed {"2":""}`,
    `${batch_id} late`,
  ]);
  const atomic = command('create_batch', batch_id, { batch_id, mode: 'atomic', items });
  expect(shown([atomic], evidence)).toEqual([`${batch_id} renewed {"0":"","1":"","2":"","3":""}`]);
});

test('an account is opened before the first decision on it, and frozen after what was posted in the same batch', () => {
  const account_id = account(1);
  const transition_id = formatId('transition', testBits(3));
  const posting = posted(1, 2);
  const evidence = testEvidence(posting, [
    'account.status_changed',
    testBits(60),
    { transition_id, to_status: 'Frozen', changed_at: at },
  ]);
  const opened = { audit_id: auditId(account_id), outcome: 'success', created_at: '2026-01-02T03:04:06.000Z' };
  addAccountsEvent(message({}, opened), evidence);
  const commands = [
    command('change_account_status', transition_id, { transition_id, account_id }),
    transaction(1),
    command('open_account', account_id, { account_id }),
  ];
  expect(shown(commands, evidence)).toEqual([
    `${account_id} renewed done`,
    `${formatId('transaction', testBits(1))} renewed done`,
    `${transition_id} renewed done`,
  ]);
});

test('of two requests with the same id, the evidence names the one that was decided', () => {
  const evidence = testEvidence(['transaction.completed', testBits(1), { transaction: {} }, account(1), 'second']);
  expect(['first', 'second'].map((request) => wasDecided(transaction(1, request), evidence))).toEqual([false, true]);
});

test('queries, messages of the services, and requests that execute nothing are not commands', () => {
  const of = (name: MessageName, headers: Record<string, string>) =>
    callersCommand(message({ ce_type: messageType(name), deadline: at, ...headers }, {}));
  expect(of('create_transfer', {})).toBe('create_transfer');
  expect(of('get_transfer', {})).toBeUndefined();
  expect(callersCommand(message({ ce_type: messageType('create_transfer') }, {}))).toBeUndefined();
});
