import { topicTable } from '#libs/contracts/topics.ts';
import { createKafka } from '#libs/kafka/client.ts';
import { requireSafeTopics } from '#libs/kafka/topics.ts';
import { silent } from '#libs/postgres/test/test-database.ts';
import { type Cluster, type ServersContext, startCluster } from '../faults/cluster.ts';
import type { Random } from '../faults/random.ts';
import { type Brokers, makeBrokers } from './brokers.ts';
import { Certificates } from './certificates.ts';
import { type Database, type DatabaseOptions, makeDatabase } from './database.ts';

/** A bank on three brokers and a database with a synchronous standby. */
export interface HaCluster extends Cluster {
  brokers3: Brokers;
  database: Database;
  certificates: Certificates;
}

/** Protections that self-tests remove. A row must then find a loss. */
export interface HaOptions {
  brokers?: Record<string, string>;
  env?: Record<string, string>;
  database?: Partial<DatabaseOptions>;
}

export async function startHaCluster(dir: string, random: Random, options: HaOptions = {}): Promise<HaCluster> {
  const parts: Partial<Pick<HaCluster, 'brokers3' | 'database' | 'certificates'>> = {};
  const servers = async (context: ServersContext) => {
    const certificates = new Certificates(dir);
    const brokers = await makeBrokers(context, certificates.both, options.brokers);
    const database = await makeDatabase(context, { tls: certificates, ...options.database });
    Object.assign(parts, { brokers3: brokers, database, certificates });
    return {
      broker: brokers.together,
      brokers: brokers.bootstrap,
      nodeBrokers: () => brokers.secured,
      postgres: database.together,
      databasePort: database.port,
      nodeDatabasePort: () => database.port,
      databaseSettings: `?sslmode=verify-full&sslrootcert=${encodeURIComponent(certificates.trusted)}`,
      env: {
        // An earlier version reads these two.
        REPLICATION_FACTOR: '3',
        KAFKA_SSL: 'true',
        KAFKA_SSL_CA_FILE: certificates.trusted,
        ...options.env,
      },
    };
  };
  const cluster = await startCluster(dir, random, servers);
  if (!options.brokers) await acceptTopics(cluster);
  return { ...cluster, ...(parts as Required<typeof parts>) };
}

/** Checks what only production checks at its start: that no topic can be lost with one broker. */
async function acceptTopics(cluster: Cluster): Promise<void> {
  const kafka = createKafka({ brokers: cluster.brokers.split(','), client_id: 'checker' }, silent);
  try {
    await requireSafeTopics(kafka, topicTable(cluster.topicPrefix));
  } catch (error) {
    await cluster.stop();
    throw error;
  }
}
