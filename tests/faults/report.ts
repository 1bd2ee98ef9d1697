import { type Result, wholeRun } from './campaign.ts';

/** A column of the table at the end of a run: its heading, and what it says of a row. */
export type Column = [heading: string, cell: (result: Result) => string];

/** Returns the table at the end of a run: one line for each row. */
export function table(results: Result[], columns: Column[]): string {
  const line = (cells: string[]) => `| ${cells.join(' | ')} |`;
  const lines = results
    .filter(({ row }) => row !== wholeRun)
    .map((result) => [result.title, ...columns.map(([, cell]) => (result.skipped ? 'SKIPPED' : cell(result)))]);
  const headings = ['event', ...columns.map(([heading]) => heading)];
  return [headings, headings.map(() => '---'), ...lines].map(line).join('\n');
}

export const seconds = (ms: number): string => (Number.isFinite(ms) ? `${(ms / 1000).toFixed(1)} s` : 'never');

/** The columns of a fault: its recovery, and the responses that callers got. */
export const faultColumns: Column[] = [
  ['recovery allowed', ({ row }) => seconds(row.recoveryMs)],
  ['measured', ({ recoveredMs }) => seconds(recoveredMs)],
  [
    'what callers saw',
    ({ answers }) =>
      Object.entries(answers)
        .sort(([a], [b]) => a.localeCompare(b))
        .map(([status, count]) => `${count} × ${status}`)
        .join(', '),
  ],
];

/** Returns the number of operations whose outcome was checked, and of those that were lost or applied twice. */
export function totals(results: Result[]): string {
  const all = results.flatMap(({ findings }) => findings);
  const count = (word: string) => all.filter((finding) => finding.includes(word)).length;
  const operations = results.reduce((sum, result) => sum + result.operations, 0);
  return `${operations} operations checked, ${count('LOST')} lost, ${count('DOUBLED')} applied twice`;
}
