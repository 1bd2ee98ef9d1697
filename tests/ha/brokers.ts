import { writeFileSync } from 'node:fs';
import { hostname } from 'node:os';
import { join } from 'node:path';
import { newClusterId, startKafka } from '../../tools/local/kafka.ts';
import { freePort } from '../../tools/local/ports.ts';
import type { ServersContext } from '../faults/cluster.ts';
import { makeServer, type Server } from '../faults/processes.ts';
import type { Proxy } from '../support/proxy.ts';

/**
 * Three brokers that are also controllers. Each uses the others' names and its own hosts file, in which every name
 * resolves to a link between the two, so that one broker can be disconnected from the others. Services connect to each
 * broker directly over TLS, checks in plain text.
 */
export interface Brokers {
  all: Server[];
  /** All brokers as one server, to start and stop them together. */
  together: Server;
  /** Host and port of each, separated by commas: for checks, and for services. */
  bootstrap: string;
  secured: string;
  /** The links between a broker and the others, in both directions. */
  brokerLinks(broker: Server): Proxy[];
}

const count = 3;
const startTimeoutMs = 240_000;

/** The settings from docs/operations.md, and shorter timeouts so that a loss is detected soon. */
const replicatedSettings: Record<string, string> = {
  'default.replication.factor': '3',
  'min.insync.replicas': '2',
  'unclean.leader.election.enable': 'false',
  'offsets.topic.replication.factor': '3',
  'transaction.state.log.replication.factor': '3',
  'transaction.state.log.min.isr': '2',
  'share.coordinator.state.topic.replication.factor': '3',
  'share.coordinator.state.topic.min.isr': '2',
  // A broker that is silent for three seconds loses its leaderships. Clients then find the new leader
  // (libs/kafka/patched/lost-brokers.ts).
  'broker.session.timeout.ms': '3000',
  'broker.heartbeat.interval.ms': '500',
  // By default, a request to a controller that is frozen or disconnected times out after 30 s, which delays changes of
  // the in-sync replicas.
  'controller.socket.timeout.ms': '2000',
  // A follower that asks its new leader too early retries after this time, and writes wait for that.
  'replica.fetch.backoff.ms': '100',
};

interface Ports {
  client: number;
  services: number;
  broker: number;
  controller: number;
}

export async function makeBrokers(
  { dir, unexpectedExits, link }: ServersContext,
  keyStore: string,
  settings: Record<string, string> = {},
): Promise<Brokers> {
  const ids = Array.from({ length: count }, (_, i) => i + 1);
  const ports = new Map<number, Ports>();
  for (const id of ids)
    ports.set(id, {
      client: await freePort(),
      services: await freePort(),
      broker: await freePort(),
      controller: await freePort(),
    });
  const of = (id: number) => ports.get(id) as Ports;
  const links: { from: number; to: number; proxy: Proxy }[] = [];
  for (const to of ids) {
    for (const from of ids.filter((id) => id !== to)) {
      for (const kind of ['broker', 'controller'] as const) {
        links.push({
          from,
          to,
          proxy: await link(
            `${brokerName(from)}>${brokerName(to)} ${kind}`,
            of(to)[kind],
            of(to)[kind],
            address(from, to),
          ),
        });
      }
    }
  }
  const clusterId = newClusterId();
  const voters = ids.map((id) => `${id}@${brokerName(id)}:${of(id).controller}`).join(',');
  const all = ids.map((id) => {
    const { services, ...own } = of(id);
    return makeServer(
      brokerName(id),
      join(dir, 'log', `${brokerName(id)}.log`),
      own.client,
      unexpectedExits,
      (_, log) =>
        startKafka({
          dir: join(dir, brokerName(id)),
          log,
          ports: own,
          way: 'java',
          clusterId,
          listeners: [{ name: 'SERVICES', port: services, advertisedPort: services }],
          javaFlags: [`-Djdk.net.hosts.file=${writeHosts(dir, id, ids)}`],
          startTimeoutMs,
          settings: {
            ...replicatedSettings,
            'node.id': String(id),
            'controller.quorum.voters': voters,
            // This is also the controller's port: followers use the address that their leader advertises, and bypass the
            // links if that is another one.
            'advertised.listeners': `CLIENT://127.0.0.1:${own.client},BROKER://${brokerName(id)}:${own.broker},CONTROLLER://${brokerName(id)}:${own.controller},SERVICES://127.0.0.1:${services}`,
            'listener.security.protocol.map': 'CLIENT:PLAINTEXT,BROKER:PLAINTEXT,CONTROLLER:PLAINTEXT,SERVICES:SSL',
            'ssl.keystore.type': 'PEM',
            'ssl.keystore.location': keyStore,
            ...settings,
          },
        }),
    );
  });
  return {
    all,
    together: together(all),
    bootstrap: ids.map((id) => `127.0.0.1:${of(id).client}`).join(','),
    secured: ids.map((id) => `127.0.0.1:${of(id).services}`).join(','),
    brokerLinks: (broker) =>
      links.filter(({ from, to }) => [from, to].includes(all.indexOf(broker) + 1)).map(({ proxy }) => proxy),
  };
}

const brokerName = (id: number) => `broker-${id}`;
/** Returns a separate loopback address for each pair. Linux has the whole of 127.0.0.0/8. */
const address = (from: number, to: number) => `127.7.${from}.${to}`;

function writeHosts(dir: string, id: number, ids: number[]): string {
  const file = join(dir, `${brokerName(id)}.hosts`);
  const lines = [
    `127.0.0.1 localhost ${hostname()} ${brokerName(id)}`,
    ...ids.filter((other) => other !== id).map((other) => `${address(id, other)} ${brokerName(other)}`),
  ];
  writeFileSync(file, `${lines.join('\n')}\n`);
  return file;
}

function together(all: Server[]): Server {
  const [first] = all as [Server];
  return {
    name: 'brokers',
    log: first.log,
    port: first.port,
    running: () => all.every((one) => one.running()),
    pid: () => first.pid(),
    pids: () => all.flatMap((one) => one.pids()),
    signal: (signal) => all.forEach((one) => one.signal(signal)),
    kill: async () => void (await Promise.all(all.map((one) => one.kill()))),
    stop: async () => void (await Promise.all(all.map((one) => one.stop()))),
    start: async () => Math.max(...(await Promise.all(all.filter((one) => !one.running()).map((one) => one.start())))),
  };
}
