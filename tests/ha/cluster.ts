import { type Cluster, type ServersContext, startCluster } from '../faults/cluster.ts';
import type { Random } from '../faults/random.ts';
import { type Brokers, makeBrokers } from './brokers.ts';
import { type Database, type DatabaseOptions, makeDatabase } from './database.ts';

/** A bank on three brokers and a database with a synchronous standby. */
export interface HaCluster extends Cluster {
  brokers3: Brokers;
  database: Database;
}

/** What self-tests take away: a row must find that something is lost then. */
export interface HaOptions {
  brokers?: Record<string, string>;
  env?: Record<string, string>;
  database?: DatabaseOptions;
}

export async function startHaCluster(dir: string, random: Random, options: HaOptions = {}): Promise<HaCluster> {
  const parts: { brokers3?: Brokers; database?: Database } = {};
  const servers = async (context: ServersContext) => {
    const brokers = await makeBrokers(context, options.brokers);
    const database = await makeDatabase(context, options.database);
    Object.assign(parts, { brokers3: brokers, database });
    return {
      broker: brokers.together,
      brokers: brokers.bootstrap,
      brokersOf: () => brokers.bootstrap,
      postgres: database.together,
      databasePort: database.port,
      databasePortOf: () => database.port,
      // Services refuse to start where a topic could be lost with a broker.
      env: { REPLICATION_FACTOR: '3', ALLOW_UNREPLICATED: 'false', ...options.env },
    };
  };
  const cluster = await startCluster(dir, random, servers);
  return { ...cluster, ...(parts as { brokers3: Brokers; database: Database }) };
}
