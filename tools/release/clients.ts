import { appendFileSync, cpSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { PROJECT } from '../local/local-dir.ts';

type Run = (command: string, args: string[]) => Promise<unknown>;

/** A client as `folder`/generate.sh makes it. `packed`: its sources there. `needs`: programs. */
interface GeneratedClient {
  folder: string;
  packed: readonly string[];
  needs: readonly string[];
}

/** The clients of other languages, by language. */
const clients: Record<string, GeneratedClient> = {
  java: {
    folder: 'examples/java/client',
    packed: ['build/client/pom.xml', 'build/client/src/main'],
    needs: ['java', 'mvn'],
  },
  python: {
    folder: 'examples/python',
    packed: ['build/bank', 'build/pyproject.toml', 'build/README.md'],
    needs: ['java', 'python3'],
  },
  go: { folder: 'examples/go', packed: ['bank', 'go.mod', 'go.sum'], needs: ['go'] },
  csharp: { folder: 'examples/csharp', packed: ['build/CoreBanking.sln', 'build/src'], needs: ['java', 'mvn'] },
};

/** Generates the clients of other languages from the OpenAPI document, and packs them. Returns what it could not make. */
export async function packClients(run: Run, folder: string, version: string): Promise<string[]> {
  const missing: string[] = [];
  const copy = mkdtempSync(join(tmpdir(), 'core-banking-clients-'));
  try {
    for (const part of ['docs/openapi.json', ...Object.values(clients).map((client) => client.folder)])
      cpSync(join(PROJECT, part), join(copy, part), {
        recursive: true,
        filter: (path) => !/\/(build|bank)$/.test(path),
      });
    for (const [language, { folder: from, needs }] of Object.entries(clients)) {
      const lacking: string[] = [];
      for (const program of needs) await run('which', [program]).catch(() => lacking.push(program));
      if (lacking.length > 0) {
        missing.push(`the client in ${language}: no ${lacking.join(' and ')}`);
        continue;
      }
      // Its last entry is additionalProperties.
      if (language === 'python' || language === 'csharp')
        appendFileSync(join(copy, from, 'generator.yaml'), `  packageVersion: ${version}\n`);
      await run(join(copy, from, 'generate.sh'), []);
      await packClient(run, language, join(copy, from), join(folder, `core-banking-client-${language}-${version}.tgz`));
    }
  } finally {
    rmSync(copy, { recursive: true, force: true });
  }
  return missing;
}

/** Packs the sources of a client that was generated in `place`. */
export async function packClient(run: Run, language: string, place: string, file: string): Promise<void> {
  const names = String.raw`--transform=s,^build/\(client/\)\?,,;s,^,core-banking-client/,S`;
  const constant = ['--sort=name', '--owner=0', '--group=0', '--numeric-owner', '--exclude=__pycache__'];
  await run('tar', ['-czf', file, ...constant, names, '-C', place, ...(clients[language]?.packed ?? [])]);
}
