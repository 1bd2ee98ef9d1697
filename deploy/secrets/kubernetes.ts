/**
 * The job `secrets` of the Helm chart: stores in one Kubernetes Secret per process what deriveSecrets makes for it. The
 * master key is in a Secret of its own, which no other pod mounts; it is made at the first run, unless it exists. Every
 * further run leaves the Secrets as they are, unless somebody has changed the master keys.
 */
import { createHash, randomBytes } from 'node:crypto';
import { readFileSync } from 'node:fs';
import type { Logger } from 'pino';
import { z } from 'zod';
import { list, loadConfig, processConfig } from '#libs/service/config.ts';
import { findGuessable, isProduction } from '#libs/service/production.ts';
import { run } from '#libs/service/run.ts';
import { deriveSecrets, type Reader, readers } from './derive.ts';

export const secretsConfig = z.object({
  BANK_MODE: processConfig.BANK_MODE,
  KUBERNETES_URL: z.string().default('https://kubernetes.default.svc').describe('The API server'),
  SERVICE_ACCOUNT_DIR: z
    .string()
    .default('/var/run/secrets/kubernetes.io/serviceaccount')
    .describe('The folder with the token and the namespace of the service account'),
  MASTER_SECRET: z.string().min(1).describe('The Secret with MASTER_KEYS; made if it is missing'),
  SECRETS: list
    .transform((pairs) => pairs.map((pair) => pair.split('=') as [Reader, string]))
    .refine((pairs) => pairs.every(([reader, name]) => readers.includes(reader) && name), 'must be service=Secret')
    .describe('The Secret of each service: gateway=bank-gateway,ledger=bank-ledger'),
});

interface Secret {
  metadata: { name: string; annotations?: Record<string, string>; labels?: Record<string, string> };
  data: Record<string, string>;
}

/** Reads and writes Secrets of the pod's namespace, as the pod's service account. */
export function createApi({ url, token, namespace }: { url: string; token: string; namespace: string }) {
  const call = async (method: string, path: string, body?: unknown): Promise<{ status: number; body: Secret }> => {
    const response = await fetch(`${url}/api/v1/namespaces/${namespace}/secrets${path}`, {
      method,
      headers: {
        authorization: `Bearer ${token}`,
        'content-type': method === 'PATCH' ? 'application/merge-patch+json' : 'application/json',
      },
      body: body === undefined ? null : JSON.stringify(body),
      signal: AbortSignal.timeout(10_000),
    });
    const answer = (await response.json()) as Secret & { message?: string };
    if (!response.ok && response.status !== 404)
      throw new Error(`${method} ${path}: ${response.status} ${answer.message}`);
    return { status: response.status, body: answer };
  };
  return {
    /** Returns undefined if there is none. */
    read: async (name: string): Promise<Secret | undefined> => {
      const { status, body } = await call('GET', `/${name}`);
      return status === 404 ? undefined : body;
    },
    create: (secret: Partial<Secret> & Pick<Secret, 'metadata'> & { stringData: Record<string, string> }) =>
      call('POST', '', { apiVersion: 'v1', kind: 'Secret', ...secret }),
    change: (name: string, stringData: Record<string, string>) => call('PATCH', `/${name}`, { stringData }),
  };
}

type Api = ReturnType<typeof createApi>;
const decode = (text = '') => Buffer.from(text, 'base64').toString();
const labels = { 'app.kubernetes.io/name': 'core-banking', 'app.kubernetes.io/component': 'secrets' };

/**
 * Makes what is missing. Rejects if the master key is missing although Secrets derived from it exist: a new one would make
 * API keys, messages, and sealed secrets invalid. Rejects a guessable one, too, except in a trial.
 */
export async function storeSecrets(
  api: Api,
  { mode, master, secrets }: { mode: string; master: string; secrets: [Reader, string][] },
  logger: Pick<Logger, 'info'>,
): Promise<void> {
  const existing = new Map<string, Secret>();
  for (const [, name] of secrets) {
    const secret = await api.read(name);
    if (secret) existing.set(name, secret);
  }
  let keys = decode((await api.read(master))?.data['MASTER_KEYS']);
  if (keys === '') {
    if (existing.size > 0)
      throw new Error(
        `the Secret ${master} with MASTER_KEYS is missing, but ${[...existing.keys()].join(', ')} exist: restore it from its backup`,
      );
    keys = randomBytes(32).toString('hex');
    // By this, the chart knows a master key that was never changed, and restarts no pod because of it.
    const first = createHash('sha256').update(keys).digest('hex');
    const metadata = { name: master, labels, annotations: { 'core-banking/first': first } };
    await api.create({ metadata, stringData: { MASTER_KEYS: keys } });
    logger.info({ name: master }, 'a master key was made: keep a copy of it');
  }
  const masters = keys.split(',').map((key) => key.trim());
  const weakness = isProduction(mode) ? masters.map(findGuessable).find((found) => found !== undefined) : undefined;
  if (weakness !== undefined) throw new Error(`${master}: one of MASTER_KEYS ${weakness}`);
  const derived = deriveSecrets(masters);
  for (const [reader, name] of secrets) {
    const { data } = existing.get(name) ?? {};
    const changed = Object.entries(derived[reader]).filter(([key, value]) => decode(data?.[key]) !== value);
    if (changed.length === 0) continue;
    if (data === undefined) await api.create({ metadata: { name, labels }, stringData: derived[reader] });
    else await api.change(name, Object.fromEntries(changed));
    logger.info({ name, keys: changed.map(([key]) => key) }, 'secrets were stored');
  }
}

if (import.meta.main) {
  run('secrets', async ({ logger }) => {
    const config = loadConfig(secretsConfig);
    const { BANK_MODE: mode, KUBERNETES_URL: url, MASTER_SECRET: master, SECRETS: secrets } = config;
    const ofAccount = (file: string) => readFileSync(`${config.SERVICE_ACCOUNT_DIR}/${file}`, 'utf8').trim();
    const api = createApi({ url, token: ofAccount('token'), namespace: ofAccount('namespace') });
    await storeSecrets(api, { mode, master, secrets }, logger);
  });
}
