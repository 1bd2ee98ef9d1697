import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { text } from 'node:stream/consumers';
import { parseAllDocuments } from 'yaml';

/**
 * Reads the chart as rendered by Helm from standard input, and the folder deploy/kubernetes. Each
 * key of a Secret that a pod mounts, an autoscaler logs in with, or an example names must be
 * created by secrets.yaml, and secrets.yaml must create no unused key.
 */
const folder = process.argv[2] ?? '';
/** These Secrets are created by Strimzi, by CloudNativePG, and by the issuer of the Ingress's certificate. */
const ofOthers = ['kafka-cluster-ca-cert', 'bank-postgres-ca', 'bank-tls'];

interface ExternalSecret {
  kind: string;
  metadata: { name: string };
  spec: { target: { template: { data: Record<string, string> } } };
}
const all = (yaml: string) => parseAllDocuments(yaml).map((document) => document.toJS() as unknown);
const example = (file: string) => all(readFileSync(`${folder}/${file}`, 'utf8'));

const made = new Set(
  (example('secrets.yaml') as ExternalSecret[])
    .filter(({ kind }) => kind === 'ExternalSecret')
    .flatMap(({ metadata, spec }) => Object.keys(spec.target.template.data).map((key) => `${metadata.name} ${key}`)),
);

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
const isOurs = (reference: string) => !ofOthers.includes(reference.split(' ')[0] ?? '');
const users = all(readFileSync(`${folder}/../kafka/users.yaml`, 'utf8'));
const wanted = new Set([all(await text(process.stdin)), example('postgres.yaml'), users].flatMap(read).filter(isOurs));
// CloudNativePG refers only to the Secret of an owner: its keys are those of
// kubernetes.io/basic-auth.
for (const key of ['username', 'password']) wanted.add(`bank-postgres-owner ${key}`);
assert(wanted.size > 20, 'too few Secrets are read: this looks in the wrong places');
assert.deepEqual([...wanted].sort(), [...made].sort());
