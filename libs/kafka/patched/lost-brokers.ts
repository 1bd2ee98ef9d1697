import { pause, withTimeout } from '../wait.ts';
import { heartbeatApiKey } from './membership-connection.ts';

/** What is touched of kafkajs' classes; its package ships no types for them. */
interface Connection {
  requestQueue: RequestQueue;
  socket?: { destroyed: boolean; destroy(error: Error): void };
}

interface ConnectionPool {
  pool: Connection[];
  getConnection(index?: number): Promise<Connection>;
}

interface RequestQueue {
  /** Ours: the connections to the same broker. */
  siblings?: Connection[];
  createSocketRequest(pushed: { entry: { apiKey: number }; requestTimeout?: number | null }): SocketRequest;
}

interface SocketRequest {
  requestTimeout: number;
  /** Ours: those that are closed when it has no answer in time. */
  connections?: Connection[];
  timeoutRequest(): void;
}

interface Cluster {
  refreshMetadata(): Promise<void>;
  findGroupCoordinator(args: { groupId: string }): Promise<unknown>;
}

interface ConsumerGroup {
  cluster: Cluster;
  groupId: string;
  coordinator: unknown;
  offsetManager?: { coordinator: unknown };
  lastRequest: number;
  generationId: number;
  /** Ours: a heartbeat that has no answer yet, a search for the coordinator, and what either has ended with. */
  beating?: Promise<void>;
  searching?: Promise<void>;
  failure?: unknown;
  heartbeat(args: { interval: number }): Promise<void>;
  recoverFromFetch(error: KafkaJsError): Promise<void>;
}

type KafkaJsError = Error & { type?: string; retriable?: boolean };

/**
 * A little more than brokers are given until they count as dead (broker.session.timeout.ms), so
 * that the next look finds who leads now.
 */
const silentMs = 3_500;
/**
 * Of what a broker answers at once. Less than a session time-out (3 s): a heartbeat without an
 * answer is sent again in time.
 */
const helloMs = 1_500;
const searchPauseMs = 100;
/** A healthy coordinator answers a heartbeat sooner; what takes longer is waited for beside the work. */
const beatMs = 250;

/**
 * Bounds by API key: of what a broker that lives answers soon. A group's join and sync wait for
 * other members, a commit of offsets for all replicas in sync, and what an administrator asks for
 * may take long: these keep kafkajs' own.
 */
const boundsMs: Partial<Record<number, number>> = {
  0: silentMs,
  1: silentMs,
  2: silentMs,
  9: silentMs,
  3: helloMs,
  10: helloMs,
  [heartbeatApiKey]: helloMs,
  18: helloMs,
};
const fetchApiKey = 1;

/**
 * Where one broker of several is gone, kafkajs stays with it: after a request that timed out it
 * goes on with the same leader over the same connection, and a consumer beats to a dead coordinator
 * for as long as it may retry; and each move of a leader made it join its group again, which stops
 * all members. Here a broker that is silent loses its connections, which has the others asked for
 * the leaders; a coordinator is looked for, and a late answer to a heartbeat waited for, while
 * fetching goes on; and a leader that has moved is followed. Throws when kafkajs is not what this
 * was written against.
 */
export function leaveLostBrokers(require: NodeJS.Require): void {
  patchSilence(require);
  patchConsumerGroup(require);
}

function patchSilence(require: NodeJS.Require): void {
  const { prototype: pools } = require('kafkajs/src/network/connectionPool') as { prototype: ConnectionPool };
  const { prototype: queues } = require('kafkajs/src/network/requestQueue') as { prototype: RequestQueue };
  const { prototype: requests } = require('kafkajs/src/network/requestQueue/socketRequest') as {
    prototype: SocketRequest;
  };
  const { getConnection } = pools;
  const { createSocketRequest } = queues;
  const { timeoutRequest } = requests;
  if (![getConnection, createSocketRequest, timeoutRequest].every((one) => typeof one === 'function'))
    throw new Error('kafkajs has no getConnection, createSocketRequest or timeoutRequest');
  pools.getConnection = function get(this: ConnectionPool, index = 0): Promise<Connection> {
    const connection = this.pool[index];
    if (connection) connection.requestQueue.siblings = this.pool;
    return getConnection.call(this, index);
  };
  queues.createSocketRequest = function create(this: RequestQueue, pushed): SocketRequest {
    const request = createSocketRequest.call(this, pushed);
    const boundMs = boundsMs[pushed.entry.apiKey];
    if (boundMs !== undefined) {
      // What is asked at once may be behind a commit that waits for others: only its own connection is doubtful.
      request.connections = (this.siblings ?? []).filter(
        ({ requestQueue }) => boundMs !== helloMs || requestQueue === this,
      );
      request.requestTimeout = boundMs + (pushed.entry.apiKey === fetchApiKey ? (pushed.requestTimeout ?? 0) : 0);
    }
    return request;
  };
  // Without sockets all that waits is rejected as after a lost connection, which kafkajs meets by
  // asking another broker.
  requests.timeoutRequest = function timeout(this: SocketRequest): void {
    const sockets = (this.connections ?? []).flatMap(({ socket }) => (socket && !socket.destroyed ? [socket] : []));
    if (sockets.length === 0) return timeoutRequest.call(this);
    for (const socket of sockets) socket.destroy(new Error('the broker is silent'));
  };
}

const lostNames = new Set([
  'KafkaJSConnectionError',
  'KafkaJSConnectionClosedError',
  'KafkaJSRequestTimeoutError',
  'KafkaJSBrokerNotFound',
]);
const movedCoordinator = new Set([
  'NOT_COORDINATOR_FOR_GROUP',
  'GROUP_COORDINATOR_NOT_AVAILABLE',
  'GROUP_LOAD_IN_PROGRESS',
]);
const movedLeader = new Set([
  'LEADER_NOT_AVAILABLE',
  'NOT_LEADER_FOR_PARTITION',
  'REPLICA_NOT_AVAILABLE',
  'FENCED_LEADER_EPOCH',
  'UNKNOWN_LEADER_EPOCH',
]);

function patchConsumerGroup(require: NodeJS.Require): void {
  const { prototype } = require('kafkajs/src/consumer/consumerGroup') as { prototype: ConsumerGroup };
  const { heartbeat, recoverFromFetch } = prototype;
  if (typeof heartbeat !== 'function' || typeof recoverFromFetch !== 'function')
    throw new Error('kafkajs ConsumerGroup has no heartbeat or recoverFromFetch');
  prototype.heartbeat = async function beat(this: ConsumerGroup, args): Promise<void> {
    const { generationId } = this;
    const isDue = Date.now() >= this.lastRequest + args.interval;
    if (isDue && this.failure === undefined && !this.beating && !this.searching) {
      this.beating = heartbeat
        .call(this, args)
        .catch((error: KafkaJsError) => {
          if (this.generationId !== generationId) return;
          if (!lostNames.has(error.name) && !movedCoordinator.has(error.type ?? '')) this.failure = error;
          else
            this.searching = searchCoordinator(this).finally(() => {
              this.searching = undefined;
            });
        })
        .finally(() => {
          this.beating = undefined;
        });
      await withTimeout(this.beating, beatMs, 'the heartbeat').catch(() => undefined);
    }
    const { failure } = this;
    this.failure = undefined;
    if (failure !== undefined) throw failure;
  };
  prototype.recoverFromFetch = async function recover(this: ConsumerGroup, error): Promise<void> {
    if (!lostNames.has(error.name) && !movedLeader.has(error.type ?? '')) return recoverFromFetch.call(this, error);
    await pause(searchPauseMs);
    await this.cluster.refreshMetadata();
  };
}

/** It keeps its member id: the group is known to whoever coordinates it next. */
async function searchCoordinator(group: ConsumerGroup): Promise<void> {
  for (;;) {
    try {
      group.coordinator = await group.cluster.findGroupCoordinator({ groupId: group.groupId });
      if (group.offsetManager) group.offsetManager.coordinator = group.coordinator;
      return;
    } catch (error) {
      if ((error as KafkaJsError).retriable === false) {
        group.failure = error;
        return;
      }
      await pause(searchPauseMs);
    }
  }
}
