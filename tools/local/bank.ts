import { generateKeyPairSync } from 'node:crypto';
import { join } from 'node:path';
import type { Signer } from '#libs/contracts/mac.ts';
import type { Child, ProcessRecord } from './child.ts';
import { runToEnd, startChild } from './child.ts';
import { type LocalDir, PROJECT } from './local-dir.ts';

export const AUDIENCE = 'core-banking';
/** The confidential client of the local identity provider that may have every scope. */
export const MAIN_CLIENT = 'core-banking-local';
/** The one that may have the reading scopes only. */
export const READER_CLIENT = 'reader';
/** The confidential client that people sign in through. */
export const DASHBOARD_CLIENT = 'dashboard';
/** So high that no load test meets them. */
const UNLIMITED_PER_MINUTE = 100_000_000;

/** What all parts of one bank share. */
export type BankSettings = {
  brokers: string;
  topicPrefix: string;
  /** The owner of the database: migrations use it, the services get roles of their own. */
  ownerUrl: string;
  rolePasswords: Record<ServiceWithSchema, string>;
  issuer: string;
  apiKeyPepper: string;
  idempotencySecret: string;
  webhookSecretKey: string;
  signing: SigningKeys;
  /** Gateways serve the dashboard with these; without them, none does. */
  dashboard?: { clientSecret: string; sessionSecret: string };
  /** The folder of another version of the project, whose programs are run; default: this one. */
  project?: string;
  /** More environment for the services. */
  env?: Record<string, string>;
};

/** By which services know whose messages they read. */
export type SigningKeys = { mac: Record<Signer, string>; keyPair: { privateKey: string; publicKey: string } };

/** Those of LOCAL_DIR, made once and kept. */
export function signingKeys(local: Pick<LocalDir, 'secret' | 'value' | 'keepValue'>): SigningKeys {
  const kept = local.value('api_key_signing') ?? JSON.stringify(newKeyPair());
  local.keepValue('api_key_signing', kept);
  const mac = {
    gateway: local.secret('gateway_mac'),
    accounts: local.secret('accounts_mac'),
    ledger: local.secret('ledger_mac'),
    webhooks: local.secret('webhooks_mac'),
  };
  return { mac, keyPair: JSON.parse(kept) as SigningKeys['keyPair'] };
}

/** A new pair of Ed25519, in PEM. */
export function newKeyPair(): SigningKeys['keyPair'] {
  return generateKeyPairSync('ed25519', {
    publicKeyEncoding: { type: 'spki', format: 'pem' },
    privateKeyEncoding: { type: 'pkcs8', format: 'pem' },
  });
}

export type ServiceWithSchema = 'ledger' | 'accounts' | 'webhooks';
export type ServiceKind = 'gateway' | ServiceWithSchema;

export type ServiceSpec = {
  kind: ServiceKind;
  /** The kind, with a number from the second one on: ledger, ledger-2. */
  name: string;
  healthPort: number;
  /** The public port of a gateway. */
  port?: number;
  log: string;
  onStart?: (record: ProcessRecord) => void;
};

/** Role names carry the database's, because roles belong to the whole server. */
function roleName(settings: BankSettings, kind: ServiceWithSchema): string {
  const database = decodeURIComponent(new URL(settings.ownerUrl).pathname.slice(1)) || 'postgres';
  return `${database.toLowerCase().replaceAll(/[^a-z0-9_]/g, '_')}_${kind}`;
}

/** The URL by which a service reaches its schema, in its own role. */
export function roleUrl(settings: BankSettings, kind: ServiceWithSchema): string {
  const url = new URL(settings.ownerUrl);
  url.username = roleName(settings, kind);
  url.password = settings.rolePasswords[kind];
  return url.href;
}

/** Without this cache, each process loads a compiler to read TypeScript: 26 MB that stay, and 0.3 s of its start. */
const COMPILE_CACHE = join(PROJECT, 'node_modules', '.cache', 'node-compile-cache');

/** Runs one of the project's scripts to its end and answers what it printed. Throws with the end of its output. */
async function runScript(script: string, env: Record<string, string>, project = PROJECT): Promise<string> {
  const { code, stdout, stderr } = await runToEnd(process.execPath, [join(project, script)], {
    cwd: project,
    env: {
      NODE_COMPILE_CACHE: COMPILE_CACHE,
      ...process.env,
      NODE_ENV: 'development',
      LOG_LEVEL: process.env['LOG_LEVEL'] ?? 'warn',
      ...env,
    },
    timeoutMs: 180_000,
  });
  if (code === 0) return stdout.trim();
  const output = (stdout + stderr).trim().split('\n').slice(-15).join('\n');
  throw new Error(`${script} failed (${code === null ? 'killed after 180 s' : `exit code ${code}`}):\n${output}`);
}

/** Brings the schema, role and grants of one service up to date. */
export async function migrateService(kind: ServiceWithSchema, settings: BankSettings): Promise<void> {
  await runScript(
    `services/${kind}/migrate.ts`,
    {
      MIGRATION_DATABASE_URL: settings.ownerUrl,
      SERVICE_ROLE: roleName(settings, kind),
      SERVICE_ROLE_PASSWORD: settings.rolePasswords[kind],
      ...settings.env,
    },
    settings.project,
  );
}

/** Makes the topics that are missing. */
export async function createTopics(settings: BankSettings): Promise<void> {
  await runScript(
    'deploy/create-topics.ts',
    {
      KAFKA_BROKERS: settings.brokers,
      TOPIC_PREFIX: settings.topicPrefix,
      REPLICATION_FACTOR: process.env['REPLICATION_FACTOR'] ?? '1',
      ALLOW_UNREPLICATED: 'true',
      ...settings.env,
    },
    settings.project,
  );
}

/** Makes an API key with every scope. */
export async function makeApiKey(settings: BankSettings): Promise<string> {
  const output = await runScript(
    'services/accounts/bootstrap-key.ts',
    {
      DATABASE_URL: roleUrl(settings, 'accounts'),
      API_KEY_PEPPER: settings.apiKeyPepper,
      ENVIRONMENT: 'test',
      ...settings.env,
    },
    settings.project,
  );
  const key = /\bcbk_\S+/.exec(output)?.[0];
  if (key === undefined) throw new Error(`services/accounts/bootstrap-key.ts printed no key: ${output}`);
  return key;
}

/** To each service the keys that it needs. */
export function signingEnvironment(kind: ServiceKind, { mac, keyPair }: SigningKeys): Record<string, string> {
  const own = { GATEWAY_MAC_KEYS: mac.gateway };
  if (kind === 'gateway') return { ...own, API_KEY_PUBLIC_KEYS: keyPair.publicKey };
  if (kind === 'webhooks') return { ...own, ACCOUNTS_MAC_KEYS: mac.accounts, WEBHOOKS_MAC_KEYS: mac.webhooks };
  return {
    ...own,
    ACCOUNTS_MAC_KEYS: mac.accounts,
    LEDGER_MAC_KEYS: mac.ledger,
    ...(kind === 'accounts' && { API_KEY_SIGNING_KEY: keyPair.privateKey, WEBHOOKS_MAC_KEYS: mac.webhooks }),
  };
}

function environment(spec: ServiceSpec, settings: BankSettings): Record<string, string> {
  const common = {
    NODE_ENV: 'development',
    KAFKA_BROKERS: settings.brokers,
    TOPIC_PREFIX: settings.topicPrefix,
    ALLOW_UNREPLICATED: 'true',
    HEALTH_HOST: '127.0.0.1',
    HEALTH_PORT: String(spec.healthPort),
    INSTANCE: spec.name,
    // A killed process gives its partitions back after this long.
    SESSION_TIMEOUT_MS: process.env['SESSION_TIMEOUT_MS'] ?? '3000',
  };
  const signing = signingEnvironment(spec.kind, settings.signing);
  const sealing = { WEBHOOK_SECRET_KEYS: settings.webhookSecretKey };
  // Receivers on this machine.
  const receivers = { ...sealing, WEBHOOK_ALLOW_NETWORKS: process.env['WEBHOOK_ALLOW_NETWORKS'] ?? '127.0.0.0/8,::1' };
  if (spec.kind !== 'gateway')
    return {
      ...common,
      ...signing,
      DATABASE_URL: roleUrl(settings, spec.kind),
      ...(spec.kind === 'webhooks' && receivers),
    };
  return {
    ...common,
    ...signing,
    ...sealing,
    HOST: '127.0.0.1',
    PORT: String(spec.port),
    JWT_ISSUER: settings.issuer,
    JWT_AUDIENCE: AUDIENCE,
    JWKS_URL: `${settings.issuer}/jwks`,
    JWT_WHOLE_BANK_CLIENTS: [MAIN_CLIENT, READER_CLIENT, DASHBOARD_CLIENT].join(','),
    API_KEY_ENVIRONMENTS: 'live,test',
    API_KEY_PEPPER: settings.apiKeyPepper,
    IDEMPOTENCY_SECRET: settings.idempotencySecret,
    RATE_LIMIT_PER_MINUTE: process.env['RATE_LIMIT_PER_MINUTE'] ?? String(UNLIMITED_PER_MINUTE),
    AUTH_FAILURES_PER_MINUTE: process.env['AUTH_FAILURES_PER_MINUTE'] ?? String(UNLIMITED_PER_MINUTE),
    FOUR_EYES: process.env['FOUR_EYES'] ?? 'none',
    ...(settings.dashboard && {
      DASHBOARD_CLIENT_ID: DASHBOARD_CLIENT,
      DASHBOARD_CLIENT_SECRET: settings.dashboard.clientSecret,
      SESSION_SECRET: settings.dashboard.sessionSecret,
      PUBLIC_URL: `http://127.0.0.1:${spec.port}`,
    }),
  };
}

/**
 * A third less memory at full load, at no cost that could be measured (docs/performance.md): the
 * young generation may otherwise take 100 MB, and what glibc has freed stays with the process.
 */
const nodeFlags = ['--max-semi-space-size=16'];
const mallocSettings = { MALLOC_TRIM_THRESHOLD_: '131072' };

/** Starts the process of one service; it is not ready yet. */
export function startService(spec: ServiceSpec, settings: BankSettings): Child {
  const project = settings.project ?? PROJECT;
  const script = join(project, 'services', spec.kind, 'main.ts');
  return startChild({
    name: spec.name,
    command: process.execPath,
    args: [...nodeFlags, script],
    cwd: project,
    env: {
      ...mallocSettings,
      NODE_COMPILE_CACHE: COMPILE_CACHE,
      ...process.env,
      ...environment(spec, settings),
      ...settings.env,
    },
    log: spec.log,
    marker: script,
    onStart: spec.onStart,
  });
}

export type IdentityProviderOptions = {
  port: number;
  keysFile: string;
  /** Of every client. */
  clientSecret: string;
  /** Of everybody in users.ts. */
  userPassword: string;
  log: string;
  /** Origins, besides those of this machine, that people may be sent back to. */
  publicUrls?: readonly string[];
  onStart?: (record: ProcessRecord) => void;
};

/** Every port of this machine: the identity provider starts before it is known where gateways listen. */
const fromHere = (publicUrls: readonly string[] = [], ...paths: string[]): string =>
  ['http://127.0.0.1', 'http://localhost', ...publicUrls]
    .flatMap((origin) => paths.map((path) => origin + path))
    .join(' ');

/** Starts the identity provider (identity-provider.ts). */
export function startIdentityProvider(options: IdentityProviderOptions): Child {
  const script = join(import.meta.dirname, 'identity-provider.ts');
  return startChild({
    name: 'identity-provider',
    command: process.execPath,
    args: [script],
    cwd: PROJECT,
    env: {
      NODE_COMPILE_CACHE: COMPILE_CACHE,
      ...process.env,
      NODE_ENV: 'development',
      IDP_PORT: String(options.port),
      IDP_KEYS_PATH: options.keysFile,
      IDP_CLIENT_SECRET: options.clientSecret,
      IDP_AUDIENCE: AUDIENCE,
      IDP_USER_PASSWORD: options.userPassword,
      IDP_DASHBOARD_REDIRECT_URIS: fromHere(options.publicUrls, '/admin/callback'),
      IDP_DASHBOARD_POST_LOGOUT_REDIRECT_URIS: fromHere(options.publicUrls, '/admin', '/admin/login'),
    },
    log: options.log,
    marker: script,
    onStart: options.onStart,
  });
}
