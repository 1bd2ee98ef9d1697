import assert from 'node:assert/strict';
import { text } from 'node:stream/consumers';
import { parseAllDocuments } from 'yaml';
import { deriveSecrets, type Reader } from '../../secrets/derive.ts';

/**
 * Reads the chart as rendered by Helm with deploy/kubernetes/values.yaml from standard input. Each key of a Secret that a
 * pod mounts or an autoscaler logs in with must be made by the job `secrets` or by an operator, each pod mounts only the
 * Secret of its own service, and no key is made in vain.
 */
/** Made by Strimzi and CloudNativePG. */
const ofOthers = [
  'kafka-cluster-ca-cert ca.crt',
  'bank-postgres-ca ca.crt',
  'bank-postgres-app password',
  ...['gateway', 'ledger', 'accounts', 'webhooks', 'topics'].map((service) => `core-banking-${service} password`),
];
interface Rendered {
  kind: string;
  metadata: { name: string };
  spec: { template: { spec: { containers: { env: { name: string; value?: string }[] }[] } } };
}
const documents = parseAllDocuments(await text(process.stdin)).flatMap(
  (document) => (document.toJS() as Rendered | null) ?? [],
);

const job = documents.find(({ kind, metadata }) => kind === 'Job' && metadata.name === 'bank-secrets');
const pairs = job?.spec.template.spec.containers[0]?.env.find(({ name }) => name === 'SECRETS')?.value ?? '';
const derived = deriveSecrets(['']);
const made = pairs.split(',').flatMap((pair) => {
  const [service = '', name = ''] = pair.split('=');
  return Object.keys(derived[service as Reader]).map((key) => `${name} ${key}`);
});

/** References of the forms { secret: { name, items: [{ key }] } } and { name, key }. */
function read(value: unknown): string[] {
  if (typeof value !== 'object' || value === null) return [];
  const { secret, name, key } = value as {
    secret?: { name: string; items?: { key: string }[] };
    name?: unknown;
    key?: unknown;
  };
  const mounted = secret?.items?.map((item) => `${secret.name} ${item.key}`) ?? [];
  const named = typeof name === 'string' && typeof key === 'string' ? [`${name} ${key}`] : [];
  return [...mounted, ...named, ...Object.values(value).flatMap(read)];
}
const wanted = new Set(read(documents));
assert(wanted.size > 20, 'too few Secrets are read: this looks in the wrong places');
assert.deepEqual([...wanted].sort(), [...new Set([...made, ...ofOthers])].sort());
for (const { kind, metadata, spec } of documents)
  if (kind === 'Deployment')
    for (const reference of read(spec))
      assert(
        ofOthers.includes(reference) || reference.startsWith(`${metadata.name} `),
        `${metadata.name} reads ${reference}, which is not its own`,
      );
