import { spawnSync } from 'node:child_process';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Child } from '../../tools/local/child.ts';
import { startChild } from '../../tools/local/child.ts';
import { freePort } from '../../tools/local/ports.ts';
import { awaitReady } from '../../tools/local/ready.ts';

const has = (program: string): boolean => spawnSync(program, ['--version'], { stdio: 'ignore' }).status === 0;

/**
 * Returns why there is no Prometheus on this machine, or undefined if there is one or it could be installed (from
 * Debian's package, as root).
 */
export function noPrometheus(): string | undefined {
  if (has('prometheus') && has('promtool')) return undefined;
  if (process.platform !== 'linux' || process.getuid?.() !== 0)
    return 'there is no prometheus with promtool on the path';
  const install = () =>
    spawnSync('apt-get', ['install', '-y', '--no-install-recommends', 'prometheus'], {
      stdio: 'ignore',
      timeout: 300_000,
      env: { ...process.env, DEBIAN_FRONTEND: 'noninteractive' },
    }).status === 0;
  if (!install()) {
    spawnSync('apt-get', ['update'], { stdio: 'ignore', timeout: 120_000 });
    install();
  }
  return has('prometheus') && has('promtool') ? undefined : 'prometheus could not be installed';
}

export interface Prometheus {
  /** Returns the current value of an expression. Throws if Prometheus rejects it. */
  query(expression: string): Promise<{ metric: Record<string, string>; value: number }[]>;
  stop(): Promise<void>;
}

/**
 * Scrapes these host:port addresses every three seconds, with our rules. (A gauge that cannot be read takes two
 * seconds.)
 */
export async function startPrometheus(dir: string, targets: string[], rules: string): Promise<Prometheus> {
  mkdirSync(dir, { recursive: true });
  const [config, port] = [join(dir, 'prometheus.yml'), await freePort()];
  writeFileSync(
    config,
    JSON.stringify({
      global: { scrape_interval: '3s', scrape_timeout: '3s', evaluation_interval: '1s' },
      rule_files: [rules],
      scrape_configs: [{ job_name: 'core-banking', static_configs: [{ targets }] }],
    }),
  );
  const log = join(dir, 'prometheus.log');
  const args = [
    `--config.file=${config}`,
    `--storage.tsdb.path=${join(dir, 'data')}`,
    `--web.listen-address=127.0.0.1:${port}`,
  ];
  const child: Child = startChild({ name: 'prometheus', command: 'prometheus', args, log, marker: config });
  const url = `http://127.0.0.1:${port}`;
  await awaitReady({ url: `${url}/-/ready` }, 60_000, () => (child.running() ? undefined : `died, see ${log}`));
  return {
    async query(expression) {
      const response = await fetch(`${url}/api/v1/query`, {
        method: 'POST',
        body: new URLSearchParams({ query: expression }),
        signal: AbortSignal.timeout(10_000),
      });
      const answer = (await response.json()) as {
        status: string;
        error?: string;
        data: { result: { metric: Record<string, string>; value: [number, string] }[] };
      };
      if (answer.status !== 'success') throw new Error(`${answer.error} in ${expression}`);
      return answer.data.result.map(({ metric, value }) => ({ metric, value: Number(value[1]) }));
    },
    stop: () => child.stop(10_000),
  };
}
