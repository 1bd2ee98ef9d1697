import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, test } from 'vitest';
import { parse } from 'yaml';
import type { z } from 'zod';
import { loadConfig } from '#libs/service/config.ts';
import { programs as schemas } from '../../tools/generate/configuration.ts';
import { localDefaults, newKeyPair } from '../../tools/local/bank.ts';
import { idpConfig } from '../../tools/local/identity-provider.ts';
import { containerSettings, KAFKA_IMAGE } from '../../tools/local/kafka.ts';
import { PROJECT } from '../../tools/local/local-dir.ts';
import { initdbLocale } from '../../tools/local/postgres.ts';

/** Checks docker-compose.yml without an engine, for defects that `npm run check:deploy` would find later. */
type Service = {
  image: string;
  command?: string[];
  environment?: Record<string, string | number>;
  depends_on?: Record<string, { condition: string }>;
  healthcheck?: { disable?: boolean; test?: string[] };
  volumes?: string[];
  ports?: string[];
  networks?: string[] | Record<string, unknown>;
  profiles?: string[];
  restart?: string;
  read_only?: boolean;
  cap_drop?: string[];
  security_opt?: string[];
  mem_limit?: string;
};
type Compose = { services: Record<string, Service>; volumes: Record<string, null>; networks: Record<string, null> };

const read = (file: string): string => readFileSync(join(PROJECT, file), 'utf8');
/** The file as compose reads it if no variable is set. */
const text = read('docker-compose.yml')
  .replaceAll(/\$\{\w+:-([^}]*)\}/g, '$1')
  .replaceAll('$$', '$');
const { services, volumes, networks } = parse(text, { merge: true }) as Compose;
const programs = [...read('deploy/Dockerfile').matchAll(/ln -s \S+ (\S+)/g)].map(([, program]) => program);
const ours = Object.entries(services).filter(([, { image }]) => image.startsWith('core-banking'));
const isJob = ({ restart }: Service) => restart !== 'unless-stopped';

const folder = mkdtempSync(join(tmpdir(), 'compose-'));
afterAll(() => rmSync(folder, { recursive: true }));

/** Returns the environment of the service's process, with valid values for secrets. */
function serviceEnvironment(name: string): Record<string, string> {
  const databaseUrl = join(folder, 'database_url');
  const client = join(folder, 'client');
  writeFileSync(client, 'dashboard:a secret of sixteen');
  const other = join(folder, 'secret');
  writeFileSync(databaseUrl, 'postgres://user:password@postgres:5432/core_banking');
  writeFileSync(other, 'a secret of 32 characters or more');
  const { privateKey, publicKey } = newKeyPair();
  const [signing, verifying] = [join(folder, 'private.pem'), join(folder, 'public.pem')];
  writeFileSync(signing, privateKey);
  writeFileSync(verifying, publicKey);
  const files: Record<string, string> = {
    DATABASE_URL_FILE: databaseUrl,
    DASHBOARD_CLIENT_FILE: client,
    API_KEY_SIGNING_KEY_FILE: signing,
    API_KEY_PUBLIC_KEYS_FILE: verifying,
  };
  const entries = Object.entries(services[name]?.environment ?? {});
  return Object.fromEntries(
    entries.map(([key, value]) => [
      key,
      key.endsWith('_FILE') ? (files[key.replace('MIGRATION_', '')] ?? other) : String(value),
    ]),
  );
}

describe('docker-compose.yml', () => {
  const {
    gateway,
    ledger,
    accounts,
    webhooks,
    dashboard,
    'create-topics': topics,
    'ledger/migrate': ledgerSchema,
    'accounts/migrate': accountsSchema,
    'webhooks/migrate': webhooksSchema,
    'verify-books': verifyBooks,
  } = schemas;
  const configs = {
    gateway,
    ledger,
    accounts,
    webhooks,
    dashboard,
    topics,
    'migrate-ledger': ledgerSchema,
    'migrate-accounts': accountsSchema,
    'migrate-webhooks': webhooksSchema,
    'verify-books': verifyBooks,
    'identity-provider': idpConfig,
  } as Record<string, z.ZodObject>;

  test.each(Object.entries(configs))(
    '%s gets all that it asks for, valid, and nothing that it does not know',
    (name, schema) => {
      const environment = serviceEnvironment(name);
      expect(() => loadConfig(schema, environment)).not.toThrow();
      const ofOthers = ['BANK_MODE', 'OTEL_EXPORTER_OTLP_ENDPOINT'];
      const known = [...ofOthers, ...Object.keys(schema.shape).flatMap((variable) => [variable, `${variable}_FILE`])];
      expect(Object.keys(environment).filter((variable) => !known.includes(variable))).toEqual([]);
    },
  );

  test('each command is a program of the image or a file', () => {
    for (const [name, { command = [] }] of ours)
      expect([...programs, 'deploy/compose/make-secrets.ts', 'deploy/compose/api-key.ts'], name).toContain(command[0]);
  });

  test('broker and database have the settings of npm start, and the broker advertises an address that it can reach itself', () => {
    const { environment = {}, image } = services['kafka'] ?? {};
    const {
      KAFKA_LISTENERS: _l,
      KAFKA_ADVERTISED_LISTENERS: _a,
      CLUSTER_ID: _c,
      ...common
    } = containerSettings(9094, 'any');
    expect(Object.fromEntries(Object.keys(common).map((key) => [key, String(environment[key])]))).toEqual(common);
    expect(environment['KAFKA_ADVERTISED_LISTENERS']).toContain('BROKER://kafka:9092');
    expect(image).toBe(KAFKA_IMAGE);
    expect(services['postgres']?.environment?.['POSTGRES_INITDB_ARGS']).toBe(initdbLocale.join(' '));
  });

  test('gateway and webhooks have the defaults of npm start', () => {
    const environment = { ...services['webhooks']?.environment, ...services['gateway']?.environment };
    const ours = Object.keys(localDefaults).map((name) => [name, String(environment[name])]);
    expect(Object.fromEntries(ours)).toEqual(localDefaults);
  });

  test.each(Object.entries(services))(
    '%s has limited rights, a health check, and resource limits',
    (_name, service) => {
      expect(service).toMatchObject({
        cap_drop: ['ALL'],
        security_opt: ['no-new-privileges:true'],
        mem_limit: expect.stringMatching(/^\d+[mg]$/),
      });
      // Kafka's image writes its settings when it starts.
      expect(service.read_only === true || service.image === KAFKA_IMAGE).toBe(true);
      if (isJob(service)) expect(service.healthcheck).toEqual({ disable: true });
      // Our image has its own health check. The images for observing the bank have no shell for one, and no other
      // service depends on them.
      else if (!service.profiles?.includes('observability'))
        expect(
          service.healthcheck?.test?.length ?? (service.image.startsWith('core-banking:') ? 1 : 0),
        ).toBeGreaterThan(0);
      for (const port of service.ports ?? []) expect(port).toMatch(/^127\.0\.0\.1:/);
    },
  );

  test('dependencies, volumes, and networks exist; jobs are waited for until they succeed, servers until they are healthy', () => {
    for (const [name, service] of Object.entries(services)) {
      for (const [other, { condition }] of Object.entries(service.depends_on ?? {})) {
        expect(condition, `${name} waits for ${other}`).toBe(
          isJob(services[other] ?? ({} as Service)) ? 'service_completed_successfully' : 'service_healthy',
        );
      }
      for (const volume of service.volumes ?? []) {
        const [source = ''] = volume.split(':');
        if (source.startsWith('./')) expect(existsSync(join(PROJECT, source)), source).toBe(true);
        else expect(Object.keys(volumes), `${name} mounts ${source}`).toContain(source);
      }
      for (const network of Array.isArray(service.networks) ? service.networks : Object.keys(service.networks ?? {}))
        expect(Object.keys(networks)).toContain(network);
    }
  });

  test('a gateway cannot reach the database, the dashboard only gateways, and each secret is mounted only where it is needed', () => {
    expect(services['gateway']?.networks).toEqual(['front', 'messages']);
    expect(services['dashboard']?.networks).toEqual(['front', 'observability']);
    for (const name of ['gateway', 'ledger', 'accounts', 'webhooks', 'dashboard']) {
      expect(services[name]?.volumes).toEqual([`secrets-${name}:/run/secrets/${name}:ro`]);
    }
  });
});
