import type { ConnectionOptions } from 'node:tls';
import type * as KafkaJs from 'kafkajs';
import type {
  Admin,
  Consumer,
  ConsumerConfig,
  KafkaConfig,
  LogEntry,
  Producer,
  RetryOptions,
  SASLOptions,
} from 'kafkajs';
import type { Logger } from 'pino';
import type { Cluster } from './cluster.ts';
import { loadKafkaJs } from './patched/kafkajs.ts';
import type { Address } from './socket-gate.ts';
import { SocketGate } from './socket-gate.ts';
import { withTimeout } from './wait.ts';

/** How to reach the brokers. `sasl` names a mechanism of kafkajs: plain, scram-sha-256, scram-sha-512. */
export interface KafkaOptions {
  brokers: string[];
  client_id: string;
  ssl?: boolean | ConnectionOptions;
  sasl?: { mechanism: 'plain' | 'scram-sha-256' | 'scram-sha-512'; username: string; password: string };
  /** Maps the address that a broker advertises to the address to connect to, for port forwards and fault tests. */
  route?(address: Address): Address;
}

/** A kafkajs object with its sockets. close() ends it within `graceMs` in any state. */
export interface Link<T> {
  client: T;
  gate: SocketGate;
  close(graceMs: number): Promise<void>;
}

/** The interface to kafkajs for the other files of this folder. Nothing outside this folder uses kafkajs. */
export interface KafkaClient {
  /** The kafkajs module, for its constants. */
  kafkajs: typeof KafkaJs;
  newProducer(): Link<Producer>;
  newConsumer(options: ConsumerConfig): Link<Consumer>;
  /** A cluster connection for single fetches, without a producer or consumer. */
  newCluster(): Link<Cluster>;
  /** Runs one administrative operation on its own connection, for at most `timeoutMs` (default 15 s). */
  withAdmin<T>(run: (admin: Admin) => Promise<T>, timeoutMs?: number): Promise<T>;
}

/** A paused broker accepts connections but does not respond. */
const connectionTimeoutMs = 1_500;
const requestTimeoutMs = 10_000;
const metadataMaxAgeMs = 60_000;
const adminTimeoutMs = 15_000;

// With the defaults (300 ms doubling to 30 s) the first message after a broker restart can be 30 s late.
const boundedRetry: RetryOptions = { initialRetryTime: 50, multiplier: 2, factor: 0.2, maxRetryTime: 400, retries: 4 };
// Producers and consumers must not give up by themselves. A send whose outcome is unknown is free of duplicates
// only while it is retried under the same sequence numbers, and a member that rejoins under its own id is back
// in the group at once, while a new member waits for the old one's session timeout. Publisher and Consumer
// end them through the gate. After a final error, Consumer starts a new session, so that there is only one way
// to restart.
const endlessRetry: RetryOptions = {
  ...boundedRetry,
  retries: Number.MAX_SAFE_INTEGER,
  restartOnFailure: async () => false,
};

/** Creates the Kafka client of a process. It opens no connection by itself. */
export function createKafka(options: KafkaOptions, logger: Logger): KafkaClient {
  if (options.brokers.length === 0) throw new Error('no Kafka brokers are given');
  const kafkajs = loadKafkaJs();
  const { Kafka, logLevel } = kafkajs;
  const log = logger.child({ component: 'kafkajs' });
  const kafka = (gate: SocketGate, retry: RetryOptions) =>
    new Kafka({
      ...kafkaConfig(options, gate, log, retry),
      logLevel: log.isLevelEnabled('trace') ? logLevel.DEBUG : logLevel.INFO,
    });
  const newAdmin = () => link(new SocketGate(options.route), (gate) => kafka(gate, boundedRetry).admin());
  return {
    kafkajs,
    newProducer: () =>
      link(new SocketGate(options.route), (gate) =>
        kafka(gate, endlessRetry).producer({
          idempotent: true,
          allowAutoTopicCreation: false,
          metadataMaxAge: metadataMaxAgeMs,
          // Record batch sizes are bounded per partition before sending, so the publisher must choose the
          // partition.
          createPartitioner:
            () =>
            ({ message }) =>
              message.partition ?? 0,
        }),
      ),
    newConsumer: (config) =>
      link(new SocketGate(options.route), (gate) =>
        kafka(gate, endlessRetry).consumer({
          allowAutoTopicCreation: false,
          metadataMaxAge: metadataMaxAgeMs,
          retry: endlessRetry,
          ...config,
        }),
      ),
    newCluster: () => link(new SocketGate(options.route), (gate) => getCluster(kafka(gate, boundedRetry))),
    withAdmin: async (run, timeoutMs = adminTimeoutMs) => {
      const { client, close } = newAdmin();
      try {
        return await withTimeout(
          client.connect().then(() => run(client)),
          timeoutMs,
          'Kafka administration',
        );
      } finally {
        await close(1_000);
      }
    },
  };
}

function link<T extends { disconnect(): Promise<void> }>(gate: SocketGate, create: (gate: SocketGate) => T): Link<T> {
  const client = create(gate);
  const close = async (graceMs: number): Promise<void> => {
    if (graceMs > 0) await withTimeout(client.disconnect(), graceMs, 'disconnecting').catch(() => undefined);
    gate.close();
  };
  return { client, gate, close };
}

/** kafkajs stores its cluster factory behind a symbol. The version check guarantees that it exists. */
function getCluster(kafka: object): Cluster {
  const symbol = Object.getOwnPropertySymbols(kafka).find(
    ({ description }) => description === 'private:Kafka:createCluster',
  );
  const create =
    symbol &&
    (Reflect.get(kafka, symbol) as (options: { metadataMaxAge: number; allowAutoTopicCreation: boolean }) => Cluster);
  if (!create) throw new Error('kafkajs has no createCluster');
  return create({ metadataMaxAge: metadataMaxAgeMs, allowAutoTopicCreation: false });
}

/**
 * kafkajs starts with the first broker of its list. The client that replaces an unresponsive one starts with
 * another broker.
 */
let turn = 0;

function kafkaConfig(options: KafkaOptions, gate: SocketGate, log: Logger, retry: RetryOptions): KafkaConfig {
  const first = turn++ % options.brokers.length;
  const brokers = [...options.brokers.slice(first), ...options.brokers.slice(0, first)];
  return {
    clientId: options.client_id,
    // kafkajs does not retry if there is no broker at all, so a closed gate also ends its retry loops.
    brokers: () => (gate.closed ? [] : brokers),
    ...(options.ssl ? { ssl: options.ssl } : {}),
    ...(options.sasl ? { sasl: options.sasl as SASLOptions } : {}),
    socketFactory: gate.createSocket,
    connectionTimeout: connectionTimeoutMs,
    authenticationTimeout: requestTimeoutMs,
    requestTimeout: requestTimeoutMs,
    retry,
    logCreator: () => (entry) => forward(log, gate, entry),
  };
}

// Errors that kafkajs logs at level ERROR although it recovers from them, such as those of starting and
// stopping brokers, rebalances, and elections. Publisher and Consumer log the relevant ones.
const transient =
  /connect|closed|timed? ?out|timeout|leader|coordinator|rebalanc|re-joining|not aware of this member|crash|restarting|metadata|limiting retries|failed to send messages|does not host|broker .*not (found|available)|ended by this process|should not be null|brokers array is empty/i;

/** The numeric log levels of kafkajs. */
const [infoLevel, debugLevel] = [4, 5];

function forward(log: Logger, gate: SocketGate, { namespace, level, log: entry }: LogEntry): void {
  const { message, timestamp: _timestamp, logger: _logger, ...fields } = entry;
  const line = { namespace, ...fields };
  if (level === debugLevel) log.trace(line, message);
  else if (level === infoLevel) log.debug(line, message);
  else if (gate.closed || transient.test(`${message} ${String(fields.error ?? '')}`)) log.debug(line, message);
  else log.warn(line, message);
}
