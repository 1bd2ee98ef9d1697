import { setTimeout as sleep } from 'node:timers/promises';
import type { Callers } from './callers.ts';
import { type Check, expect, type Output } from './check.ts';
import { tag } from './image.ts';

/** The time for which a server is stopped. It is longer than the limits of sessions, replies, and checks. */
const awayMs = 8_000;

/** A running copy of docker-compose.yml, separate from any other on this engine. */
export interface Composed {
  baseUrl: string;
  dashboardUrl: string;
  apiKey: string;
  /** `docker compose …` */
  compose(args: string[], codes?: number[]): Promise<Output>;
  /** `docker compose up --wait …`, until every container is healthy. */
  up(...args: string[]): Promise<void>;
  docker(args: string[]): Promise<Output>;
  /** The ids of the running containers of a service. */
  containers(service: string): Promise<string[]>;
  verifyBooks(): Promise<void>;
}

/**
 * Faults that are only possible with containers, under load. After each, callers must be successful again, and the
 * books are verified.
 */
export async function faults(check: Check, composed: Composed, callers: Callers): Promise<void> {
  const { docker, containers, verifyBooks } = composed;
  const network = async (service: string, name: string) => {
    const [id = ''] = await containers(service);
    return { id, network: `core-banking-check_${name}` };
  };

  const underLoad = (title: string, inject: () => Promise<void>) =>
    check.step(title, async () => {
      callers.start();
      await sleep(1_000);
      await inject();
      const recoveredMs = await callers.calm();
      const told = await callers.stop();
      await callers.expectPosted();
      await verifyBooks();
      return `callers got through ${(recoveredMs / 1000).toFixed(1)} s after its end; ${told}`;
    });

  await underLoad('a ledger is killed: it is started again', async () => {
    const [id = ''] = await containers('ledger');
    await crash(composed, id);
    for (let looks = 0; ; looks++) {
      const { stdout } = await docker(['inspect', '-f', '{{.RestartCount}} {{.State.Health.Status}}', id]);
      if (stdout.trim() === '1 healthy') return;
      expect(looks < 300, `the killed ledger is ${stdout.trim()}`);
      await sleep(200);
    }
  });
  await underLoad('a gateway is killed: the proxy sends elsewhere', async () => {
    const [id = ''] = await containers('gateway');
    await crash(composed, id);
  });
  await underLoad(`Kafka is paused for ${awayMs / 1000} s`, async () => {
    const [id = ''] = await containers('kafka');
    await docker(['pause', id]);
    await sleep(awayMs);
    await docker(['unpause', id]);
  });
  await underLoad('Kafka is killed', async () => {
    const [id = ''] = await containers('kafka');
    await crash(composed, id);
  });
  await underLoad(`Postgres is cut off the network for ${awayMs / 1000} s`, async () => {
    const postgres = await network('postgres', 'database');
    await docker(['network', 'disconnect', postgres.network, postgres.id]);
    await sleep(awayMs);
    await docker(['network', 'connect', '--alias', 'postgres', postgres.network, postgres.id]);
  });
}

/**
 * Ends the container's process as a crash would. After `docker kill` the engine does not restart
 * the container, and the first process of a container cannot be killed from inside, so it is killed
 * from the engine's machine.
 */
async function crash({ docker }: Composed, id: string): Promise<void> {
  const pid = (await docker(['inspect', '-f', '{{.State.Pid}}', id])).stdout.trim();
  const confined = [
    'run',
    '--rm',
    '--pid',
    'host',
    '--network',
    'none',
    '--read-only',
    '--user',
    '0',
    '--cap-drop',
    'ALL',
    '--cap-add',
    'KILL',
  ];
  await docker([...confined, tag, '-e', `process.kill(${pid}, 'SIGKILL')`]);
}
