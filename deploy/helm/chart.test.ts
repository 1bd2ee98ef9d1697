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

/** Checks that need neither Helm nor a cluster. deploy/check/kubernetes.sh has those that do. */
const chart = new URL('core-banking/', import.meta.url);
const read = (file: string) => readFileSync(new URL(file, chart), 'utf8');
type Values = Record<string, unknown>;

const schema = JSON.parse(read('values.schema.json')) as {
  properties: Record<string, { properties: Record<string, { properties: Record<string, { maximum: number }> }> }>;
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

test.each(readdirSync(new URL('ci/', chart)))('the schema accepts ci/%s', (file) => {
  expect([isValid(over(defaults, parse(read(`ci/${file}`)) as Values)), isValid.errors]).toEqual([true, null]);
});

test.each<[string, Values]>([
  ['an unknown value', { gateway: { replicaCount: 3 } }],
  ['a misspelled variable', { ledger: { config: { BATCH_MAXX: 1 } } }],
  ['a secret among the variables', { gateway: { config: { API_KEY_PEPPER: 'x' } } }],
  ['the previous pepper among the variables', { gateway: { config: { API_KEY_PEPPER_PREVIOUS: 'x' } } }],
  ['headers for the collector among the variables', { ledger: { config: { OTEL_EXPORTER_OTLP_HEADERS: 'a=b' } } }],
  ['a variable that the chart sets itself', { gateway: { config: { PORT: 1 } } }],
  ['a variable of another service', { accounts: { config: { BATCH_MAX: 1 } } }],
  ['more processes than partitions', { ledger: { autoscaling: { maxReplicas: commandPartitions + 1 } } }],
  ['a single process', { accounts: { autoscaling: { minReplicas: 1 } } }],
  ['an invalid digest', { image: { digest: 'sha256:abc' } }],
  ['an Ingress without TRUST_PROXY', { ingress: { enabled: true, host: 'bank.example', tlsSecretName: 'x' } }],
  [
    'a Gateway without TRUST_PROXY',
    {
      gatewayApi: { enabled: true, host: 'bank.example', className: 'x', tlsSecretName: 'x' },
      gateway: { config: { TRUST_PROXY: '' } },
    },
  ],
  ['an Ingress without TLS', { ingress: { enabled: true, host: 'bank.example' } }],
  ['a route without a Gateway', { gatewayApi: { enabled: true, host: 'bank.example' } }],
  ['an autoscaler of the dashboard', { dashboard: { autoscaling: { enabled: true } } }],
  ['a secret among the variables of the dashboard', { dashboard: { config: { SESSION_SECRET: 'x' } } }],
  ['a CA from two places', { trustedCa: { kafka: { secretName: 'a', configMapName: 'b', key: 'c' } } }],
  ['a common label that selects pods', { commonLabels: { 'app.kubernetes.io/component': 'x' } }],
  ['a label of a service that selects pods', { ledger: { podLabels: { 'app.kubernetes.io/name': 'x' } } }],
  ['an invalid label', { podLabels: { team: 'a b' } }],
  ['a volume in place of the secrets', { extraVolumes: [{ name: 'files', emptyDir: {} }] }],
  ['a mount over the secrets', { ledger: { extraVolumeMounts: [{ name: 'x', mountPath: '/run/core-banking/' }] } }],
  ['a mount over the program', { extraVolumeMounts: [{ name: 'x', mountPath: '/app' }] }],
  ['a misspelled affinity', { gateway: { affinity: { podAntiAfinity: {} } } }],
  [
    'a spread constraint without maxSkew',
    { topologySpreadConstraints: [{ topologyKey: 'zone', whenUnsatisfiable: 'DoNotSchedule' }] },
  ],
  [
    'a spread constraint with an unknown whenUnsatisfiable',
    { ledger: { topologySpreadConstraints: [{ topologyKey: 'zone', maxSkew: 1, whenUnsatisfiable: 'Wait' }] } },
  ],
  ['a misspelled member of a service account', { accounts: { serviceAccount: { annotation: {} } } }],
  ['an invalid name of a priority class', { priorityClassName: 'Bank Books' }],
  ['an invalid role name', { migrations: { roles: { ledger: 'x; drop' } } }],
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
  const ofAll = [
    'podLabels',
    'nodeSelector',
    'tolerations',
    'affinity',
    'topologySpreadConstraints',
    'priorityClassName',
    'extraVolumes',
    'extraVolumeMounts',
  ];
  for (const service of ['gateway', 'dashboard', 'ledger', 'accounts', 'webhooks']) {
    const own = ['serviceAccount', ...ofAll];
    expect([
      service,
      own.filter(
        (name) =>
          schema.properties[service]?.properties[name] === undefined ||
          (defaults[service] as Values)[name] === undefined,
      ),
    ]).toEqual([service, []]);
  }
  expect(
    ['commonLabels', ...ofAll].filter((name) => schema.properties[name] === undefined || defaults[name] === undefined),
  ).toEqual([]);
  expect(defaults['topologySpreadConstraints']).toMatchObject([
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
  const secrets = helpers.slice(
    helpers.indexOf('define "core-banking.secrets"'),
    helpers.indexOf('What every pod has in common'),
  );
  const own = new Map(
    [
      ...secrets.matchAll(
        /eq \.component "([a-z-]+)"\)? \}\}\n([^]*?)(?=\{\{- else if|\{\{- end \}\}\n\{\{- if include)/g,
      ),
    ].map(([, component, text = '']) => [
      component,
      [...text.matchAll(/^([A-Z_]+): [A-Z_]+$/gm)].map(([, name]) => name),
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
  // deployments.yaml requires KAFKA_BROKERS; jobs.yaml sets SERVICE_ROLE from a value. The dashboard has API_URL from the
  // chart, JWT_ISSUER from the gateway, and DASHBOARD_CLIENT_ID if it runs at all.
  const given = ['KAFKA_BROKERS', 'SERVICE_ROLE', 'API_URL', 'JWT_ISSUER', 'DASHBOARD_CLIENT_ID', 'PUBLIC_URL'];
  for (const [component, config] of Object.entries(schemas)) {
    const required = describeConfig(config)
      .filter((variable) => variable.required)
      .map(({ name }) => name);
    expect([component, required.filter((name) => ![...given, ...(own.get(component) ?? [])].includes(name))]).toEqual([
      component,
      [],
    ]);
    const known = Object.keys(config.shape);
    expect([component, (own.get(component) ?? ['none']).filter((name) => !known.includes(name ?? ''))]).toEqual([
      component,
      [],
    ]);
  }
  const known = new Set([
    ...Object.values(schemas).flatMap(({ shape }) => Object.keys(shape)),
    'REPLICATION_FACTOR',
    'EVENTS_RETENTION_DAYS',
    'EVENTS_COMPRESSION',
  ]);
  const templates = ['_helpers.tpl', 'deployments.yaml', 'jobs.yaml', 'autoscaling.yaml']
    .map((file) => read(`templates/${file}`))
    .join('\n');
  const named = [
    ...templates.matchAll(/(?:name: |set \$config "|dict "|^)([A-Z][A-Z_]{3,}?)(?:_FILE)?(?=[,"\n: ])/gm),
  ].map(([, name]) => name ?? '');
  expect(named.length).toBeGreaterThan(15);
  expect(named.filter((name) => !known.has(name))).toEqual([]);
});

test('the chart has the version of the service', () => {
  const { version } = JSON.parse(readFileSync(new URL('../../package.json', import.meta.url), 'utf8')) as {
    version: string;
  };
  expect(parse(read('Chart.yaml'))).toMatchObject({ appVersion: version });
});
