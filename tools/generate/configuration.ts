import type { z } from 'zod';
import { migrationConfig } from '#libs/service/migration.ts';
import { bootstrapConfig } from '#services/accounts/bootstrap-key.ts';
import { accountsConfig } from '#services/accounts/config.ts';
import { republishConfig } from '#services/accounts/republish-keys.ts';
import { dashboardConfig } from '#services/dashboard/config.ts';
import { gatewayConfig } from '#services/gateway/config.ts';
import { ledgerConfig } from '#services/ledger/config.ts';
import { verifyConfig } from '#services/verify-books.ts';
import { webhooksConfig } from '#services/webhooks/config.ts';
import { topicsConfig } from '../../deploy/create-topics.ts';
import { resendConfig } from '../../deploy/recovery/resend-commands.ts';
import { describeConfig, type VariableDescription } from './describe-config.ts';

/** The configuration of each program. */
export const programs: Record<string, z.ZodObject> = {
  gateway: gatewayConfig,
  ledger: ledgerConfig,
  accounts: accountsConfig,
  webhooks: webhooksConfig,
  dashboard: dashboardConfig,
  'ledger/migrate': migrationConfig,
  'accounts/migrate': migrationConfig,
  'webhooks/migrate': migrationConfig,
  'accounts/bootstrap-key': bootstrapConfig,
  'create-topics': topicsConfig,
  'verify-books': verifyConfig,
  'accounts/republish-keys': republishConfig,
  'recovery/resend-commands': resendConfig,
};

const inTables = (text: string): string => text.replaceAll('|', '\\|');

function row({ name, type, required, default: value, description, secret }: VariableDescription): string {
  const fallback = required ? '**required**' : value === undefined ? '–' : value === '' ? 'empty' : `\`${value}\``;
  return `| \`${name}\` | ${inTables(type)} | ${inTables(fallback)} | ${secret ? 'secret' : ''} | ${inTables(description)} |`;
}

/** Returns docs/configuration.md. */
export function configurationPage(): string {
  const described = Object.entries(programs).map(
    ([program, schema]) =>
      [program, new Map(describeConfig(schema).map((variable) => [variable.name, row(variable)]))] as const,
  );
  const rows = new Set(described.flatMap(([, variables]) => [...variables.values()]));
  // Variables that several programs share are listed once.
  const groups = Map.groupBy(rows, (line) =>
    described
      .filter(([, variables]) => [...variables.values()].includes(line))
      .map(([program]) => program)
      .join(', '),
  );
  const sections = [...groups].map(
    ([readers, lines]) =>
      `## ${readers}\n\n| variable | value | default | | meaning |\n|---|---|---|---|---|\n${lines.join('\n')}\n`,
  );
  return `# Configuration

The environment variables of every program, grouped by the programs that read them. Generated from their schemas by \`npm run generate\`.

- A program that cannot start lists every missing or invalid variable, but never a value.
- Each variable NAME may be given as \`NAME_FILE\` instead, the path of a file that contains the value, for mounted secrets. Setting both is an
  error. A trailing line break in the file is ignored.
- An empty variable counts as unset.
- Unless \`BANK_MODE\` is trial, a program refuses to start with unencrypted connections, guessable secrets, or conveniences for tests.
- \`LOG_LEVEL\` and \`HEALTH_PORT\` are read by every long-running process. Its name in logs and groups is its first argument, by default
  its host and process id.
- Node and OpenTelemetry have [their](https://opentelemetry.io/docs/specs/otel/configuration/sdk-environment-variables/) own variables:
  \`OTEL_EXPORTER_OTLP_ENDPOINT\` turns on traces over OTLP/HTTP, \`OTEL_EXPORTER_OTLP_HEADERS\` has the collector's credentials, and
  \`OTEL_TRACES_SAMPLER\` with \`OTEL_TRACES_SAMPLER_ARG\` decides which requests are traced.

${sections.join('\n')}`;
}
