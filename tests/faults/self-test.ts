import { bugs } from '../planted/bugs.ts';

/** Bugs that the fault campaign must find (self-test.suite.ts). */
interface Planted {
  name: string;
  edits: { file: string; find: string; replace: string }[];
  /** The finding that no other bug in the same bank causes. */
  found: RegExp;
}

const events = 'services/ledger/batch/events.ts';

const drops: Planted = {
  name: 'a ledger that drops 2 % of the money commands, acknowledged and without a reply',
  edits: [
    {
      file: 'libs/service/query-consumer.ts',
      find: 'await execute(messages.filter((message) => !isQuery(message)));',
      replace: `const isDropped = ({ headers }: ReceivedMessage) => /\\.create_(transaction|transfer|batch)/.test(headers['ce_type'] ?? '') && Math.random() < 0.02;
      await execute(messages.filter((message) => !isQuery(message) && !isDropped(message)));`,
    },
  ],
  found: /^I5: LOST: answered 202/,
};

const earlyOffset: Planted = {
  name: 'an offset committed before the database',
  edits: bugs.find(({ name }) => name === 'offset committed before the database')?.edits ?? [],
  found: /^I5: LOST: answered 202/,
};

const centMore: Planted = {
  name: 'events whose balance_after is a cent wrong',
  edits: [
    { file: events, find: 'fromMinor(own.balance_after_minor, ', replace: 'fromMinor(own.balance_after_minor + 1n, ' },
  ],
  found: /^I7: each event matches the books: .*"differs_in":"balance_after"/,
};

const noTransfers: Planted = {
  name: 'no events of transfers',
  edits: [{ file: events, find: 'if (transfer) events.push(transfer);', replace: 'void transfer;' }],
  found:
    /^I7: each Completed or Failed transaction, transfer, change of a hold, and decided batch has its event.*"of":"transfers"/,
};

const zeroBalances: Planted = {
  name: 'messages in `balances` that all say 0.00',
  edits: [{ file: events, find: 'balance: fromMinor(account.balance_minor, ', replace: 'balance: fromMinor(0n, ' }],
  found: /^I7: each event matches the books: .*"published":"0(\.0+)? /,
};

const refusedIsDelivered: Planted = {
  name: 'deliveries to a receiver that answers 500 taken for made',
  edits: [
    {
      file: 'services/webhooks/deliveries/verdict.ts',
      find: 'status >= 200 && status < 300',
      replace: 'status >= 200',
    },
  ],
  found: /^I7: LOST on the way to the receiver/,
};

const goneIsTried: Planted = {
  name: 'a webhook whose receiver answers 410 not disabled',
  edits: [
    {
      file: 'services/webhooks/deliveries/verdict.ts',
      find: 'if (attempts.some(({ response_status }) => response_status === gone))',
      replace: 'if (attempts.some(({ response_status }) => response_status === gone + 1))',
    },
  ],
  found: /^I7: the webhook whose receiver answers 410 is Active/,
};

const cursorSkips: Planted = {
  name: 'a cursor of GET /events that skips one event after each full page',
  edits: [
    {
      file: 'services/webhooks/queries/list-events.ts',
      find: 'page(items, BigInt(next.id), true)',
      replace: 'page(items, BigInt(next.id) + 1n, true)',
    },
  ],
  found: /^I7: LOST on the way to the poller/,
};

/** The bugs of one bank are chosen so that none can cause another's finding. */
export const banks = [
  { rows: 'storm', bugs: [drops, centMore, noTransfers] },
  { rows: 'kill-in-transaction', bugs: [earlyOffset, zeroBalances] },
  { rows: 'webhooks', bugs: [refusedIsDelivered, goneIsTried, cursorSkips] },
];
