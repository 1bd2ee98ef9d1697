import { BriefMap } from './brief-map.ts';
import { pause } from './wait.ts';

/** What the patch touches of kafkajs' Cluster. */
interface Cluster {
  findGroupCoordinator(args: unknown): Promise<unknown>;
  refreshMetadata(): Promise<void>;
}

/** What the patch touches of kafkajs' BrokerPool. */
interface BrokerPool {
  brokers: Record<string, unknown>;
  metadataExpireAt: number | null;
  removeBroker(address: unknown): void;
}

interface SocketRequest {
  sentAt: number;
  requestTimeout: number;
  timeoutRequest(): void;
}

/** What the patch touches of kafkajs' RequestQueue; its package ships no types for it. */
interface RequestQueue {
  pending: unknown[];
  throttledUntil: number;
  throttleCheckTimeoutId: NodeJS.Timeout | null;
  enforceRequestTimeout: boolean;
  inflight: BriefMap<number, SocketRequest>;
  checkPendingRequests(): void;
  isConnected(): boolean;
  destroy(): void;
}

type RequestQueueClass = { prototype: RequestQueue & { scheduleCheckPendingRequests(): void; scheduleRequestTimeoutCheck(): void } };

const pendingCheckIntervalMs = 10;
/** Requests time out after 10 s or more. */
const timeoutCheckIntervalMs = 1_000;
const coordinatorPauseMs = 100;
/**
 * Corrects what costs kafkajs CPU while nothing happens and with every request, and the two things that it takes for final and are not, in memory
 * only. Throws when kafkajs is not what this was written against.
 */
export function patchKafkaJs(require: NodeJS.Require): void {
  patchRequestQueueTimers(require);
  patchRequestsInFlight(require);
  patchGroupCoordinator(require);
  patchLastBroker(require);
  for (const name of frequentRequests) patchRequires(require, name);
}

/** Requests that are made all the time. */
const frequentRequests = ['fetch', 'produce', 'heartbeat', 'offsetCommit'];

/** Each request looks its modules up anew, through the whole of Node's loader: here once. */
function patchRequires(require: NodeJS.Require, request: string): void {
  const name = require.resolve(`kafkajs/src/protocol/requests/${request}/index`);
  require(name);
  const module = require.cache[name];
  if (!module) throw new Error(`kafkajs has no requests of ${request}`);
  const known = new Map<string, unknown>();
  const load = module.require.bind(module) as (path: string) => unknown;
  module.require = (path: string): unknown => {
    if (!known.has(path)) known.set(path, load(path));
    return known.get(path);
  };
}

/**
 * Every connection, even an idle one, re-arms a 1 ms timer for ever (kafkajs issue 1751): here a check is armed
 * only while a request waits. And each looks ten times a second for requests that are late: here all do once, together.
 */
function patchRequestQueueTimers(require: NodeJS.Require): void {
  const { prototype } = require('kafkajs/src/network/requestQueue') as RequestQueueClass;
  if (typeof prototype.scheduleCheckPendingRequests !== 'function') throw new Error('kafkajs RequestQueue has no scheduleCheckPendingRequests');
  prototype.scheduleCheckPendingRequests = function scheduleCheckPendingRequests(this: RequestQueue): void {
    // push() calls this again for whatever is queued later, so nothing pending needs no timer.
    if (this.throttleCheckTimeoutId || this.pending.length === 0) return;
    const throttledForMs = this.throttledUntil - Date.now();
    this.throttleCheckTimeoutId = setTimeout(() => {
      this.throttleCheckTimeoutId = null;
      this.checkPendingRequests();
    }, throttledForMs > 0 ? throttledForMs : pendingCheckIntervalMs);
  };
  if (typeof prototype.scheduleRequestTimeoutCheck !== 'function') throw new Error('kafkajs RequestQueue has no scheduleRequestTimeoutCheck');
  prototype.scheduleRequestTimeoutCheck = function scheduleRequestTimeoutCheck(this: RequestQueue): void {
    if (!this.enforceRequestTimeout) return;
    this.destroy();
    timeoutChecks.add(this);
    // It keeps no process alive: connections do, until they are closed.
    timeoutTimer ??= setInterval(checkTimeouts, timeoutCheckIntervalMs).unref();
  };
}

/** Queues of connections that are open. */
const timeoutChecks = new Set<RequestQueue>();
let timeoutTimer: NodeJS.Timeout | undefined;

function checkTimeouts(): void {
  const now = Date.now();
  for (const queue of timeoutChecks) {
    for (const request of queue.inflight.values()) if (now - request.sentAt > request.requestTimeout) request.timeoutRequest();
    if (queue.isConnected()) continue;
    queue.destroy();
    timeoutChecks.delete(queue);
  }
  if (timeoutChecks.size > 0) return;
  clearInterval(timeoutTimer);
  timeoutTimer = undefined;
}

/** A request in flight holds its bytes, and whoever waits for it: none of that may outlive it (brief-map.ts). */
function patchRequestsInFlight(require: NodeJS.Require): void {
  const { prototype } = require('kafkajs/src/network/requestQueue') as RequestQueueClass;
  Object.defineProperty(prototype, 'inflight', {
    // The constructor assigns a Map.
    set(this: RequestQueue) {
      Object.defineProperty(this, 'inflight', { value: new BriefMap<number, SocketRequest>() });
    },
  });
}

/**
 * A consumer gave up for good when its coordinator could not be asked because connections were cut, though not when they
 * were refused: and its successor, a new member, waited for the session time-out of the old one. Both are a broker that is
 * away. What ends a consumer, here too, is a gate that was closed: no address is left then, which kafkajs does not retry.
 */
function patchGroupCoordinator(require: NodeJS.Require): void {
  const { prototype } = require('kafkajs/src/cluster/index') as { prototype: Cluster };
  const { findGroupCoordinator } = prototype;
  if (typeof findGroupCoordinator !== 'function' || typeof prototype.refreshMetadata !== 'function') throw new Error('kafkajs Cluster has no findGroupCoordinator');
  prototype.findGroupCoordinator = async function find(this: Cluster, args: unknown): Promise<unknown> {
    for (;;) {
      try {
        return await findGroupCoordinator.call(this, args);
      } catch (error) {
        if ((error as Error).name !== 'KafkaJSGroupCoordinatorNotFound') throw error;
        await pause(coordinatorPauseMs);
        await this.refreshMetadata().catch((failure: { retriable?: boolean }) => {
          if (failure.retriable === false) throw failure;
        });
      }
    }
  };
}

/**
 * A broker whose connection was closed is forgotten, and a consumer that knows none any more gives up for good. So the last
 * one is kept: it is connected again when it is back, and asked where the others are.
 */
function patchLastBroker(require: NodeJS.Require): void {
  const { prototype } = require('kafkajs/src/cluster/brokerPool') as { prototype: BrokerPool };
  const { removeBroker } = prototype;
  if (typeof removeBroker !== 'function') throw new Error('kafkajs BrokerPool has no removeBroker');
  prototype.removeBroker = function remove(this: BrokerPool, address: unknown): void {
    if (Object.keys(this.brokers).length > 1) removeBroker.call(this, address);
    else this.metadataExpireAt = null;
  };
}
