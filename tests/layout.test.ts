import { readdirSync, readFileSync } from 'node:fs';
import { join, relative } from 'node:path';
import { describe, expect, it } from 'vitest';

/** Tests which folder may import which (docs/architecture.md). */
const root = join(import.meta.dirname, '..');

const isTest = (file: string) => /\.test\.ts$|\/test\//.test(file);

function sources(folder: string): string[] {
  return readdirSync(join(root, folder), { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith('.ts') && !/node_modules|\bdist\//.test(name))
    .map((name) => join(folder, name));
}

/** Returns the imports of a file: packages by name, our files as paths from the root. */
function importsOf(file: string): string[] {
  const text = readFileSync(join(root, file), 'utf8');
  const found = [
    ...text.matchAll(/^(?:import|export)\s[^;]*?from\s+'([^']+)'|^import\s+'([^']+)'|\bimport\('([^']+)'\)/gm),
  ].map((m) => m[1] ?? m[2] ?? m[3] ?? '');
  return found.map((name) => {
    if (name.startsWith('.')) return relative(root, join(root, file, '..', name));
    return name.startsWith('#') ? name.slice(1) : name;
  });
}

const own = (name: string) => /^(libs|services|tools|deploy|tests|clients|cli|examples)\//.test(name);

function wrong(folder: string, allowed: (name: string) => boolean): string[] {
  return sources(folder)
    .filter((file) => !isTest(file))
    .flatMap((file) =>
      importsOf(file)
        .filter((name) => !allowed(name))
        .map((name) => `${file} imports ${name}`),
    );
}

describe('layout', () => {
  it('contracts imports only zod', () => {
    expect(
      wrong(
        'libs/contracts',
        (name) => name.startsWith('libs/contracts/') || name === 'zod' || name.startsWith('node:'),
      ),
    ).toEqual([]);
  });

  it('kafka and postgres import only contracts; service imports other libs', () => {
    for (const folder of ['libs/kafka', 'libs/postgres']) {
      expect(
        wrong(folder, (name) => !own(name) || name.startsWith(`${folder}/`) || name.startsWith('libs/contracts/')),
      ).toEqual([]);
    }
    expect(wrong('libs/service', (name) => !own(name) || name.startsWith('libs/'))).toEqual([]);
  });

  it('in kafka, request-reply imports consume and publish, which do not import it', () => {
    const may: Record<string, string[]> = {
      publish: ['publish/'],
      consume: ['consume/', 'publish/'],
      'request-reply': ['request-reply/', 'consume/', 'publish/'],
      patched: ['patched/', 'codecs/', 'consume/received-message.ts'],
      codecs: ['codecs/'],
    };
    for (const [folder, allowed] of Object.entries(may)) {
      const inside = (name: string) => name.slice('libs/kafka/'.length);
      const isAllowed = (name: string) =>
        !name.startsWith('libs/kafka/') ||
        !inside(name).includes('/') ||
        allowed.some((prefix) => inside(name).startsWith(prefix));
      expect(wrong(`libs/kafka/${folder}`, isAllowed)).toEqual([]);
    }
  });

  it('services import libs, never each other', () => {
    for (const service of ['gateway', 'ledger', 'accounts', 'webhooks']) {
      expect(
        wrong(
          `services/${service}`,
          (name) => !own(name) || name.startsWith('libs/') || name.startsWith(`services/${service}/`),
        ),
      ).toEqual([]);
    }
  });

  it('the TypeScript client imports only itself, because it is a package for others', () => {
    expect(wrong('clients/typescript', (name) => name.startsWith('clients/typescript/'))).toEqual([]);
  });

  it('the consumer package imports only contracts and compression codecs, and the examples import it', () => {
    expect(
      wrong(
        'clients/consumer',
        (name) => !own(name) || /^(clients\/consumer|libs\/contracts|libs\/kafka\/codecs)\//.test(name),
      ),
    ).toEqual([]);
    expect(
      wrong('examples', (name) => !own(name) || name.startsWith('examples/') || name === 'clients/consumer/index.ts'),
    ).toEqual([]);
  });

  it('only one folder imports kafkajs and one pg, also among tests', () => {
    const everything = ['libs', 'services', 'tools', 'deploy', 'tests', 'bench', 'cli'].flatMap(sources);
    const importers = (pattern: RegExp, except: string) =>
      everything.filter((file) => !file.startsWith(except) && importsOf(file).some((name) => pattern.test(name)));
    // The benchmark's bare contender uses kafkajs as published, without libs/kafka.
    expect(importers(/^kafkajs$/, 'libs/kafka/')).toEqual(['bench/contenders/bare.ts']);
    expect(importers(/^(pg|node-pg-migrate)$/, 'libs/postgres/')).toEqual([]);
  });

  it('in postgres, the outbox imports the rest, which does not import it', () => {
    const rest = sources('libs/postgres').filter((file) => !isTest(file) && !file.startsWith('libs/postgres/outbox/'));
    expect(rest.flatMap((file) => importsOf(file).filter((name) => name.startsWith('libs/postgres/outbox/')))).toEqual(
      [],
    );
  });

  it('pure files import only contracts and pure files', () => {
    const isPure = (name: string) =>
      name.startsWith('libs/contracts/') || name.startsWith('services/ledger/domain/') || name === 'node:crypto';
    expect(wrong('services/ledger/domain', isPure)).toEqual([]);
    expect(importsOf('services/accounts/sagas/account-number.ts').filter((name) => !isPure(name))).toEqual([]);
  });

  /** Expects that imports of a folder within its service are in the folder itself or in those after its name. */
  function keepsTo(service: string, may: Record<string, string[]>): void {
    const found = Object.entries(may).flatMap(([folder, others]) => {
      const allowed = [`${folder}/`, ...others].map((name) => `services/${service}/${name}`);
      return wrong(
        `services/${service}/${folder}`,
        (name) => !name.startsWith(`services/${service}/`) || allowed.some((prefix) => name.startsWith(prefix)),
      );
    });
    expect(found).toEqual([]);
  }

  it('ledger: the folders for writing and reading import the domain, not each other', () => {
    keepsTo('ledger', {
      domain: [],
      audit: ['domain/'],
      batch: ['domain/', 'audit/', 'rows.ts'],
      verify: ['domain/', 'audit/', 'rows.ts'],
      erasure: ['rows.ts'],
      queries: ['domain/', 'verify/', 'erasure/', 'rows.ts'],
    });
  });

  it('accounts: commands and queries import their subjects, not each other', () => {
    keepsTo('accounts', {
      audit: [],
      clients: ['outcome.ts'],
      'api-keys': ['outcome.ts', 'audit/', 'clients/'],
      sagas: ['outcome.ts', 'clients/'],
      notes: ['outcome.ts', 'clients/', 'sagas/'],
      'dead-letters': ['outcome.ts'],
      erasure: ['outcome.ts', 'clients/', 'api-keys/'],
      approvals: ['outcome.ts', 'audit/', 'api-keys/'],
      commands: [
        'outcome.ts',
        'masters.ts',
        'audit/',
        'clients/',
        'api-keys/',
        'sagas/',
        'notes/',
        'dead-letters/',
        'approvals/',
        'erasure/',
      ],
      queries: ['outcome.ts', 'audit/', 'clients/', 'api-keys/', 'sagas/', 'notes/', 'dead-letters/', 'approvals/'],
    });
  });

  it('webhooks: the folders for receiving, sending, and queries import the store', () => {
    keepsTo('webhooks', {
      events: [],
      deliveries: ['events/', 'audit.ts'],
      webhooks: ['deliveries/', 'audit.ts'],
      queries: ['events/', 'webhooks/'],
    });
  });

  it('gateway: imports point in one direction', () => {
    const gateway = 'services/gateway';
    const outside = (folder: string, others: string[]) =>
      wrong(`${gateway}/${folder}`, (name) => !others.some((other) => name.startsWith(`${gateway}/${other}/`)));
    expect(outside('overload', ['access', 'api', 'dashboard'])).toEqual([]);
    expect(outside('access', ['overload', 'dashboard'])).toEqual([]);
    expect(outside('api', ['dashboard'])).toEqual([]);
    expect(outside('observe', ['access', 'overload', 'dashboard'])).toEqual([]);
    expect(outside('dashboard/html', ['dashboard/pages'])).toEqual([]);
    expect(outside('dashboard/session', ['dashboard/pages'])).toEqual([]);
  });

  it('process.env is read in one place', () => {
    const readers = ['libs', 'services']
      .flatMap(sources)
      .filter((file) => !isTest(file) && readFileSync(join(root, file), 'utf8').includes('process.env'));
    expect(readers).toEqual(['libs/service/config.ts']);
  });
});
