import { goals, goalText, isMet } from './goals.ts';
import type { Machine } from './machine.ts';
import type { Line, Outcome } from './row.ts';

/** Returns the report of a run in Markdown: the goals, the figures for them, then machine and settings. */
export function markdown(groups: Record<string, Outcome>, machine: Machine): string {
  const parts = [
    goalsTable(groups),
    ...Object.values(groups)
      .flatMap(({ figures = [] }) => figures)
      .map(({ title, columns, rows }) => `${title}:\n\n${table(columns, rows)}`),
    table(
      ['rows', 'loads', 'other processes, cores, median', 'maximum', 'generator, cores, maximum', 'not 2xx'],
      Object.entries(groups).map(trustRow),
    ),
    table(['measured with', ''], Object.entries(machine)),
  ];
  return `${parts.join('\n\n')}\n`;
}

/** Returns each goal with its figures, in the order of the goals. */
export function goalsTable(groups: Record<string, Outcome>): string {
  const lines = Object.values(groups).flatMap(({ lines }) => lines);
  const ordered = Object.keys(goals).flatMap((id) => lines.filter(({ goal }) => goal === id));
  return table(['what', 'goal', 'measured', 'reached', 'from'], ordered.map(goalRow));
}

function goalRow(line: Line): string[] {
  const goal = goals[line.goal];
  const { title } = goal;
  if ('missing' in line) return [title, goalText(goal), 'not measured', '–', line.missing];
  const met = isMet(goal, line.value);
  return [
    title,
    goalText(goal),
    shown(line.value, 'unit' in goal ? goal.unit : undefined),
    met === undefined ? '–' : met ? 'yes' : 'no',
    line.note,
  ];
}

function trustRow([name, { trust }]: [string, Outcome]): string[] {
  if (trust === undefined) return [name, '–', '–', '–', '–', '–'];
  const { loads, elsewhere, mostElsewhere, mostGenerator, wrong } = trust;
  return [name, String(loads), elsewhere.toFixed(2), mostElsewhere.toFixed(2), mostGenerator.toFixed(2), String(wrong)];
}

/** Formats a figure with three significant digits, the precision of such a measurement. */
export function shown(value: number, unit?: string): string {
  if (!Number.isFinite(value)) return '–';
  const digits = Math.abs(value) >= 100 ? 0 : Math.abs(value) >= 10 ? 1 : 2;
  return `${value.toFixed(digits)}${unit === undefined ? '' : ` ${unit}`}`;
}

export function table(columns: string[], rows: string[][]): string {
  const line = (cells: string[]) =>
    `| ${cells.map((cell) => cell.replaceAll('|', '\\|').replaceAll('\n', ' ')).join(' | ')} |`;
  return [line(columns), `|${columns.map(() => '---').join('|')}|`, ...rows.map(line)].join('\n');
}
