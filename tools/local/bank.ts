import { generateKeyPairSync } from 'node:crypto';
import { join } from 'node:path';
import type { Signer } from '#libs/contracts/mac.ts';
import type { Child, ProcessRecord } from './child.ts';
import { runToEnd, startChild } from './child.ts';
import { type LocalDir, PROJECT } from './local-dir.ts';

export const AUDIENCE = 'core-banking';
/** The confidential client of the local identity provider that can have every scope. */
export const MAIN_CLIENT = 'core-banking-local';
/** The confidential client that can have only reading scopes. */
export const READER_CLIENT = 'reader';
/** The confidential client with which people sign in. */
export const DASHBOARD_CLIENT = 'dashboard';
/** Settings of a local start, here and in docker-compose.yml, unless the environment has others. */
export const localDefaults = {
  // No load test reaches these limits, and responses have the RateLimit headers.
  RATE_LIMIT_PER_MINUTE: '100000000',
  AUTH_FAILURES_PER_MINUTE: '100000000',
  FOUR_EYES: 'none',
  // The receivers of webhooks run on this machine.
  WEBHOOK_ALLOW_NETWORKS: '127.0.0.0/8,::1',
};

/** Settings shared by all parts of one bank. */
export type BankSettings = {
  brokers: string;
  topicPrefix: string;
  /** The database's owner, used by migrations; services have their own roles. */
  ownerUrl: string;
  rolePasswords: Record<ServiceWithSchema, string>;
  issuer: string;
  apiKeyPepper: string;
  webhookSecretKey: string;
  signing: SigningKeys;
  /** Settings of the dashboard, where there is one. */
  dashboard?: { clientSecret: string; sessionSecret: string };
  /** The folder of another version of the project, whose programs are run; default: this one. */
  project?: string;
  /** The folder of the services' programs, each in `<kind>.js`; default: their sources. */
  programs?: string;
  /** Additional environment of the services. */
  env?: Record<string, string>;
};

/** The keys with which services authenticate each other's messages. */
export type SigningKeys = { mac: Record<Signer, string>; keyPair: { privateKey: string; publicKey: string } };

/** Returns the keys of LOCAL_DIR, generated once and kept. */
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

/** Returns a new Ed25519 key pair in PEM. */
export function newKeyPair(): SigningKeys['keyPair'] {
  return generateKeyPairSync('ed25519', {
    publicKeyEncoding: { type: 'spki', format: 'pem' },
    privateKeyEncoding: { type: 'pkcs8', format: 'pem' },
  });
}

export type ServiceWithSchema = 'ledger' | 'accounts' | 'webhooks';
export type ServiceKind = 'gateway' | 'dashboard' | ServiceWithSchema;

export type ServiceSpec = {
  kind: ServiceKind;
  /** The kind, with a number from the second one on: ledger, ledger-2. */
  name: string;
  healthPort: number;
  /** The public port of a gateway or dashboard. */
  port?: number;
  /** For a dashboard: the gateway that it calls. For webhooks: where the schemas of events are served. */
  apiUrl?: string;
  log: string;
  onStart?: (record: ProcessRecord) => void;
};

/** Role names include the database's name, because roles are shared by the whole server. */
export function roleName(settings: BankSettings, kind: ServiceWithSchema): string {
  const database = decodeURIComponent(new URL(settings.ownerUrl).pathname.slice(1)) || 'postgres';
  return `${database.toLowerCase().replaceAll(/[^a-z0-9_]/g, '_')}_${kind}`;
}

/** Returns the URL of a service's schema, for its own role. */
export function roleUrl(settings: BankSettings, kind: ServiceWithSchema): string {
  const url = new URL(settings.ownerUrl);
  url.username = roleName(settings, kind);
  url.password = settings.rolePasswords[kind];
  return url.href;
}

/**
 * Without this cache, each process loads the TypeScript compiler, which costs 26 MB of memory and 0.3 s when it starts.
 */
const COMPILE_CACHE = join(PROJECT, 'node_modules', '.cache', 'node-compile-cache');

/** What BANK_MODE and arguments mean now. */
const ofEarlierVersions = {
  NODE_ENV: 'development',
  ALLOW_UNREPLICATED: 'true',
  API_KEY_ENVIRONMENTS: 'live,test',
  SESSION_TIMEOUT_MS: '3000',
  HEALTH_HOST: '127.0.0.1',
  HOST: '127.0.0.1',
  REPLICATION_FACTOR: '1',
  ENVIRONMENT: 'test',
  SHUTDOWN_DELAY_MS: '1500',
};
const isEarlier = (project: string | undefined) => project !== undefined && project !== PROJECT;
const modeOf = (project: string | undefined) => ({ BANK_MODE: 'trial', ...(isEarlier(project) && ofEarlierVersions) });

/**
 * Runs one of the project's scripts to its end and returns its output. Throws an error with the end of its output if it
 * fails.
 */
async function runScript(
  script: string,
  env: Record<string, string>,
  project = PROJECT,
  args: string[] = [],
): Promise<string> {
  const { code, stdout, stderr } = await runToEnd(process.execPath, [join(project, script), ...args], {
    cwd: project,
    env: {
      NODE_COMPILE_CACHE: COMPILE_CACHE,
      ...process.env,
      ...modeOf(project),
      LOG_LEVEL: process.env['LOG_LEVEL'] ?? 'warn',
      ...env,
    },
    timeoutMs: 180_000,
  });
  if (code === 0) return stdout.trim();
  const output = (stdout + stderr).trim().split('\n').slice(-15).join('\n');
  throw new Error(`${script} failed (${code === null ? 'killed after 180 s' : `exit code ${code}`}):\n${output}`);
}

/** Migrates the schema, role, and grants of one service. */
export async function migrateService(kind: ServiceWithSchema, settings: BankSettings): Promise<void> {
  await runScript(
    `services/${kind}/migrate.ts`,
    {
      MIGRATION_DATABASE_URL: settings.ownerUrl,
      DATABASE_URL: roleUrl(settings, kind),
      // For the migrations of 1.0.0-rc.
      ...(settings.project && {
        SERVICE_ROLE: roleName(settings, kind),
        SERVICE_ROLE_PASSWORD: settings.rolePasswords[kind],
      }),
      ...settings.env,
    },
    settings.project,
  );
}

/** Creates missing topics. */
export async function createTopics(settings: BankSettings): Promise<void> {
  await runScript(
    'deploy/create-topics.ts',
    {
      KAFKA_BROKERS: settings.brokers,
      TOPIC_PREFIX: settings.topicPrefix,
      ...modeOf(settings.project),
      ...settings.env,
    },
    settings.project,
  );
}

/** Creates an API key with every scope. */
export async function makeApiKey(settings: BankSettings): Promise<string> {
  const output = await runScript(
    'services/accounts/bootstrap-key.ts',
    {
      DATABASE_URL: roleUrl(settings, 'accounts'),
      API_KEY_PEPPER: settings.apiKeyPepper,
      ...settings.env,
    },
    settings.project,
    ['--test'],
  );
  const key = /\bcbk_\S+/.exec(output)?.[0];
  if (key === undefined) throw new Error(`services/accounts/bootstrap-key.ts printed no key: ${output}`);
  return key;
}

/** Returns the keys that each service needs. */
export function signingEnvironment(kind: ServiceKind, { mac, keyPair }: SigningKeys): Record<string, string> {
  const own = { GATEWAY_MAC_KEYS: mac.gateway };
  if (kind === 'dashboard') return {};
  if (kind === 'gateway') return { ...own, API_KEY_PUBLIC_KEYS: keyPair.publicKey };
  if (kind === 'webhooks') return { ...own, ACCOUNTS_MAC_KEYS: mac.accounts, WEBHOOKS_MAC_KEYS: mac.webhooks };
  return {
    ...own,
    ACCOUNTS_MAC_KEYS: mac.accounts,
    LEDGER_MAC_KEYS: mac.ledger,
    ...(kind === 'accounts' && { API_KEY_SIGNING_KEY: keyPair.privateKey, WEBHOOKS_MAC_KEYS: mac.webhooks }),
  };
}

/** The dashboard knows the gateway and the identity provider, and nothing behind them. */
function dashboardEnvironment(spec: ServiceSpec, { issuer, dashboard }: BankSettings): Record<string, string> {
  return {
    BANK_MODE: 'trial',
    HEALTH_PORT: `127.0.0.1:${spec.healthPort}`,
    PORT: `127.0.0.1:${spec.port}`,
    PUBLIC_URL: `http://127.0.0.1:${spec.port}`,
    API_URL: spec.apiUrl ?? '',
    JWT_ISSUER: issuer,
    DASHBOARD_CLIENT: `${DASHBOARD_CLIENT}:${dashboard?.clientSecret ?? ''}`,
    SESSION_SECRET: dashboard?.sessionSecret ?? '',
  };
}

function environment(spec: ServiceSpec, settings: BankSettings): Record<string, string> {
  if (spec.kind === 'dashboard') return dashboardEnvironment(spec, settings);
  // Earlier versions have the address in HOST.
  const at = (port: number | undefined) => (isEarlier(settings.project) ? '' : '127.0.0.1:') + port;
  const common = {
    ...modeOf(settings.project),
    KAFKA_BROKERS: settings.brokers,
    TOPIC_PREFIX: settings.topicPrefix,
    HEALTH_PORT: at(spec.healthPort),
    ...(isEarlier(settings.project) && { INSTANCE: spec.name }),
  };
  const signing = signingEnvironment(spec.kind, settings.signing);
  const sealing = { WEBHOOK_SECRET_KEYS: settings.webhookSecretKey };
  const local = (name: keyof typeof localDefaults) => ({ [name]: process.env[name] ?? localDefaults[name] });
  const receivers = { ...sealing, ...local('WEBHOOK_ALLOW_NETWORKS') };
  if (spec.kind !== 'gateway')
    return {
      ...common,
      ...signing,
      DATABASE_URL: roleUrl(settings, spec.kind),
      ...(spec.kind === 'webhooks' && { ...receivers, API_URL: spec.apiUrl ?? '' }),
    };
  return {
    ...common,
    ...signing,
    ...sealing,
    PORT: at(spec.port),
    JWT_ISSUER: settings.issuer,
    JWT_AUDIENCE: AUDIENCE,
    JWKS_URL: `${settings.issuer}/jwks`,
    JWT_WHOLE_BANK_CLIENTS: [MAIN_CLIENT, READER_CLIENT, DASHBOARD_CLIENT].join(','),
    API_KEY_PEPPER: settings.apiKeyPepper,
    ...local('RATE_LIMIT_PER_MINUTE'),
    ...local('AUTH_FAILURES_PER_MINUTE'),
    ...local('FOUR_EYES'),
    // The dashboard forwards the address of the browser.
    ...(settings.dashboard && { TRUST_PROXY: 'loopback' }),
  };
}

/**
 * Reduces memory at full load by a third without a measurable cost (docs/performance.md). Without it, the young
 * generation can grow to 100 MB, and glibc does not return freed memory.
 */
const nodeFlags = ['--max-semi-space-size=16'];
const mallocSettings = { MALLOC_TRIM_THRESHOLD_: '131072' };

/** Starts the process of one service without waiting until it is ready. */
export function startService(spec: ServiceSpec, settings: BankSettings): Child {
  const project = settings.project ?? PROJECT;
  const { programs } = settings;
  const script = programs ? join(programs, `${spec.kind}.js`) : join(project, 'services', spec.kind, 'main.ts');
  return startChild({
    name: spec.name,
    command: process.execPath,
    args: [...nodeFlags, script, spec.name],
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
  /** The secret of every client. */
  clientSecret: string;
  /** The password of everybody in users.ts. */
  userPassword: string;
  log: string;
  /** Additional origins to which people may be redirected, besides those of this machine. */
  publicUrls?: readonly string[];
  onStart?: (record: ProcessRecord) => void;
};

/** Allows every port of this machine, because the identity provider starts before the ports of gateways are known. */
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
      BANK_MODE: 'trial',
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
