import { pino } from 'pino';
import { afterEach } from 'vitest';
import { hashApiKey, makeApiKey } from '#libs/contracts/api-key.ts';
import type { ReplyBody } from '#libs/contracts/envelope.ts';
import { type ErrorCode, refusal } from '#libs/contracts/errors.ts';
import type { EventData } from '#libs/contracts/events.ts';
import { type MessageName, messageOfType } from '#libs/contracts/messages.ts';
import { scopes } from '#libs/contracts/scopes.ts';
import { createSecretKeys } from '#libs/contracts/webhook-secret.ts';
import type { OutgoingMessage } from '#libs/kafka/publish/publish.ts';
import { RequestError } from '#libs/kafka/request-reply/request-reply.ts';
import type { Clock } from '#libs/service/clock.ts';
import { createMetrics } from '#libs/service/metrics.ts';
import { testKeys } from '#libs/service/test/keys.ts';
import { createApiKeys } from '../access/api-keys.ts';
import { createEndedTokens } from '../access/ended-tokens.ts';
import type { TokenOptions } from '../access/tokens.ts';
import { createCursors } from '../api/cursor.ts';
import { createForwarder } from '../api/forward.ts';
import { type AppDependencies, createApp } from '../app.ts';
import { createAuditRecords } from '../audit/audit-records.ts';
import { createGatewayMetrics } from '../observe/gateway-metrics.ts';
import { createLoadShedding, type LoadShedding } from '../overload/load-shedding.ts';

/** The reply of a service: a body, or the reason why there is none. */
export type Answer = ReplyBody | RequestError['stage'] | 'malformed';
export type Service = (message: {
  name: MessageName;
  data: Record<string, unknown>;
  headers: Record<string, string>;
  topic: string;
  partition: number;
}) => Answer | Promise<Answer>;

export const ok = (data: unknown): ReplyBody => ({ ok: true, data });
export const refused = (code: ErrorCode, message = 'refused', details?: Record<string, unknown>): ReplyBody => ({
  ok: false,
  refusal: refusal(code, message, { details }),
});

const pepper = 'a pepper of sixteen';
const silent = pino({ level: 'silent' });

interface TestOptions extends Partial<AppDependencies> {
  loadShedding?: LoadShedding;
  clock?: Pick<Clock, 'check'>;
}

/** Creates the app with services that a function simulates in this process. Everything else is as in production. */
export async function testApp(
  service: Service = () => 'no_reply',
  { clock = { check: () => ({ ok: true }) }, now = Date.now, ...options }: TestOptions = {},
) {
  const sent: OutgoingMessage[] = [];
  const recorded: OutgoingMessage[] = [];
  const waits: number[] = [];
  const publisher = { publish: async (message: OutgoingMessage) => void recorded.push(message) };
  const metrics = createGatewayMetrics(createMetrics('gateway'));
  const request = async (message: OutgoingMessage, { replyTimeoutMs }: { replyTimeoutMs: number }) => {
    sent.push(message);
    waits.push(replyTimeoutMs);
    const name = messageOfType(message.headers['ce_type'] ?? '');
    if (name === undefined) throw new Error('a message of an unknown type was sent');
    const data = JSON.parse(String(message.value)) as Record<string, unknown>;
    const answer = await service({
      name,
      data,
      headers: message.headers,
      topic: message.topic,
      partition: message.partition ?? -1,
    });
    if (answer === 'malformed') return { headers: {}, value: Buffer.from('{"ok":true,"data":{"unexpected":1}}') };
    if (typeof answer === 'string') throw new RequestError(answer, answer);
    return { headers: {}, value: Buffer.from(JSON.stringify(answer)) };
  };
  const apiKeys = createApiKeys({
    peppers: [pepper],
    environments: ['live', 'test'],
    logger: silent,
    onUse: () => undefined,
    now: Date.now,
  });
  const loadShedding = options.loadShedding ?? createLoadShedding(clock, metrics);
  const forwarder = createForwarder({
    request,
    loadShedding,
    now,
    prefix: 'test.',
    logger: silent,
    metrics,
  });
  const auditRecords = createAuditRecords({ publisher, prefix: 'test.', logger: silent, now: Date.now, metrics });
  const endedTokens = createEndedTokens({
    publisher,
    keys: testKeys,
    prefix: 'test.',
    maxLifetimeS: 3600,
    logger: silent,
  });
  const tokens: TokenOptions = {
    issuer: 'https://issuer.example',
    audience: 'core-banking',
    algorithms: ['RS256'],
    types: ['at+jwt', 'JWT'],
    keySet: undefined,
    wholeBankClients: ['*'],
    maxLifetimeS: 3600,
    ...options.tokens,
  };
  const app = await createApp({
    loadShedding,
    endedTokens,
    forwarder,
    consumerLag: async () => [],
    history: { read: () => [] },
    apiKeys,
    auditRecords,
    pepper,
    secretKeys: createSecretKeys(['a key for secrets of webhooks, of tests']),
    keyMaxLifetimeMs: 365 * 24 * 60 * 60 * 1000,
    cursors: createCursors(['a secret of sixteen']),
    apiVersion: '1.2.3',
    isTrial: false,
    rateLimitPerMinute: 0,
    authFailuresPerMinute: 0,
    trustProxy: [],
    corsOrigins: ['*'],
    fourEyes: { actions: new Set(), keys: true, limits: new Map(), timeZone: 'UTC' },
    logger: silent,
    metrics,
    ...options,
    tokens: { ...tokens, isEnded: endedTokens.isEnded },
    now,
  });
  app.addHook('onClose', async () => forwarder.stop());

  const takeKey = (
    state: Partial<EventData<'corebanking.api_key.v1'>> & { key_id: string; secret_hash: string },
  ): void => {
    const full = {
      family_id: state.key_id,
      scopes: [...scopes],
      environment: 'live',
      client_id: null,
      expires_at: '2999-01-01T00:00:00.000Z',
      revoked_at: null,
      version: 1,
      ...state,
    };
    apiKeys.take(state.key_id, Buffer.from(JSON.stringify(full)));
  };
  let keys = 0;
  /** Creates an API key and returns its header. */
  const keyHeader = (state: { scopes?: string[]; client_id?: string } = {}): { 'x-api-key': string } => {
    const key_id = `key_${String(++keys).padStart(32, '0')}`;
    const apiKey = makeApiKey('live', key_id);
    takeKey({ ...state, key_id, secret_hash: hashApiKey(pepper, apiKey) });
    return { 'x-api-key': apiKey };
  };
  return { app, sent, waits, recorded, auditRecords, endedTokens, apiKeys, takeKey, keyHeader };
}

export const ids = {
  client: `cli_${'a'.repeat(32)}`,
  account: `acc_${'a'.repeat(32)}`,
  other: `acc_${'b'.repeat(32)}`,
  transaction: `txn_${'a'.repeat(32)}`,
  transfer: `trf_${'a'.repeat(32)}`,
  hold: `hld_${'a'.repeat(32)}`,
};

const time = '2026-01-02T03:04:05.678Z';
export const samples = {
  client: {
    client_id: ids.client,
    client_type: 'Corporate',
    company_name: 'x',
    registration_number: 'y',
    email: 'a@b.cc',
    contact_number: '+254700000001',
    address: null,
    created_at: time,
    updated_at: time,
  },
  master: {
    account_id: ids.account,
    client_id: ids.client,
    account_number: 'SAV-1',
    account_type: 'Savings',
    currency: 'USD',
    status: 'Active',
    created_at: time,
    updated_at: time,
  },
  ledger: { account_id: ids.account, account_number: 'SAV-1', currency: 'USD', status: 'Frozen', balance: '10.50' },
  transaction: {
    transaction_id: ids.transaction,
    account_id: ids.account,
    transaction_type: 'Deposit',
    amount: '25.00',
    currency: 'USD',
    description: null,
    reference: null,
    status: 'Completed',
    created_at: time,
    direction: 'credit',
  },
  transfer: {
    transfer_id: ids.transfer,
    from_account_id: ids.account,
    to_account_id: ids.other,
    amount: '5.00',
    currency: 'USD',
    description: null,
    status: 'Completed',
    created_at: time,
  },
  key: {
    name: 'x',
    scopes: ['accounts:read'],
    environment: 'live',
    client_id: null,
    status: 'active',
    created_at: time,
    created_by: 'x',
    expires_at: '2999-01-01T00:00:00.000Z',
    last_used_at: null,
    revoked_at: null,
    rotated_from: null,
  },
  deadLetter: {
    dead_letter_id: `dlt_${'a'.repeat(32)}`,
    topic: 'ledger.commands.dlq',
    partition: 0,
    offset: 1,
    source_topic: 'ledger.commands',
    source_partition: 0,
    source_offset: 1,
    key: null,
    code: null,
    reason: null,
    size_bytes: 1,
    message: null,
    request_id: null,
    dead_at: time,
    state: 'open',
    decided_by: null,
    decided_at: null,
    drop_reason: null,
    available: true,
    headers: {},
    value: 'x',
    encoding: 'utf-8',
    truncated: false,
  },
};

/** Returns the app, and a caller with all scopes. */
export async function testCaller(service: Service) {
  const made = await testApp(service);
  const key = made.keyHeader();
  const call = async (
    method: 'GET' | 'POST' | 'PATCH' | 'DELETE',
    url: string,
    body?: unknown,
    headers: Record<string, string> = {},
  ) => {
    const payload = body === undefined ? undefined : typeof body === 'string' ? body : JSON.stringify(body);
    const response = await made.app.inject({
      method,
      url,
      headers: { ...key, ...(payload === undefined ? {} : { 'content-type': 'application/json' }), ...headers },
      payload,
    });
    return { status: response.statusCode, body: response.json(), headers: response.headers };
  };
  return { ...made, call };
}

/** testCaller for a test file. The app is closed after each test. */
export function useTestCaller() {
  let close: () => Promise<void> = async () => undefined;
  afterEach(() => close());
  return async (service: Service) => {
    const made = await testCaller(service);
    close = () => made.app.close();
    return made;
  };
}
