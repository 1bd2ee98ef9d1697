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
function listImports(file: string): string[] {
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
      listImports(file)
        .filter((name) => !allowed(name))
        .map((name) => `${file} imports ${name}`),
    );
}

/** Returns the folders that contain a file, from the top. */
function listFolders(file: string): string[] {
  const names = file.split('/').slice(0, -1);
  return names.map((_, i) => names.slice(0, i + 1).join('/'));
}

/** Returns one circle of imports among the files and subfolders of a folder, if there is one. */
function circles(folder: string, imports: ReadonlyMap<string, string[]>): string[] {
  const findRoom = (file: string) =>
    file.startsWith(`${folder}/`) ? file.slice(folder.length + 1).split('/')[0] : undefined;
  const edges = new Map<string, Set<string>>();
  for (const [file, names] of imports) {
    const from = findRoom(file);
    if (from === undefined) continue;
    const to = names.map(findRoom).filter((room) => room !== undefined && room !== from) as string[];
    edges.set(from, new Set([...(edges.get(from) ?? []), ...to]));
  }
  const done = new Set<string>();
  const visit = (room: string, path: string[]): string[] | undefined => {
    if (path.includes(room)) return [...path.slice(path.indexOf(room)), room];
    if (done.has(room)) return undefined;
    for (const next of edges.get(room) ?? []) {
      const circle = visit(next, [...path, room]);
      if (circle) return circle;
    }
    done.add(room);
    return undefined;
  };
  for (const room of edges.keys()) {
    const circle = visit(room, []);
    if (circle) return [`${folder}: ${circle.join(' -> ')}`];
  }
  return [];
}

describe('layout', () => {
  it('contracts imports only zod, libphonenumber-js, and idn-hostname', () => {
    expect(
      wrong(
        'libs/contracts',
        (name) => /^(libs\/contracts\/|zod$|idn-hostname$|libphonenumber-js\/)/.test(name) || name.startsWith('node:'),
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
      patched: ['patched/', 'codecs/'],
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
    for (const service of ['gateway', 'ledger', 'accounts', 'webhooks', 'dashboard']) {
      // The dashboard calls the API like any other program.
      const client = service === 'dashboard' ? ['clients/typescript/'] : [];
      const allowed = ['libs/', `services/${service}/`, ...client];
      const isAllowed = (name: string) => !own(name) || allowed.some((prefix) => name.startsWith(prefix));
      expect(wrong(`services/${service}`, isAllowed)).toEqual([]);
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
      everything.filter((file) => !file.startsWith(except) && listImports(file).some((name) => pattern.test(name)));
    // The benchmark's bare contender uses kafkajs as published, without libs/kafka.
    expect(importers(/^kafkajs$/, 'libs/kafka/')).toEqual(['bench/contenders/bare.ts']);
    expect(importers(/^pg$/, 'libs/postgres/')).toEqual([]);
  });

  it('in postgres, the outbox imports the rest, which does not import it', () => {
    const rest = sources('libs/postgres').filter((file) => !isTest(file) && !file.startsWith('libs/postgres/outbox/'));
    expect(
      rest.flatMap((file) => listImports(file).filter((name) => name.startsWith('libs/postgres/outbox/'))),
    ).toEqual([]);
  });

  it('pure files import only contracts and pure files', () => {
    const isPure = (name: string) =>
      name.startsWith('libs/contracts/') || name.startsWith('services/ledger/domain/') || name === 'node:crypto';
    expect(wrong('services/ledger/domain', isPure)).toEqual([]);
    expect(listImports('services/accounts/sagas/account-number.ts').filter((name) => !isPure(name))).toEqual([]);
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
      batch: ['domain/', 'audit/', 'rows.ts', 'till-cash.ts'],
      verify: ['domain/', 'audit/', 'rows.ts'],
      queries: ['domain/', 'verify/', 'rows.ts', 'till-cash.ts'],
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
      erasure: ['outcome.ts', 'clients/', 'api-keys/', 'approvals/'],
      approvals: ['outcome.ts', 'audit/', 'api-keys/'],
      commands: [
        'outcome.ts',
        'snapshot-events.ts',
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

  it('the dashboard uses neither Kafka nor a database', () => {
    expect(wrong('services/dashboard', (name) => !/^libs\/(kafka|postgres)\//.test(name))).toEqual([]);
  });

  it('gateway: overload does not know access, nor the API', () => {
    const gateway = 'services/gateway';
    const outside = (folder: string, others: string[]) =>
      wrong(`${gateway}/${folder}`, (name) => !others.some((other) => name.startsWith(`${gateway}/${other}/`)));
    expect(outside('overload', ['access', 'api'])).toEqual([]);
  });

  describe('folders and the files beside them import each other in one direction', () => {
    const parts = ['services', 'libs', 'clients'].flatMap((parent) =>
      readdirSync(join(root, parent), { withFileTypes: true })
        .filter((entry) => entry.isDirectory())
        .map(({ name }) => `${parent}/${name}`),
    );
    it.each([...parts, 'bench', 'cli', 'deploy/check', 'tools/generate', 'tools/local'])('%s', (part) => {
      const files = sources(part).filter((file) => !isTest(file));
      // Files of a folder that has no folders may know each other.
      const parents = files
        .flatMap((file) => listFolders(file).slice(0, -1))
        .filter((folder) => folder.startsWith(part));
      const folders = new Set([part, ...parents]);
      const imports = new Map(files.map((file) => [file, listImports(file)]));
      expect([...folders].flatMap((folder) => circles(folder, imports))).toEqual([]);
    });

    it('a circle is found, through several files and in folders of folders', () => {
      const imports = new Map([
        ['a/x/1.ts', ['a/y/1.ts']],
        ['a/y/1.ts', ['a/y/2.ts', 'zod']],
        ['a/y/2.ts', []],
        ['a/y/3.ts', ['a/z.ts']],
        ['a/z.ts', ['a/x/2.ts']],
        ['a/x/2.ts', []],
        ['a/top.ts', ['a/z.ts', 'b/1.ts']],
      ]);
      expect(circles('a', imports)).toEqual(['a: x -> y -> z.ts -> x']);
      expect(circles('a/y', imports)).toEqual([]);
    });
  });

  it('process.env is read in one place', () => {
    const readers = ['libs', 'services']
      .flatMap(sources)
      .filter((file) => !isTest(file) && readFileSync(join(root, file), 'utf8').includes('process.env'));
    expect(readers).toEqual(['libs/service/config.ts']);
  });
});
