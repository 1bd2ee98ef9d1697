import { type Result, wholeRun } from '../faults/campaign.ts';
import type { HaRow } from './measure.ts';

/**
 * Returns the measurements of each row. RPO: operations with a 2xx response that are missing in the books or posted twice,
 * and events and balances that differ from the books. RTO: the time from a failure until the last failed write was sent. A
 * write fails if it gets 503, 504, or 202, or if its connection is cut; after the allowed time, 99 % must get 2xx.
 */
export function table(results: Result[]): string {
  const lines = results
    .filter(({ row }) => row !== wholeRun && !row.name.startsWith('self-test'))
    .map((result) => {
      const { row, findings, recoveredMs } = result;
      const { outageMs, figures } = row as HaRow;
      const lost = findings.filter((finding) => /LOST|DOUBLED|^I[134567]:/.test(finding)).length;
      const share =
        figures && figures.writes > 0
          ? `${(100 - (100 * figures.troubled) / figures.writes).toFixed(1)} % of ${figures.writes}`
          : '–';
      return `| ${row.title} | ${lost === 0 ? '0' : `**${lost}**`} | ${seconds(outageMs)} | ${figures ? seconds(figures.outageMs) : '–'} | ${seconds(recoveredMs)} | ${share} |`;
    });
  return [
    '| event | RPO: acknowledged and lost | RTO allowed | RTO measured | all normal after | writes with 2xx at the first attempt |',
    '|---|---|---|---|---|---|',
    ...lines,
  ].join('\n');
}

const seconds = (ms: number): string => (Number.isFinite(ms) ? `${(ms / 1000).toFixed(1)} s` : 'never');
