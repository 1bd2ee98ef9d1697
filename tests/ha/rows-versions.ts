import { execFileSync } from 'node:child_process';
import { mkdirSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { migrateService } from '../../tools/local/bank.ts';
import { PROJECT } from '../../tools/local/local-dir.ts';
import { type Cluster, oneOfEach, startCluster } from '../faults/cluster.ts';
import type { Random } from '../faults/random.ts';
import type { Bench } from '../faults/row.ts';
import { type HaRow, haRow } from './measure.ts';

/**
 * Two versions of the bank at the same time, in both directions. The older version is OLD_COMMIT, or that of the newest tag
 * before this commit, or, without tags, the commit that recorded the newest release (tests/released). It is taken from the
 * clone's history.
 */
const besideMs = 15_000;
const recorded = 'tests/released/*/migrations.sha256';

/** Returns the commit of the older version. Throws in a clone without its history. */
function oldCommit(): string {
  const git = (...args: string[]) =>
    execFileSync('git', args, { cwd: PROJECT, encoding: 'utf8', stdio: ['ignore', 'pipe', 'pipe'] }).trim();
  const tagged = () => git('tag', '--list', 'v*', '--merged', 'HEAD^', '--sort=-v:refname').split('\n')[0];
  try {
    const named =
      process.env['OLD_COMMIT'] || tagged() || git('log', '--diff-filter=A', '--format=%H', '-1', '--', recorded);
    return git('rev-parse', '--verify', `${named}^{commit}`);
  } catch (error) {
    const shallow = git('rev-parse', '--is-shallow-repository') === 'true';
    const cause = shallow
      ? 'this clone is shallow: git fetch --unshallow brings its history'
      : 'set OLD_COMMIT to the commit of an older version';
    throw new Error(`the older version of the bank is not in the history; ${cause}`, { cause: error });
  }
}

/** Writes the files of that commit to a folder of `dir`, with this version's node_modules. */
function checkOut(commit: string, dir: string): string {
  const project = join(dir, 'older');
  mkdirSync(project, { recursive: true });
  const archive = execFileSync('git', ['archive', '--format=tar', commit], { cwd: PROJECT, maxBuffer: 1 << 30 });
  execFileSync('tar', ['-x', '-C', project], { input: archive });
  symlinkSync(join(PROJECT, 'node_modules'), join(project, 'node_modules'));
  return project;
}

export async function startOldCluster(dir: string, random: Random): Promise<Cluster> {
  const project = checkOut(oldCommit(), dir);
  return startCluster(dir, random, async (context) => ({ ...(await oneOfEach(context)), project }));
}

const older = ({ cluster }: Bench) => join(cluster.dir, 'older');

/** Restarts every service of the list, as this or the older version, one after the other. */
async function become(bench: Bench, names: string[], project: string): Promise<void> {
  for (const name of names) {
    const node = bench.cluster.node(name);
    await node.stop();
    node.start({}, project);
    await node.ready();
  }
}

async function accountsBecome({ cluster }: Bench, project: string): Promise<void> {
  const [first, spare] = [cluster.node('accounts'), cluster.node('accounts-2')];
  spare.start({}, project);
  await spare.ready();
  await first.stop();
  first.start({}, project);
  await first.ready();
  await spare.stop();
}

const sideBySide = haRow({
  name: 'versions-side-by-side',
  title:
    'the last release runs; then the migrations of this version; ledgers of both versions in parallel; all new; a ledger, a gateway, and accounts rolled back, and upgraded again',
  touches: ['all'],
  outageMs: 0,
  callers: 'nothing',
  async inject(bench, mark) {
    const { cluster } = bench;
    bench.say(`the older version is ${oldCommit().slice(0, 12)}`);
    const settings = { ...cluster.nodeSettings('ledger'), project: PROJECT };
    mark('migrations of the new version, while the old one runs');
    await Promise.all([migrateService('ledger', settings), migrateService('accounts', settings)]);
    await sleep(bench.duration(besideMs));
    mark('ledgers, gateways and accounts of both versions, then all new');
    await become(bench, ['ledger'], PROJECT);
    await sleep(bench.duration(besideMs));
    await become(bench, ['ledger-2'], PROJECT);
    await accountsBecome(bench, PROJECT);
    await become(bench, ['gateway', 'gateway-2'], PROJECT);
    mark('a ledger, a gateway, and accounts of the old version again, on the new schema');
    await become(bench, ['gateway', 'ledger'], older(bench));
    await accountsBecome(bench, older(bench));
    await sleep(bench.duration(besideMs));
    mark('all new again');
    await accountsBecome(bench, PROJECT);
    await become(bench, ['ledger', 'gateway'], PROJECT);
  },
});

export const versionRows: HaRow[] = [sideBySide];
