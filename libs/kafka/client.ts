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
import type { Cluster } from './consume/read-message.ts';
import { loadKafkaJs } from './patched/kafkajs.ts';
import type { Address } from './socket-gate.ts';
import { SocketGate } from './socket-gate.ts';
import { withTimeout } from './wait.ts';

/** How to reach the brokers. `sasl` names a mechanism that kafkajs knows: plain, scram-sha-256, scram-sha-512. */
export interface KafkaOptions {
  brokers: string[];
  client_id: string;
  ssl?: boolean | ConnectionOptions;
  sasl?: { mechanism: 'plain' | 'scram-sha-256' | 'scram-sha-512'; username: string; password: string };
  /** Runs kafkajs without what libs/kafka/patched replaces in it. */
  as_published?: boolean;
  /** Where to connect instead of the address that a broker goes by: for port forwards and fault tests. */
  route?(address: Address): Address;
}

/** A kafkajs object together with its sockets; close() ends it within `graceMs`, whatever state it is in. */
export interface Link<T> {
  client: T;
  gate: SocketGate;
  close(graceMs: number): Promise<void>;
}

/** What the other files of this folder need; nothing outside of it sees kafkajs. */
export interface KafkaClient {
  clientId: string;
  /** Whether kafkajs is used without our patches: its messages have other forms then. */
  asPublished: boolean;
  /** The module, for its constants. */
  kafkajs: typeof KafkaJs;
  newProducer(): Link<Producer>;
  newConsumer(options: ConsumerConfig): Link<Consumer>;
  /** Connections without a role, for single fetches. */
  newCluster(): Link<Cluster>;
  /** Runs one piece of administration on a connection of its own; bounded to `timeoutMs` (default 15 s). */
  withAdmin<T>(run: (admin: Admin) => Promise<T>, timeoutMs?: number): Promise<T>;
}

/** A broker that is frozen takes connections and says nothing. */
const connectionTimeoutMs = 1_500;
const requestTimeoutMs = 10_000;
const metadataMaxAgeMs = 60_000;
const adminTimeoutMs = 15_000;

// The defaults (300 ms doubling to 30 s) bring the first message after a broker restart 30 s late.
const boundedRetry: RetryOptions = { initialRetryTime: 50, multiplier: 2, factor: 0.2, maxRetryTime: 400, retries: 4 };
// Producers and consumers must not give up by themselves. A send with an unknown outcome is exact only while it
// is retried under the same sequence numbers; and a member that comes back under its own id is in its group at
// once, where a new one waits for the session time-out of the old. The publisher and the supervisor end them
// through the gate; after errors that are final a consumer is built anew by us, so that there is one way, not two.
const endlessRetry: RetryOptions = {
  ...boundedRetry,
  retries: Number.MAX_SAFE_INTEGER,
  restartOnFailure: async () => false,
};

/** A client for one process. It connects nothing by itself. */
export function createKafka(options: KafkaOptions, logger: Logger): KafkaClient {
  if (options.brokers.length === 0) throw new Error('no Kafka brokers are given');
  const kafkajs = loadKafkaJs(options.as_published ?? false);
  const { Kafka, logLevel } = kafkajs;
  const log = logger.child({ component: 'kafkajs' });
  const kafka = (gate: SocketGate, retry: RetryOptions) =>
    new Kafka({
      ...kafkaConfig(options, gate, log, retry),
      logLevel: log.isLevelEnabled('trace') ? logLevel.DEBUG : logLevel.INFO,
    });
  const newAdmin = () => link(new SocketGate(options.route), (gate) => kafka(gate, boundedRetry).admin());
  return {
    clientId: options.client_id,
    asPublished: options.as_published ?? false,
    kafkajs,
    newProducer: () =>
      link(new SocketGate(options.route), (gate) =>
        kafka(gate, endlessRetry).producer({
          idempotent: true,
          allowAutoTopicCreation: false,
          metadataMaxAge: metadataMaxAgeMs,
          // The publisher has chosen: the size of a partition's record batch is bounded before it is sent.
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
    newCluster: () => link(new SocketGate(options.route), (gate) => clusterOf(kafka(gate, boundedRetry))),
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

/**
 * kafkajs keeps what makes its connections behind a symbol; that it is there is part of the version
 * that is asserted.
 */
function clusterOf(kafka: object): Cluster {
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
 * kafkajs begins with the first broker of its list: who replaces a client that got no answer begins
 * with another one.
 */
let turn = 0;

function kafkaConfig(options: KafkaOptions, gate: SocketGate, log: Logger, retry: RetryOptions): KafkaConfig {
  const first = turn++ % options.brokers.length;
  const brokers = [...options.brokers.slice(first), ...options.brokers.slice(0, first)];
  return {
    clientId: options.client_id,
    // No broker at all is the one answer that kafkajs does not retry: so a closed gate ends its loops too.
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

// What kafkajs calls ERROR while it goes on by itself: brokers that start or stop, rebalances, elections.
// What matters of it for a caller is said by the publisher and the consumer supervisor in their own words.
const transient =
  /connect|closed|timed? ?out|timeout|leader|coordinator|rebalanc|re-joining|not aware of this member|crash|restarting|metadata|limiting retries|failed to send messages|does not host|broker .*not (found|available)|given up|should not be null|brokers array is empty/i;

/** kafkajs' numbers for them. */
const [infoLevel, debugLevel] = [4, 5];

function forward(log: Logger, gate: SocketGate, { namespace, level, log: entry }: LogEntry): void {
  const { message, timestamp: _timestamp, logger: _logger, ...fields } = entry;
  const line = { namespace, ...fields };
  if (level === debugLevel) log.trace(line, message);
  else if (level === infoLevel) log.debug(line, message);
  else if (gate.closed || transient.test(`${message} ${String(fields.error ?? '')}`)) log.debug(line, message);
  else log.warn(line, message);
}
