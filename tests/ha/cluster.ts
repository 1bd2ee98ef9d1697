import { type Cluster, oneDatabase, startCluster } from '../faults/cluster.ts';
import type { Random } from '../faults/random.ts';
import { type Brokers, makeBrokers } from './brokers.ts';

/** A bank on three brokers and a database with a standby. */
export interface HaCluster extends Cluster {
  brokers3: Brokers;
}

export async function startHaCluster(dir: string, random: Random): Promise<HaCluster> {
  let brokers: Brokers | undefined;
  const cluster = await startCluster(dir, random, async (context) => {
    brokers = await makeBrokers(context);
    const { bootstrap, together } = brokers;
    return {
      ...(await oneDatabase(context)),
      broker: together,
      brokers: bootstrap,
      brokersOf: () => bootstrap,
      env: { REPLICATION_FACTOR: '3' },
    };
  });
  return { ...cluster, brokers3: brokers as Brokers };
}
