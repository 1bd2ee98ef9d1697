import packageJson from '../../package.json' with { type: 'json' };
import { asvsPage } from './asvs.ts';
import { chartReadme, valuesSchema } from './chart.ts';
import { configurationPage } from './configuration.ts';
import { contractRulesPage } from './contract-rules.ts';
import { decisionsPage } from './decisions.ts';
import { errorsPage } from './errors.ts';
import { asyncApiDocument } from './events/asyncapi.ts';
import { eventSchemaFiles } from './events/event-schemas.ts';
import { kafkaAcls, kafkaUsers } from './kafka-rights.ts';
import { kafkaTopics } from './kafka-topics.ts';
import { languageGuides } from './language-guides.ts';
import { metricsPage } from './metrics.ts';
import { operationsSource } from './openapi/generate-client.ts';
import { openApiDocument } from './openapi/openapi.ts';

/** Invisible characters, which patterns have, are escaped. */
const json = (document: object): string =>
  `${JSON.stringify(document, null, 2).replace(/[^\n\x20-\x7e\p{L}\p{P}\p{S}]/gu, (one) => `\\u${one.charCodeAt(0).toString(16).padStart(4, '0')}`)}\n`;
const eventSchemas = Object.entries(eventSchemaFiles()).map(
  ([file, schema]) => [`events/${file}`, () => json(schema)] as const,
);

/** Generated pages of docs/ by name, and other generated files by their path relative to docs/. */
export const pages: Record<string, () => string> = {
  'configuration.md': configurationPage,
  'contract/rules.md': contractRulesPage,
  'decisions/README.md': decisionsPage,
  'errors.md': errorsPage,
  'metrics.md': metricsPage,
  'security/asvs.md': asvsPage,
  ...languageGuides,
  'openapi.json': () => json(openApiDocument(packageJson.version)),
  'asyncapi.json': () => json(asyncApiDocument(packageJson.version)),
  ...Object.fromEntries(eventSchemas),
  '../clients/typescript/operations.ts': () => operationsSource(packageJson.version),
  '../deploy/helm/core-banking/values.schema.json': valuesSchema,
  '../deploy/helm/core-banking/README.md': chartReadme,
  '../deploy/kafka/users.yaml': kafkaUsers,
  '../deploy/kafka/acls.sh': kafkaAcls,
  '../deploy/kafka/topics.yaml': kafkaTopics,
};
