import { type Result, wholeRun } from './campaign.ts';
import { titleOf } from './row.ts';

/** Returns the table that a run prints: each fault, its recovery, and the responses that callers got. */
export function table(results: Result[], quick: boolean): string {
  const lines = results
    .filter(({ row }) => row !== wholeRun)
    .map(({ row, recoveredMs, answers, skipped }) => {
      const cells =
        skipped === undefined
          ? [seconds(row.recoveryMs), seconds(recoveredMs), answersText(answers)]
          : ['', '', `SKIPPED: ${skipped}`];
      return `| ${[titleOf(row, quick), ...cells].join(' | ')} |`;
    });
  return ['| fault | recovery allowed | measured | what callers saw |', '|---|---|---|---|', ...lines].join('\n');
}

const seconds = (ms: number): string => (Number.isFinite(ms) ? `${(ms / 1000).toFixed(1)} s` : 'never');

function answersText(answers: Record<string, number>): string {
  return Object.entries(answers)
    .sort(([a], [b]) => a.localeCompare(b))
    .map(([status, count]) => `${count} × ${status}`)
    .join(', ');
}

/** Returns the number of operations whose outcome was checked, and of those that were lost or applied twice. */
export function totals(results: Result[]): string {
  const all = results.flatMap(({ findings }) => findings);
  const count = (word: string) => all.filter((finding) => finding.includes(word)).length;
  const operations = results.reduce((sum, result) => sum + result.operations, 0);
  const skipped = results.filter((result) => result.skipped !== undefined).length;
  return `${operations} operations checked, ${count('LOST')} lost, ${count('DOUBLED')} applied twice${skipped === 0 ? '' : `; ${skipped} rows skipped`}`;
}

const shownFindings = 20;

/** Prints the result of a row as one line, with its first findings. */
export function print(result: Result | undefined, say: (line: string) => void): void {
  if (!result) return;
  const { row, findings, skipped, notes, recoveredMs, operations, tookMs } = result;
  const recovered = row === wholeRun ? '' : `normal after ${Math.round(recoveredMs)} ms, ${operations} operations, `;
  const verdict = findings.length > 0 ? 'FAILED' : skipped === undefined ? 'ok    ' : 'SKIP  ';
  say(
    `${verdict} ${row.name.padEnd(28)} ${skipped ?? recovered}${skipped === undefined ? `${(tookMs / 1000).toFixed(1)} s` : ''}`,
  );
  for (const note of notes) say(`       ${note}`);
  for (const finding of findings.slice(0, shownFindings)) say(`       ${finding}`);
  if (findings.length > shownFindings) say(`       … ${findings.length - shownFindings} more`);
}
