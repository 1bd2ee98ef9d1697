import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parse } from 'yaml';

export const rulesFile = join(import.meta.dirname, '../../deploy/observability/alerts.yaml');

interface Rule {
  record?: string;
  alert?: string;
  expr: string;
  labels?: { severity?: string };
  annotations?: { summary?: string; runbook?: string };
}

/** The rules in deploy/observability/alerts.yaml, in order. */
export const rules = (parse(readFileSync(rulesFile, 'utf8')) as { groups: { rules: Rule[] }[] }).groups
  .flatMap((group) => group.rules)
  .map((rule) => ({ ...rule, name: rule.record ?? rule.alert ?? '' }));

export const alerts = rules
  .filter(({ alert }) => alert !== undefined)
  .map(({ name, expr, labels, annotations }) => ({
    name,
    expr,
    severity: labels?.severity ?? '',
    summary: annotations?.summary ?? '',
    runbook: annotations?.runbook ?? '',
  }));

interface Dashboard {
  uid: string;
  title: string;
  panels: { title: string; targets: { expr: string }[] }[];
}

const dashboardsDir = join(import.meta.dirname, '../../deploy/observability/grafana/dashboards');

/** Grafana's dashboards, by file. */
export const dashboards = readdirSync(dashboardsDir).map(
  (file) => [file, JSON.parse(readFileSync(join(dashboardsDir, file), 'utf8')) as Dashboard] as const,
);
