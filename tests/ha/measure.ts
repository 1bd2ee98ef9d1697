import type { Evidence } from '../faults/evidence.ts';
import { type Attempt, decides, isDone } from '../faults/journal.ts';
import { type Column, seconds } from '../faults/report.ts';
import type { Bench, Row } from '../faults/row.ts';

/** The time of a failure, and the limit for writes after it. */
interface Moment {
  what: string;
  at: number;
}

interface Figures {
  /** The longest time from a failure until the last write that did not get a normal response. */
  outageMs: number;
  writes: number;
  /** Such responses are 503, 504, 202, and closed connections. */
  troubled: number;
}

export interface HaRow extends Row {
  /** The time for which writes may fail after each failure. After that, 99 % must succeed. */
  outageMs: number;
  /** The results of the last run. */
  figures?: Figures;
}

export type Mark = (what: string) => void;

const wantedShare = 0.99;

/** A row that marks failures while it injects them. Its result depends on the writers' responses after each failure. */
export function haRow(
  row: Omit<HaRow, 'inject' | 'recoveryMs'> & {
    recoveryMs?: number;
    inject(bench: Bench, mark: Mark): Promise<number | void>;
  },
): HaRow {
  const moments: Moment[] = [];
  const made: HaRow = {
    recoveryMs: 10_000,
    warmUpMs: 2000,
    ...row,
    inject: (bench) => {
      moments.length = 0;
      return row.inject(bench, (what) => void moments.push({ what, at: performance.now() }));
    },
    check: async (evidence, bench) => [
      ...judge(made, moments, evidence, bench),
      ...((await row.check?.(evidence, bench)) ?? []),
    ],
  };
  return made;
}

function judge(row: HaRow, moments: Moment[], { attempts, slowness, t0 }: Evidence, { say }: Bench): string[] {
  const writes = attempts.filter(({ attempt }) => attemptEnd(attempt) >= (moments[0]?.at ?? t0));
  const troubled = writes.filter(({ attempt }) => isTrouble(attempt));
  const bound = row.outageMs * slowness;
  const findings: string[] = [];
  let longest = 0;
  for (const [i, { what, at }] of moments.entries()) {
    const until = moments[i + 1]?.at ?? Number.POSITIVE_INFINITY;
    // A write that was in flight when the next server failed, and got its response after that, is
    // attributed to that failure.
    const own = (all: typeof writes) =>
      all.filter(({ attempt }) => attemptEnd(attempt) >= at && attemptEnd(attempt) < until);
    const bad = own(troubled);
    const outage = Math.max(0, ...bad.map(({ attempt }) => attempt.sentAt - at));
    const seen = Object.entries(Object.groupBy(bad, ({ attempt }) => String(attempt.status))).map(
      ([status, of]) => `${of?.length} × ${status}`,
    );
    const late = own(writes).filter(({ attempt }) => attempt.sentAt >= at + bound);
    const lateBad = late.filter(({ attempt }) => isTrouble(attempt));
    say(
      `${what}: ${own(writes).length} writes${bad.length === 0 ? ', all answered' : `, until ${Math.round(outage)} ms ${seen.join(', ')}`}`,
    );
    longest = Math.max(longest, outage);
    if (lateBad.length > late.length * (1 - wantedShare))
      findings.push(
        `HA: ${what}: of ${late.length} writes sent ${bound} ms later and after, ${lateBad.length} were not answered 2xx`,
      );
    if (row.outageMs === 0 && bad.length > 0) findings.push(`HA: ${what}: ${seen.join(', ')}, and none is allowed`);
  }
  row.figures = { outageMs: longest, writes: writes.length, troubled: troubled.length };
  return findings;
}

const attemptEnd = ({ sentAt, tookMs }: Attempt): number => sentAt + tookMs;

/** Reports whether the write was neither executed nor refused, so that the caller has to query or repeat it. */
function isTrouble(attempt: Attempt): boolean {
  return !isDone(attempt.status) && !decides(attempt);
}

const ofRow =
  (cell: (row: HaRow) => string): Column[1] =>
  ({ row }) =>
    cell(row as HaRow);

/**
 * RPO: operations with a 2xx response that are missing in the books or posted twice, and events and balances that
 * differ from the books. RTO: the time from a failure until the last failed write was sent. A write fails if it gets
 * 503, 504, or 202, or if its connection is cut; after the allowed time, 99 % must get 2xx.
 */
export const haColumns: Column[] = [
  [
    'RPO: acknowledged and lost',
    ({ findings }) => String(findings.filter((finding) => /LOST|DOUBLED|^I[134567]:/.test(finding)).length),
  ],
  ['RTO allowed', ofRow(({ outageMs }) => seconds(outageMs))],
  ['RTO measured', ofRow(({ figures }) => (figures ? seconds(figures.outageMs) : '–'))],
  ['all normal after', ({ recoveredMs }) => seconds(recoveredMs)],
  [
    'writes with 2xx at the first attempt',
    ofRow(({ figures }) =>
      figures && figures.writes > 0
        ? `${(100 - (100 * figures.troubled) / figures.writes).toFixed(1)} % of ${figures.writes}`
        : '–',
    ),
  ],
];
