import { readdirSync, readFileSync } from 'node:fs';
import { Ajv } from 'ajv';
import { expect, test } from 'vitest';
import { parse } from 'yaml';
import { commandPartitions } from '#libs/contracts/topics.ts';
import { migrationConfig } from '#libs/service/migration.ts';
import { accountsConfig } from '#services/accounts/config.ts';
import { dashboardConfig } from '#services/dashboard/config.ts';
import { gatewayConfig } from '#services/gateway/config.ts';
import { ledgerConfig } from '#services/ledger/config.ts';
import { webhooksConfig } from '#services/webhooks/config.ts';
import { describeConfig } from '../../tools/generate/describe-config.ts';
import { secretsConfig } from '../secrets/kubernetes.ts';

/** Checks that need neither Helm nor a cluster. deploy/check/kubernetes.sh has those that do. */
const chart = new URL('core-banking/', import.meta.url);
const read = (file: string) => readFileSync(new URL(file, chart), 'utf8');
type Values = Record<string, unknown>;

const schema = JSON.parse(read('values.schema.json')) as {
  properties: Record<
    string,
    { properties: Record<string, { $ref?: string; properties: Record<string, { maximum: number }> }> }
  >;
  definitions: Record<string, { properties: Record<string, unknown> }>;
};
const isValid = new Ajv({ strict: false }).compile(schema);
const defaults = parse(read('values.yaml')) as Values;

/** Merges values over the defaults as Helm does. */
function over(values: Values, more: Values): Values {
  const isObject = (value: unknown): value is Values =>
    typeof value === 'object' && value !== null && !Array.isArray(value);
  const changed = Object.entries(more).map(([name, value]) => [
    name,
    isObject(value) && isObject(values[name]) ? over(values[name], value) : value,
  ]);
  return { ...values, ...Object.fromEntries(changed) };
}

const examples = readdirSync(new URL('ci/', chart)).map((file) => `ci/${file}`);
test.each([...examples, 'values-trial.yaml', '../../kubernetes/values.yaml'])('the schema accepts %s', (file) => {
  expect([isValid(over(defaults, parse(read(file)) as Values)), isValid.errors]).toEqual([true, null]);
});

test.each<[string, Values]>([
  ['an unknown value', { gateway: { replicaCount: 3 } }],
  ['a misspelled variable', { ledger: { config: { BACKDATE_DAYZ: 1 } } }],
  ['a secret among the variables', { gateway: { config: { API_KEY_PEPPER: 'x' } } }],
  ['a variable that the chart sets itself', { gateway: { config: { PORT: 1 } } }],
  ['a variable of another service', { accounts: { config: { BACKDATE_DAYS: 1 } } }],
  ['more processes than partitions', { ledger: { autoscaling: { maxReplicas: commandPartitions + 1 } } }],
  ['a number of processes that is not one', { accounts: { replicas: 0 } }],
  ['a target for the processor without a unit', { gateway: { autoscaling: { averageCpu: '1' } } }],
  ['another mode', { mode: 'test' }],
  ['an invalid digest', { image: { digest: 'sha256:abc' } }],
  ['a route without a Gateway', { gatewayApi: { enabled: true } }],
  ['an autoscaler of the dashboard', { dashboard: { autoscaling: { enabled: true } } }],
  ['a secret among the variables of the dashboard', { dashboard: { config: { SESSION_SECRET: 'x' } } }],
  ['a CA from two places', { trustedCa: { kafka: { secretName: 'a', configMapName: 'b', key: 'c' } } }],
  ['a common label that selects pods', { commonLabels: { 'app.kubernetes.io/component': 'x' } }],
  ['a label of a service that selects pods', { ledger: { pod: { labels: { 'app.kubernetes.io/name': 'x' } } } }],
  ['an invalid label', { pod: { labels: { team: 'a b' } } }],
  ['a volume in place of the secrets', { pod: { volumes: [{ name: 'files', emptyDir: {} }] } }],
  ['a mount over the secrets', { ledger: { pod: { volumeMounts: [{ name: 'x', mountPath: '/run/core-banking/' }] } } }],
  ['a mount over the program', { pod: { volumeMounts: [{ name: 'x', mountPath: '/app' }] } }],
  ['a misspelled affinity', { gateway: { pod: { affinity: { podAntiAfinity: {} } } } }],
  [
    'a spread constraint without maxSkew',
    { pod: { topologySpreadConstraints: [{ topologyKey: 'zone', whenUnsatisfiable: 'DoNotSchedule' }] } },
  ],
  [
    'a spread constraint with an unknown whenUnsatisfiable',
    {
      ledger: { pod: { topologySpreadConstraints: [{ topologyKey: 'zone', maxSkew: 1, whenUnsatisfiable: 'Wait' }] } },
    },
  ],
  ['a misspelled member of a service account', { accounts: { pod: { serviceAccount: { annotation: {} } } } }],
  ['an invalid name of a priority class', { pod: { priorityClassName: 'Bank Books' } }],
  ['a name of the database that is none of a role', { database: { name: 'x; drop' } }],
])('the schema refuses %s', (_what, values) => {
  expect(isValid(over(defaults, values))).toBe(false);
});

test('by default, a network policy refuses all connections of the pods that no other policy allows', () => {
  expect(defaults['networkPolicy']).toMatchObject({ enabled: true });
  const [denial = ''] = read('templates/network-policies.yaml').split('{{- $services');
  expect(denial).toMatch(
    /^\{\{- if \.Values\.networkPolicy\.enabled \}\}\n[^]*-default-deny\n[^]* {4}matchLabels:\n {6}app\.kubernetes\.io\/name: core-banking\n {6}app\.kubernetes\.io\/instance: .*\n {2}policyTypes: \[Ingress, Egress\]\n$/,
  );
});

test('every network policy rule of the values names its peers, so none allows every peer', () => {
  const { kafka, postgres, issuer, httpFrom, metricsFrom, dnsTo } = defaults['networkPolicy'] as Record<
    string,
    unknown[]
  > &
    Record<'kafka' | 'postgres' | 'issuer', { to: unknown[] }>;
  for (const peers of [kafka.to, postgres.to, issuer.to, httpFrom, metricsFrom, dnsTo])
    expect(peers?.length).toBeGreaterThan(0);
  expect(read('templates/network-policies.yaml')).toContain('{{- with .to }}\n- ports:');
});

test('every service can be scheduled separately, and all are spread over zones, then nodes', () => {
  for (const service of ['gateway', 'dashboard', 'ledger', 'accounts', 'webhooks'])
    expect([service, schema.properties[service]?.properties['pod']?.$ref]).toEqual([service, '#/definitions/pod']);
  const ofAll = defaults['pod'] as Values;
  expect(Object.keys(ofAll).sort()).toEqual(Object.keys(schema.definitions['pod']?.properties ?? {}).sort());
  expect(ofAll['topologySpreadConstraints']).toMatchObject([
    { topologyKey: 'topology.kubernetes.io/zone' },
    { topologyKey: 'kubernetes.io/hostname' },
  ]);
});

test('autoscaling never exceeds the number of partitions', () => {
  for (const service of ['ledger', 'accounts', 'webhooks'])
    expect(schema.properties[service]?.properties['autoscaling']?.properties['maxReplicas']?.maximum).toBe(
      commandPartitions,
    );
});

test('every required variable is set, and every variable that is set is known', () => {
  const helpers = read('templates/_helpers.tpl');
  const lists = new Map(
    [...helpers.matchAll(/^ {2}"([a-z]+)" \(list ("[A-Z_" ]+)\)/gm)].map(([, component = '', names = '']) => [
      component,
      [...names.matchAll(/[A-Z_]+/g)].map(([name]) => name),
    ]),
  );
  const schemas = {
    gateway: gatewayConfig,
    ledger: ledgerConfig,
    accounts: accountsConfig,
    webhooks: webhooksConfig,
    dashboard: dashboardConfig,
    'migrate-ledger': migrationConfig,
    'migrate-accounts': migrationConfig,
    'migrate-webhooks': migrationConfig,
  };
  // deployments.yaml requires brokers and a host of the database. The dashboard has API_URL from the chart, JWT_ISSUER from
  // the gateway, and the others if it runs at all.
  const given = ['KAFKA_BROKERS', 'DATABASE_URL', 'MIGRATION_DATABASE_URL', 'API_URL', 'JWT_ISSUER'];
  const ofDashboard = ['DASHBOARD_CLIENT', 'PUBLIC_URL'];
  for (const [component, config] of Object.entries(schemas)) {
    const own = lists.get(component) ?? [];
    const required = describeConfig(config)
      .filter((variable) => variable.required)
      .map(({ name }) => name);
    expect([component, required.filter((name) => ![...given, ...ofDashboard, ...own].includes(name))]).toEqual([
      component,
      [],
    ]);
    expect([component, own.filter((name) => !Object.keys(config.shape).includes(name))]).toEqual([component, []]);
  }
  expect(lists.size).toBe(5);
  const known = new Set([
    ...Object.values(schemas).flatMap(({ shape }) => Object.keys(shape)),
    'EVENTS_RETENTION_DAYS',
    // Of the job secrets and of Node, and the files that URLs name.
    ...[...Object.keys(secretsConfig.shape), 'NODE_EXTRA_CA_CERTS', 'MASTER_KEYS'],
    ...['DATABASE_PASSWORD', 'MIGRATION_DATABASE_PASSWORD'],
  ]);
  const templates = ['_helpers.tpl', 'deployments.yaml', 'jobs.yaml', 'autoscaling.yaml']
    .map((file) => read(`templates/${file}`))
    .join('\n');
  const named = [...templates.matchAll(/"([A-Z][A-Z]+_[A-Z_]+?)(?:_FILE)?"/g)].map(([, name]) => name ?? '');
  expect(named.length).toBeGreaterThan(40);
  expect(named.filter((name) => !known.has(name))).toEqual([]);
});

test('at most 90 values, of which a bank gives four', () => {
  const documented = read('README.md').match(/^\| `/gm)?.length ?? 0;
  expect(documented).toBeGreaterThan(50);
  expect(documented).toBeLessThanOrEqual(90);
  const least = parse(read('ci/least-values.yaml')) as Values;
  expect(least).toEqual({
    image: { repository: 'registry.example/bank/core-banking' },
    host: 'bank.example',
    kafka: { brokers: 'kafka:9093' },
    database: { host: 'postgres' },
  });
});

test('the chart has the version of the service', () => {
  const { version } = JSON.parse(readFileSync(new URL('../../package.json', import.meta.url), 'utf8')) as {
    version: string;
  };
  expect(parse(read('Chart.yaml'))).toMatchObject({ appVersion: version });
});
