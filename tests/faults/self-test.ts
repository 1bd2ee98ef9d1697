import { existsSync, mkdirSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { runToEnd } from '../../tools/local/child.ts';
import { bugs } from '../planted/bugs.ts';
import { copyCheckout, plant, typeErrors } from '../planted/plant.ts';
import type { Verdict } from '../support/verdict.ts';
import type { Result } from './campaign.ts';

/**
 * Tests the campaign: runs it, in its quick form and with the relevant rows, against copies of this
 * checkout with planted bugs. Each bug must be found by its own finding; bugs planted in one copy
 * are chosen so that none can cause another's finding.
 */
interface Planted {
  name: string;
  edits: { file: string; find: string; replace: string }[];
  /** The finding that no other bug in the same bank causes. */
  found: RegExp;
}

/** A quick campaign takes a few minutes. */
const campaignMs = 30 * 60_000;
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
    /^I7: each Completed and Failed transaction, each transfer and each change of a hold has its event.*"of":"transfers"/,
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

export const banks = [
  { rows: 'storm', bugs: [drops, centMore, noTransfers] },
  { rows: 'kill-in-transaction', bugs: [earlyOffset, zeroBalances] },
  { rows: 'webhooks', bugs: [refusedIsDelivered, goneIsTried, cursorSkips] },
];

/** Runs all banks at the same time, because each waits most of the time. */
export async function selfTest(): Promise<Verdict> {
  const found = (await Promise.all(banks.map(campaignOn))).flat();
  const lines = found.map(({ name, finding }) => `| ${name} | ${finding ?? 'NOT FOUND'} |`);
  process.stdout.write(`| planted bug | found by |\n|---|---|\n${lines.join('\n')}\n`);
  const passed = found.filter(({ finding }) => finding !== undefined).length;
  return { passed, failed: found.length - passed };
}

async function campaignOn({
  rows,
  bugs: planted,
}: (typeof banks)[number]): Promise<{ name: string; finding: string | undefined }[]> {
  const copy = copyCheckout();
  try {
    for (const bug of planted) plant(copy, bug);
    const errors = await typeErrors(copy);
    if (errors.length > 0) throw new Error(`the planted bugs do not type-check: ${errors.join('; ')}`);
    // The logs of a failed campaign are kept, but here they are in the copy and are deleted with it.
    mkdirSync(join(copy, 'tmp'));
    const report = join(copy, 'report.json');
    const args = [join(copy, 'tests', 'faults', 'run.ts'), '--quick', '--only', rows, '--json', report];
    const env = { ...process.env, TMPDIR: join(copy, 'tmp') };
    const { stdout, stderr } = await runToEnd(process.execPath, args, {
      cwd: copy,
      env,
      timeoutMs: campaignMs,
      groupGraceMs: 30_000,
    });
    if (!existsSync(report)) throw new Error(`the campaign ended without a report\n${stdout}${stderr}`);
    const results = JSON.parse(readFileSync(report, 'utf8')) as Result[];
    return planted.map(({ name, found }) => ({ name, finding: nameOf(results, found) }));
  } finally {
    rmSync(copy, { recursive: true, force: true });
  }
}

function nameOf(results: Result[], found: RegExp): string | undefined {
  for (const { row, findings } of results) {
    const finding = findings.find((text) => found.test(text));
    if (finding !== undefined) return `${row.name}: ${finding.slice(0, 160)}`;
  }
  return undefined;
}
