import type { BankProcess } from './bank.ts';

/** One line of a scrape. */
interface Series {
  name: string;
  labels: Record<string, string>;
  value: number;
}

export interface Scrape {
  series: Series[];
  /** Names of metrics with their type and help. */
  families: Map<string, { type: string; help: string }>;
  /** Returns the sum of all series of that name with these labels, or undefined if there is none. */
  value(name: string, labels?: Record<string, string>): number | undefined;
}

/** Reads /metrics of a process. */
export async function scrape({ health_url }: Pick<BankProcess, 'health_url'>): Promise<Scrape> {
  const response = await fetch(new URL('/metrics', health_url), { signal: AbortSignal.timeout(10_000) });
  return readScrape(await response.text());
}

/** Parses the text format of Prometheus. */
export function readScrape(text: string): Scrape {
  const series: Series[] = [];
  const families = new Map<string, { type: string; help: string }>();
  for (const line of text.split('\n')) {
    const comment = /^# (HELP|TYPE) (\S+) (.*)$/.exec(line);
    if (comment) {
      const [, kind, name = '', rest = ''] = comment;
      const family = families.get(name) ?? { type: '', help: '' };
      families.set(name, { ...family, [kind === 'HELP' ? 'help' : 'type']: rest });
      continue;
    }
    const [, name, labels = '', value] = /^([a-zA-Z_:][\w:]*)(?:\{(.*)\})? (\S+)$/.exec(line) ?? [];
    if (name === undefined) continue;
    series.push({
      name,
      labels: Object.fromEntries(
        [...labels.matchAll(/([a-zA-Z_]\w*)="((?:[^"\\]|\\.)*)"/g)].map((label) => [label[1], label[2]]),
      ),
      value: Number(value),
    });
  }
  return {
    series,
    families,
    value(name, labels = {}) {
      const found = series.filter(
        (one) => one.name === name && Object.entries(labels).every(([label, value]) => one.labels[label] === value),
      );
      return found.length === 0 ? undefined : found.reduce((sum, one) => sum + one.value, 0);
    },
  };
}
