import { setTimeout as sleep } from 'node:timers/promises';
import { pino } from 'pino';
import { hashApiKey, parseApiKey } from '#libs/contracts/api-key.ts';
import { scopes } from '#libs/contracts/scopes.ts';
import { createSecretKeys } from '#libs/contracts/webhook-secret.ts';
import type { OutgoingMessage } from '#libs/kafka/publish/publish.ts';
import { createMetrics } from '#libs/service/metrics.ts';
import { collectSeldom } from '#libs/service/run.ts';
import { createApiKeys } from '#services/gateway/access/api-keys.ts';
import { createAuditRecords } from '#services/gateway/access/audit-records.ts';
import { createCursors } from '#services/gateway/api/cursor.ts';
import { createForwarder } from '#services/gateway/api/forward.ts';
import { createApp } from '#services/gateway/http/app.ts';
import { createGatewayMetrics } from '#services/gateway/observe/gateway-metrics.ts';
import { createLoadShedding } from '#services/gateway/overload/load-shedding.ts';

/**
 * A gateway that answers itself: a request passes everything in the gateway (authentication,
 * limits, validation, command, reply) and nothing else. This is the upper bound of one gateway.
 */
const { PORT = '0', API_KEY = '', API_KEY_PEPPER = '', JWT_SECRET = '' } = process.env;
collectSeldom();
const prefix = '';
const unlimited = 100_000_000;
const logger = pino({ level: 'info' });
const metrics = createGatewayMetrics(createMetrics('gateway'));

/** The ledger's reply: the completed transfer or deposit. */
async function request({ value, headers }: OutgoingMessage) {
  const data = JSON.parse(String(value)) as Record<string, unknown>;
  const result = {
    ...data,
    amount: `${String(data['amount'])}`,
    currency: 'USD',
    status: 'Completed',
    created_at: headers['ce_time'],
    direction: 'credit',
  };
  return { headers: { 'correlation-id': '' }, value: Buffer.from(JSON.stringify({ ok: true, data: result })) };
}

const apiKeys = createApiKeys({
  environments: ['live', 'test'],
  pepper: API_KEY_PEPPER,
  logger,
  onUse: () => undefined,
  now: Date.now,
});
const keyId = parseApiKey(API_KEY)?.key_id ?? '';
const known = {
  key_id: keyId,
  family_id: keyId,
  scopes: [...scopes],
  environment: 'test',
  client_id: null,
  expires_at: '2999-01-01T00:00:00.000Z',
  revoked_at: null,
  version: 1,
  secret_hash: hashApiKey(API_KEY_PEPPER, API_KEY),
};
apiKeys.take(keyId, Buffer.from(JSON.stringify(known)));

const clock = { now: Date.now, check: () => ({ ok: true }) };
const loadShedding = createLoadShedding({ clock, metrics });
const app = await createApp({
  loadShedding,
  forwarder: createForwarder({ request, loadShedding, now: Date.now, prefix, logger, metrics }),
  consumerLag: async () => [],
  apiKeys,
  auditRecords: createAuditRecords({
    publisher: { publish: async () => undefined },
    prefix,
    logger,
    now: Date.now,
    metrics,
  }),
  clock,
  pepper: API_KEY_PEPPER,
  secretKeys: createSecretKeys([API_KEY_PEPPER]),
  keyMaxLifetimeMs: 0,
  cursors: createCursors(() => ({ first: API_KEY_PEPPER, all: [API_KEY_PEPPER] })),
  idempotencySecrets: { secrets: [API_KEY_PEPPER] },
  apiVersion: '0',
  letterhead: { name: 'bench', address: [], timeZone: 'UTC' },
  tokens: {
    issuer: 'bench',
    audience: 'core-banking',
    algorithms: ['RS256'],
    keySet: undefined,
    hs256Secret: JWT_SECRET,
    wholeBankClients: ['*'],
    maxLifetimeS: 86_400,
  },
  rateLimitPerMinute: unlimited,
  authFailuresPerMinute: unlimited,
  trustProxy: [],
  maxConnections: 10_000,
  corsOrigins: ['*'],
  routes: ['api'],
  fourEyes: { actions: new Set(), keys: false, limits: new Map() },
  logger,
  metrics,
});
await app.listen({ host: '127.0.0.1', port: Number(PORT) });
process.once('SIGTERM', () => void Promise.race([app.close(), sleep(2000)]).then(() => process.exit()));
