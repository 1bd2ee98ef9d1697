import { setTimeout as sleep } from 'node:timers/promises';
import { deadLetterTopics, topicName } from '#libs/contracts/topics.ts';
import { createKafka } from '#libs/kafka/client.ts';
import { topicRanges } from '#libs/kafka/topics.ts';
import { silent } from '#libs/postgres/test/test-database.ts';
import type { Bench } from '../faults/row.ts';
import { eventually } from '../support/eventually.ts';
import type { HaCluster } from './cluster.ts';
import { type HaRow, haRow } from './measure.ts';
import { caughtUp, restartBrokers } from './rows-kafka.ts';

const outageMs = 5000;
const expiredMs = 10_000;
const ha = ({ cluster }: Bench) => cluster as HaCluster;

/** Restarts every service, one after the other. Each reads its trusted certificates when it starts. */
async function restartServices({ cluster }: Bench): Promise<void> {
  for (const name of ['ledger', 'ledger-2', 'gateway', 'gateway-2']) {
    const node = cluster.node(name);
    await node.stop();
    node.start();
    await node.ready();
  }
  const [old, spare] = [cluster.node('accounts'), cluster.node('accounts-2')];
  spare.start();
  await spare.ready();
  await old.stop();
  old.start();
  await old.ready();
  await spare.stop();
}

/** Postgres now presents the new certificates, and every service must verify them. */
async function reloadDatabase(bench: Bench): Promise<void> {
  await ha(bench).database.reload();
  await bench.pool.query(
    "select pg_terminate_backend(pid) from pg_stat_activity where datname = current_database() and application_name <> 'checker'",
  );
}

async function deadLetters({ cluster }: Bench): Promise<bigint> {
  const kafka = createKafka({ brokers: cluster.brokers.split(','), client_id: 'checker-dead-letters' }, silent);
  const ranges = await Promise.all(
    deadLetterTopics.map((topic) => topicRanges(kafka, topicName(cluster.topicPrefix, topic))),
  );
  return ranges.flat().reduce((sum, { low, high }) => sum + high - low, 0n);
}

const expired = haRow({
  name: 'certificates-expired',
  title: 'the certificate of Postgres, then that of one broker, expired and presented for 10 s, then replaced',
  touches: ['all'],
  outageMs,
  async inject(bench, mark) {
    const { certificates, brokers3, cluster } = { ...ha(bench), cluster: bench.cluster };
    const before = await deadLetters(bench);
    certificates.present(certificates.authority, -1);
    await reloadDatabase(bench);
    await eventually(async () => (await fetch(cluster.node('ledger').healthUrl)).status === 503, 30_000);
    await sleep(bench.duration(expiredMs));
    certificates.present(certificates.authority);
    await ha(bench).database.reload();
    mark('Postgres presents a certificate that is valid');
    await sleep(outageMs);
    await caughtUp(bench);
    const broker = bench.random.pick(brokers3.all);
    certificates.present(certificates.authority, -1);
    mark(`${broker.name} restarts with an expired certificate`);
    await broker.stop();
    await broker.start();
    await sleep(bench.duration(expiredMs));
    certificates.present(certificates.authority);
    mark(`${broker.name} restarts with a valid one`);
    await broker.stop();
    const startedAt = await broker.start();
    await caughtUp(bench);
    const after = await deadLetters(bench);
    if (after !== before) throw new Error(`${after - before} messages were dead-lettered because of a certificate`);
    return startedAt;
  },
});

const rotation = haRow({
  name: 'certificates-rotation',
  title:
    'a full rotation of the CA: trusted in addition to the old one, then used for all certificates, then the old one no longer trusted',
  touches: ['all'],
  outageMs,
  async inject(bench, mark) {
    const { certificates } = ha(bench);
    const old = certificates.authority;
    const next = certificates.nextAuthority();
    mark('services restart and trust both CAs');
    certificates.trust([old, next]);
    await restartServices(bench);
    certificates.present(next);
    mark('Postgres presents the new certificate');
    await reloadDatabase(bench);
    await restartBrokers(bench, mark);
    mark('services restart and trust the new CA alone');
    certificates.trust([next]);
    await restartServices(bench);
  },
});

export const certificateRows: HaRow[] = [expired, rotation];
