import { readFileSync } from 'node:fs';
import { parse } from 'yaml';
import { z } from 'zod';
import { describeConfig, kafkaConfig, processConfig } from '#libs/service/config.ts';
import { accountsConfig } from '#services/accounts/config.ts';
import { gatewayConfig } from '#services/gateway/config.ts';
import { ledgerConfig } from '#services/ledger/config.ts';

const chart = new URL('../../deploy/helm/core-banking/', import.meta.url);
const docs = new URL('../../docs/kubernetes.md', import.meta.url);

/** What the chart sets itself: addresses of a container, and the pod's name. */
const ofTheChart = ['HOST', 'PORT', 'HEALTH_HOST', 'HEALTH_PORT', 'INSTANCE', 'KAFKA_SSL_CA'];

/** What comes from Secrets, and from nowhere else. JWT_HS256_SECRET is for tests: production refuses it. */
const secrets = [
  'DATABASE_URL', 'API_KEY_PEPPER', 'IDEMPOTENCY_SECRET', 'DASHBOARD_CLIENT_SECRET', 'SESSION_SECRET', 'JWT_HS256_SECRET',
  'KAFKA_SASL_USERNAME', 'KAFKA_SASL_PASSWORD', 'KAFKA_SSL_CERT', 'KAFKA_SSL_KEY',
  'GATEWAY_MAC_KEYS', 'ACCOUNTS_MAC_KEYS', 'LEDGER_MAC_KEYS', 'API_KEY_SIGNING_KEY', 'API_KEY_PUBLIC_KEYS',
];

interface Schema {
  description?: string;
  properties?: Record<string, Schema>;
  $ref?: string;
  definitions?: Record<string, Schema>;
}

/** values.schema.json with the variables that the services' schemas name under config: a misspelt one is refused before anything is installed. */
export function valuesSchema(): string {
  const schema = JSON.parse(readFileSync(new URL('values.schema.json', chart), 'utf8')) as Schema;
  const sources = { sharedConfig: z.object({ ...processConfig, ...kafkaConfig }), gatewayConfig, ledgerConfig, accountsConfig };
  for (const [definition, source] of Object.entries(sources)) {
    const variables = describeConfig(source).filter(({ name }) => ![...ofTheChart, ...secrets].includes(name));
    const properties = Object.fromEntries(variables.map(({ name, description }) => [name, { type: ['string', 'integer', 'boolean'], description }]));
    const { description } = schema.definitions?.[definition] ?? {};
    schema.definitions = { ...schema.definitions, [definition]: { type: 'object', description, additionalProperties: false, properties } as Schema };
  }
  return `${JSON.stringify(schema, null, 2)}\n`;
}

/** docs/kubernetes.md with the table of all values, as values.schema.json describes them and values.yaml sets them. */
export function kubernetesPage(): string {
  const schema = JSON.parse(valuesSchema()) as Schema;
  const values = parse(readFileSync(new URL('values.yaml', chart), 'utf8')) as unknown;
  const table = ['| value | default | |', '|---|---|---|', ...rows(schema, schema, values, [])].join('\n');
  return readFileSync(docs, 'utf8').replace(/(<!-- values -->\n)[^]*(<!-- end of values -->)/, (_all, begin: string, end: string) => `${begin}${table}\n${end}`);
}

/** What has no description of its own is a group: its members are described. */
function rows(root: Schema, schema: Schema, value: unknown, path: string[]): string[] {
  const own = schema.$ref === undefined ? schema : (root.definitions?.[schema.$ref.split('/').pop() ?? ''] ?? {});
  const members = Object.entries(own.properties ?? {});
  if (own.description === undefined) return members.flatMap(([name, member]) => rows(root, member, (value as Record<string, unknown>)[name], [...path, name]));
  if (value === undefined) return [];
  const variables = schema.$ref === undefined ? '' : `: ${members.map(([name]) => `\`${name}\``).join(', ')}`;
  return [`| \`${path.join('.')}\` | \`${JSON.stringify(value)}\` | ${own.description}${variables} |`];
}
