import { pause, withTimeout } from '../wait.ts';
import { heartbeatApiKey } from './membership-connection.ts';

/** The patched part of kafkajs' classes, for which its package has no types. */
interface Connection {
  requestQueue: RequestQueue;
  socket?: { destroyed: boolean; destroy(error: Error): void };
}

interface RequestQueue {
  /** Our addition: the connections to the same broker (membership-connection.ts). */
  siblings?: Connection[];
  createSocketRequest(pushed: { entry: { apiKey: number }; requestTimeout?: number | null }): SocketRequest;
}

interface SocketRequest {
  requestTimeout: number;
  /** Our addition: the connections to close if this request gets no response in time. */
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
  generationId: number;
  /** Our addition: when the last heartbeat was answered, by performance.now. */
  beatenAt?: number;
  /** Our additions: a heartbeat without response, a search for the coordinator, and their results. */
  beating?: Promise<void>;
  searching?: Promise<void>;
  failure?: unknown;
  heartbeat(args: { interval: number }): Promise<void>;
  recoverFromFetch(error: KafkaJsError): Promise<void>;
}

type KafkaJsError = Error & { type?: string; retriable?: boolean };

/**
 * Slightly longer than the time after which the controller considers a broker dead (broker.session.timeout.ms),
 * so that the next metadata request finds the new leader.
 */
const silentMs = 3_500;
/**
 * For requests that a broker answers immediately. It is shorter than a session timeout (3 s), so that an
 * unanswered heartbeat is repeated in time.
 */
const helloMs = 1_500;
const searchPauseMs = 100;
/** A healthy coordinator responds to a heartbeat faster. A later response is awaited in the background. */
const beatMs = 250;

/**
 * Timeouts by API key, for requests to which a running broker responds soon. All others keep kafkajs' timeouts:
 * joining and syncing a group wait for other members, an offset commit waits for all in-sync replicas, and
 * administrative requests may take long.
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
 * If one of several brokers is lost, kafkajs keeps using it. After a request timeout it continues with the same
 * leader over the same connection. A consumer sends heartbeats to a failed coordinator for as long as it may
 * retry. Each change of a leader makes it rejoin its group, which stops all members. With this patch, the
 * connections to an unresponsive broker are closed, so that the others are asked for the leaders. Fetching
 * continues while a new coordinator is searched for or a late heartbeat response is awaited. A change of leader
 * does not cause a rejoin. Heartbeats do not depend on the host's clock.
 */
export function leaveLostBrokers(require: NodeJS.Require): void {
  patchSilence(require);
  patchConsumerGroup(require);
}

function patchSilence(require: NodeJS.Require): void {
  const { prototype: queues } = require('kafkajs/src/network/requestQueue') as { prototype: RequestQueue };
  const { prototype: requests } = require('kafkajs/src/network/requestQueue/socketRequest') as {
    prototype: SocketRequest;
  };
  const { createSocketRequest } = queues;
  const { timeoutRequest } = requests;
  queues.createSocketRequest = function create(this: RequestQueue, pushed): SocketRequest {
    const request = createSocketRequest.call(this, pushed);
    const boundMs = boundsMs[pushed.entry.apiKey];
    if (boundMs !== undefined) {
      // A request that is normally answered immediately may be queued behind a commit that waits for replicas.
      // Close only its own connection.
      request.connections = (this.siblings ?? []).filter(
        ({ requestQueue }) => boundMs !== helloMs || requestQueue === this,
      );
      request.requestTimeout = boundMs + (pushed.entry.apiKey === fetchApiKey ? (pushed.requestTimeout ?? 0) : 0);
    }
    return request;
  };
  // Without sockets, all pending requests are rejected as after a lost connection, and kafkajs then asks
  // another broker.
  requests.timeoutRequest = function timeout(this: SocketRequest): void {
    const sockets = (this.connections ?? []).flatMap(({ socket }) => (socket && !socket.destroyed ? [socket] : []));
    if (sockets.length === 0) return timeoutRequest.call(this);
    for (const socket of sockets) socket.destroy(new Error('the broker does not respond'));
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
  prototype.heartbeat = async function beat(this: ConsumerGroup, args): Promise<void> {
    const { generationId } = this;
    // kafkajs compares times of the host's clock. After a step back it would send no heartbeat
    // until the clock has caught up. This decides when one is due, and the interval makes kafkajs
    // send it.
    const isDue = performance.now() >= (this.beatenAt ?? -Infinity) + args.interval;
    if (isDue && this.failure === undefined && !this.beating && !this.searching) {
      this.beating = heartbeat
        .call(this, { interval: -Infinity })
        .then(() => {
          this.beatenAt = performance.now();
        })
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

/** Keeps the member id, because the next coordinator knows the group. */
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
