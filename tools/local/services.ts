import { awaitAll } from './await-all.ts';
import type { BankSettings, ServiceKind, ServiceSpec } from './bank.ts';
import { startService } from './bank.ts';
import type { Connection } from './connection.ts';
import type { Launch } from './launch.ts';
import { untilReady } from './launch.ts';
import type { LocalDir } from './local-dir.ts';
import type { Supervised } from './supervisor.ts';
import { supervise } from './supervisor.ts';

const READY_TIMEOUT_MS = 60_000;
const STOP_SERVICE_MS = 12_000;

export type ServiceCounts = Record<ServiceKind, number>;

type Service = { spec: ServiceSpec; running: Supervised; health_url: string };

async function serviceSpecs(
  local: LocalDir,
  counts: ServiceCounts,
  publicPort: number,
  dashboardPort: number,
): Promise<ServiceSpec[]> {
  const gatewayPort = (n: number, name: string) => (n === 1 ? publicPort : local.port(name));
  const specs: ServiceSpec[] = [];
  for (const kind of ['ledger', 'accounts', 'webhooks', 'gateway', 'dashboard'] as const) {
    for (let n = 1; n <= counts[kind]; n++) {
      const name = n === 1 ? kind : `${kind}-${n}`;
      const port = kind === 'dashboard' ? dashboardPort : kind === 'gateway' ? await gatewayPort(n, name) : undefined;
      specs.push({
        kind,
        name,
        port,
        ...((kind === 'dashboard' || kind === 'webhooks') && { apiUrl: `http://127.0.0.1:${publicPort}` }),
        healthPort: await local.port(`${name}_health`),
        log: local.log(name),
        onStart: local.recordProcess,
      });
    }
  }
  return specs;
}

/**
 * Starts the services under supervision. Resolves when all are ready, with the function that lists them for
 * connection.json. `onRestart` is called when one of them has a new pid. Throws an error with the end of the log of a
 * service that does not become ready.
 */
export async function startServices(
  launch: Launch,
  local: LocalDir,
  settings: BankSettings,
  counts: ServiceCounts,
  publicPort: number,
  dashboardPort: number,
  onRestart: () => void,
): Promise<() => Connection['services']> {
  const services: Service[] = [];
  for (const spec of await serviceSpecs(local, counts, publicPort, dashboardPort)) {
    const running = await supervise(spec.name, async () => startService(spec, settings), {
      onRestart,
      report: launch.report,
    });
    // The dashboard stops first and then the gateways, because the requests that are waiting in them must still be
    // answered.
    const part = spec.kind === 'gateway' || spec.kind === 'dashboard' ? spec.kind : 'services';
    launch.onStop(part, () => running.stop(STOP_SERVICE_MS));
    services.push({ spec, running, health_url: `http://127.0.0.1:${spec.healthPort}/readyz` });
  }
  await awaitAll(
    services.map(({ spec, running, health_url }) =>
      launch.step(`${spec.name} ready`, () => untilReady(running, health_url, spec.log, READY_TIMEOUT_MS)),
    ),
  );
  return () =>
    services.map(({ spec, running, health_url }) => ({
      name: spec.name,
      pid: running.pid(),
      health_url,
      // The first gateway's address is the base_url in connection.json.
      ...(spec.kind === 'gateway' && spec.port !== publicPort ? { base_url: `http://127.0.0.1:${spec.port}` } : {}),
    }));
}
