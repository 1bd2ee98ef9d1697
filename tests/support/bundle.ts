import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { rolldown } from 'rolldown';

const root = join(import.meta.dirname, '../..');
const dir = join(root, 'node_modules/.cache/programs');
const kinds = ['gateway', 'dashboard', 'ledger', 'accounts', 'webhooks'];

/** The file of `npm run bank` in the folder of bundlePrograms. */
export const commandLine = 'command-line/bank.js';

/**
 * Puts the modules of each service, and those of the command line, into few files, because a process that loads 150 to
 * 1,000 of them needs twice the CPU time to start, and the tests start hundreds. Returns their folder. The code is the same and knows the folders it comes from;
 * with NODE_OPTIONS=--enable-source-maps, which would cost what this saves, stack traces name its lines.
 */
export async function bundlePrograms(): Promise<string> {
  await bundle(Object.fromEntries(kinds.map((kind) => [kind, `services/${kind}/main.ts`])), dir);
  await bundle({ bank: 'cli/bank.ts' }, join(dir, dirname(commandLine)));
  return dir;
}

async function bundle(input: Record<string, string>, folder: string): Promise<void> {
  const places = (file: string): Record<string, string> => ({
    'import.meta.url': pathToFileURL(file).href,
    'import.meta.dirname': dirname(file),
    __dirname: dirname(file),
  });
  const program = await rolldown({
    cwd: root,
    platform: 'node',
    input,
    plugins: [
      {
        name: 'places',
        transform: (code, file) => ({
          code: code.replace(/\bimport\.meta\.(url|dirname)\b|\b__dirname\b/g, (name) =>
            JSON.stringify(places(file)[name]),
          ),
          map: null,
        }),
      },
    ],
  });
  const { output } = await program.generate({ format: 'esm', sourcemap: true, chunkFileNames: '[name].js' });
  await program.close();
  mkdirSync(folder, { recursive: true });
  for (const part of output) {
    const file = join(folder, part.fileName);
    const content = part.type === 'chunk' ? part.code : String(part.source);
    // Another run may be reading the same files.
    if (!existsSync(file) || readFileSync(file, 'utf8') !== content) writeFileSync(file, content);
  }
}
