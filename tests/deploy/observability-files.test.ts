import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { createMetrics } from '#libs/service/metrics.ts';
import { describeMetrics } from '../../tools/generate/metrics.ts';
import { readScrape } from '../support/metrics.ts';
import { alerts, dashboards, rules } from '../support/rules.ts';

/**
 * Tests that alerts and dashboards use existing metrics and labels. tests/deploy/observability.e2e.test.ts compares
 * those with a running bank.
 */
const root = join(import.meta.dirname, '..', '..');

/**
 * Labels by metric: ours, Node's, and those of recording rules. Prometheus adds `instance` and
 * `job`.
 */
async function known(): Promise<Map<string, Set<string>>> {
  const common = ['service', 'instance', 'job', 'namespace'];
  const labels = new Map<string, Set<string>>();
  for (const { name, type, labels: own } of describeMetrics()) {
    const suffixes = type === 'histogram' ? ['_bucket', '_count', '_sum'] : [''];
    for (const suffix of suffixes)
      labels.set(name + suffix, new Set([...common, ...own, ...(suffix === '_bucket' ? ['le'] : [])]));
  }
  for (const { name, labels: own } of readScrape(await createMetrics('test').text()).series)
    if (!labels.has(name)) labels.set(name, new Set([...common, ...Object.keys(own)]));
  for (const { record } of rules) if (record !== undefined) labels.set(record, new Set());
  return labels;
}

const metrics = await known();

/** Returns the unknown names in an expression. */
function wrongNames(expression: string): string[] {
  const wrong: string[] = [];
  const names = [...expression.matchAll(/\b(?:corebanking[_:]|nodejs_|process_)[\w:]*/g)].map(([name]) => name);
  if (names.length === 0) wrong.push('it names no metric');
  for (const name of names) if (!metrics.has(name)) wrong.push(`no metric ${name}`);
  for (const [, name = '', selector = ''] of expression.matchAll(
    /\b((?:corebanking|nodejs|process)[\w:]*)\{([^}]*)\}/g,
  )) {
    for (const [, label = ''] of selector.matchAll(/(\w+)\s*(?:=~|!~|!=|=)/g))
      if (!metrics.get(name)?.has(label)) wrong.push(`${name} has no label ${label}`);
  }
  const all = new Set(names.flatMap((name) => [...(metrics.get(name) ?? [])]));
  for (const [, list = ''] of expression.matchAll(/\b(?:by|on)\s*\(([^)]*)\)/g)) {
    for (const label of list.split(',').map((part) => part.trim()))
      if (label !== '' && !all.has(label) && !expression.includes(`"${label}", "$1"`))
        wrong.push(`nothing here has a label ${label}`);
  }
  return wrong;
}

test('the check of names finds unknown names', () => {
  expect(wrongNames('sum by (colour) (rate(corebanking_commands_total{shape="x"}[5m])) / corebanking_nothing')).toEqual(
    [
      'no metric corebanking_nothing',
      'corebanking_commands_total has no label shape',
      'nothing here has a label colour',
    ],
  );
});

describe('rules', () => {
  test.each(rules.map(({ name, expr }) => [name, expr]))('%s uses existing metrics and labels', (_name, expr) => {
    expect(wrongNames(expr)).toEqual([]);
  });

  test.each(alerts.map((alert) => [alert.name, alert]))(
    '%s has a severity, a summary, and its own runbook',
    (name, { severity, summary, runbook }) => {
      expect(['page', 'ticket']).toContain(severity);
      expect(summary).toMatch(/\w/);
      expect(runbook).toBe(`docs/runbooks/${name}.md`);
      const page = readFileSync(join(root, runbook), 'utf8');
      expect(page.split('\n')[0]).toBe(`# ${name}`);
      for (const part of ['## What it means', '## Look here', '## Do this']) expect(page).toContain(`\n${part}\n`);
    },
  );

  test.each(['BankServiceDown', 'BankPostgresAway', 'BankCommandsStuck'])('%s covers every service', (alert) => {
    const expr = alerts.find(({ name }) => name === alert)?.expr;
    for (const service of ['ledger', 'accounts', 'webhooks']) expect(expr).toMatch(new RegExp(`["|]${service}["|]`));
  });

  test('every runbook belongs to an alert', () => {
    expect(readdirSync(join(root, 'docs/runbooks')).toSorted()).toEqual(
      [...alerts.map(({ name }) => `${name}.md`), 'README.md', 'missing-payment.md'].toSorted(),
    );
  });
});

describe('dashboards', () => {
  test('there are four, each with its own id', () => {
    expect(dashboards.map(([file]) => file)).toEqual([
      'books.json',
      'golden-signals.json',
      'kafka.json',
      'ledger.json',
    ]);
    expect(new Set(dashboards.map(([, { uid }]) => uid)).size).toBe(4);
  });

  test.each(
    dashboards.flatMap(([file, { panels }]) => panels.map((panel) => [`${file}: ${panel.title}`, panel] as const)),
  )('%s', (_name, { targets }) => {
    expect(targets.length).toBeGreaterThan(0);
    for (const { expr } of targets) expect(wrongNames(expr), expr).toEqual([]);
  });
});

test('every file for Prometheus, Grafana, and the collector exists', () => {
  for (const file of [
    'prometheus.yml',
    'otel-collector.yaml',
    'grafana/provisioning/datasources/datasources.yaml',
    'grafana/provisioning/dashboards/dashboards.yaml',
  ]) {
    expect(existsSync(join(root, 'deploy/observability', file)), file).toBe(true);
  }
});
