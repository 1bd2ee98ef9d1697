import {
  type BankSettings,
  createTopics,
  makeApiKey,
  migrateService,
  roleUrl,
  type ServiceKind,
  signingKeys,
  startService,
} from '../tools/local/bank.ts';
import type { Child } from '../tools/local/child.ts';
import { logTail } from '../tools/local/log-file.ts';
import { awaitReady } from '../tools/local/ready.ts';
import { accountCount } from './contenders/posting.ts';
import type { Side, World } from './world.ts';

const readyMs = 60_000;
const stopMs = 12_000;
const openAtOnce = 50;
const openMs = 30_000;
export const pageSize = 50;
const walkSize = 500;

export interface BankOptions {
  /** The name of its database and, except for `bank`, the prefix of its topics. */
  name: string;
  /** The number of accounts to be opened through its API. */
  accounts: number;
  ledgers?: number;
  gateways?: number;
  /** Default 0. */
  webhooks?: number;
  env?: Record<string, string>;
  /** The folder of another version; default: this one. */
  project?: string;
}

/**
 * A complete bank as processes with the services' default settings, on one machine, and in trial mode: without TLS, and
 * with one replica. What else the mode decides costs nothing here: members of groups send as many heartbeats with either
 * session timeout, and there are no refusals to be summarised.
 */
export interface Bank extends Side {
  brokers: string;
  topicPrefix: string;
  /** The superuser's URL, with the schema ledger. */
  databaseUrl: string;
}

function bankSettings(world: World, name: string, ownerUrl: string, env: Record<string, string> = {}): BankSettings {
  const { local, infra } = world;
  return {
    brokers: infra.brokers,
    topicPrefix: name === 'bank' ? '' : `${name}.`,
    ownerUrl,
    rolePasswords: {
      ledger: local.secret('role_ledger'),
      accounts: local.secret('role_accounts'),
      webhooks: local.secret('role_webhooks'),
    },
    // There is no identity provider: callers use API keys.
    issuer: 'http://127.0.0.1:9',
    apiKeyPepper: local.secret('api_key_pepper'),
    webhookSecretKey: local.secret('webhook_secret_key'),
    signing: signingKeys(local),
    env: { LOG_LEVEL: 'info', ...env },
  };
}

/** Creates a database with only the ledger's schema. The URL is for the ledger's role. */
export async function migrateLedger(world: World, database: string): Promise<string> {
  const settings = bankSettings(world, database, await world.newDatabase(database));
  await migrateService('ledger', settings);
  return roleUrl(settings, 'ledger');
}

const banks = new WeakMap<World, Promise<Bank>>();

/** Returns the bank that most rows use: one process of each service, with the default settings. */
export function defaultBank(world: World): Promise<Bank> {
  let bank = banks.get(world);
  if (bank === undefined) banks.set(world, (bank = startBank(world, { name: 'bank', accounts: accountCount })));
  return bank;
}

/**
 * Starts a bank on the run's servers and opens its accounts. Throws an error with the end of the log of a process that
 * does not become ready.
 */
export async function startBank(
  world: World,
  { name, accounts, ledgers = 1, gateways = 1, webhooks = 0, env, project }: BankOptions,
): Promise<Bank> {
  const { local, infra } = world;
  const ownerUrl = name === 'bank' ? infra.ownerUrl : await world.newDatabase(`bank_${name}`);
  const settings = { ...bankSettings(world, name, ownerUrl, env), project };
  const schemas = ['ledger', 'accounts', ...(webhooks > 0 ? ['webhooks' as const] : [])] as const;
  await Promise.all([...schemas.map((one) => migrateService(one, settings)), createTopics(settings)]);
  const several = (kind: ServiceKind, count: number) =>
    Array.from({ length: count }, (_, i) => [kind, `${name}-${kind}${i > 0 ? `-${i + 1}` : ''}`] as const);
  const processes = [
    ...several('ledger', ledgers),
    ...several('accounts', 1),
    ...several('webhooks', webhooks),
    ...several('gateway', gateways),
  ];
  const started = await Promise.all(
    processes.map(async ([kind, service]) => {
      const spec = {
        kind,
        name: service,
        healthPort: await local.port(`${service}_health`),
        port: kind === 'gateway' ? await local.port(service) : undefined,
        log: local.log(service),
        onStart: local.recordProcess,
      };
      return { spec, child: startService(spec, settings) };
    }),
  );
  await Promise.all(started.map(({ spec, child }) => ready(child, spec.healthPort, spec.log)));
  const apiKey = await makeApiKey(settings);
  const credential = `x-api-key: ${apiKey}`;
  const ports = started.flatMap(({ spec: { port } }) => port ?? []);
  await Promise.all(
    ports.map((one) => awaitReady({ url: `http://127.0.0.1:${one}/`, headers: { 'x-api-key': apiKey } }, readyMs)),
  );
  const [port = 0] = ports;
  const opened = await openAccounts(port, apiKey, accounts);
  return {
    name,
    port,
    ports,
    credential,
    usesBroker: true,
    accounts: opened.map(({ account_id }) => account_id),
    numbers: opened.map(({ account_number }) => account_number),
    processes: started.map(({ spec, child }) => ({ name: spec.name.slice(name.length + 1), pid: child.pid })),
    brokers: settings.brokers,
    topicPrefix: settings.topicPrefix,
    databaseUrl: world.superuserUrl(settings.ownerUrl),
    async stop() {
      const stopKind = (wanted: boolean) =>
        Promise.all(
          started.filter(({ spec }) => (spec.kind === 'gateway') === wanted).map(({ child }) => child.stop(stopMs)),
        );
      await stopKind(true);
      await stopKind(false);
    },
  };
}

async function ready(child: Child, healthPort: number, log: string): Promise<void> {
  await awaitReady({ url: `http://127.0.0.1:${healthPort}/readyz` }, readyMs, () =>
    child.running() ? undefined : 'never answered: it died',
  ).catch((error: Error) => {
    throw new Error(`${error.message}\n${logTail(log)}`);
  });
}

async function openAccounts(
  port: number,
  apiKey: string,
  count: number,
): Promise<{ account_id: string; account_number: string }[]> {
  const post = async (path: string, body: object): Promise<Record<string, string>> => {
    const response = await fetch(`http://127.0.0.1:${port}${path}`, {
      method: 'POST',
      headers: { 'x-api-key': apiKey, 'content-type': 'application/json' },
      body: JSON.stringify(body),
      signal: AbortSignal.timeout(openMs),
    });
    if (response.status !== 201) throw new Error(`${path}: ${response.status} ${await response.text()}`);
    return ((await response.json()) as { data: Record<string, string> }).data;
  };
  const { client_id } = await post('/clients', {
    client_type: 'Corporate',
    company_name: 'Bench',
    registration_number: '1',
    email: 'bench@example.org',
    contact_number: '+254700000001',
  });
  const opened: { account_id: string; account_number: string }[] = [];
  while (opened.length < count) {
    const some = Array.from({ length: Math.min(openAtOnce, count - opened.length) }, () =>
      post('/accounts', { client_id, account_type: 'Current', currency: 'USD', initial_deposit: 100_000_000 }),
    );
    for (const { account_id = '', account_number = '' } of await Promise.all(some))
      opened.push({ account_id, account_number });
  }
  return opened;
}

/**
 * Returns the cursor of a page. A list can be traversed with larger pages, because cursors do not depend on the limit.
 */
export async function readCursor(bank: Bank, page: number): Promise<string> {
  const [name = '', value = ''] = bank.credential.split(': ');
  let path = `/transactions?limit=${walkSize}`;
  let cursor = '';
  for (let rows = (page - 1) * pageSize; rows > 0; rows -= walkSize) {
    const limit = Math.min(walkSize, rows);
    const response = await fetch(`http://127.0.0.1:${bank.port}${path.replace(/limit=\d+/, `limit=${limit}`)}`, {
      headers: { [name]: value },
      signal: AbortSignal.timeout(10_000),
    });
    await response.arrayBuffer();
    path = /<([^>]+)>; *rel="next"/.exec(response.headers.get('link') ?? '')?.[1] ?? '';
    cursor = new URLSearchParams(path.split('?')[1]).get('cursor') ?? '';
    if (cursor === '') throw new Error(`the list of transactions ends before page ${page} (${response.status})`);
  }
  return encodeURIComponent(cursor);
}
