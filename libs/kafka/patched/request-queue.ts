import { ShortLivedMap } from '../short-lived-map.ts';

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
  inflight: ShortLivedMap<number, SocketRequest>;
  checkPendingRequests(): void;
  isConnected(): boolean;
  destroy(): void;
}

type RequestQueueClass = {
  prototype: RequestQueue & { scheduleCheckPendingRequests(): void; scheduleRequestTimeoutCheck(): void };
};

const pendingCheckIntervalMs = 10;
/** Requests time out after 1.5 s or more (lost-brokers.ts). */
const timeoutCheckIntervalMs = 250;

/** Throws when kafkajs is not what this was written against. */
export function quietRequestQueue(require: NodeJS.Require): void {
  patchTimers(require);
  patchRequestsInFlight(require);
}

/**
 * Every connection, even an idle one, re-arms a 1 ms timer for ever (kafkajs issue 1751): here a check is armed
 * only while a request waits. And each looks ten times a second for requests that are late: here all do once, together.
 */
function patchTimers(require: NodeJS.Require): void {
  const { prototype } = require('kafkajs/src/network/requestQueue') as RequestQueueClass;
  if (typeof prototype.scheduleCheckPendingRequests !== 'function')
    throw new Error('kafkajs RequestQueue has no scheduleCheckPendingRequests');
  prototype.scheduleCheckPendingRequests = function scheduleCheckPendingRequests(this: RequestQueue): void {
    // push() calls this again for whatever is queued later, so nothing pending needs no timer.
    if (this.throttleCheckTimeoutId || this.pending.length === 0) return;
    const throttledForMs = this.throttledUntil - Date.now();
    this.throttleCheckTimeoutId = setTimeout(
      () => {
        this.throttleCheckTimeoutId = null;
        this.checkPendingRequests();
      },
      throttledForMs > 0 ? throttledForMs : pendingCheckIntervalMs,
    );
  };
  if (typeof prototype.scheduleRequestTimeoutCheck !== 'function')
    throw new Error('kafkajs RequestQueue has no scheduleRequestTimeoutCheck');
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
    for (const request of queue.inflight.values())
      if (now - request.sentAt > request.requestTimeout) request.timeoutRequest();
    if (queue.isConnected()) continue;
    queue.destroy();
    timeoutChecks.delete(queue);
  }
  if (timeoutChecks.size > 0) return;
  clearInterval(timeoutTimer);
  timeoutTimer = undefined;
}

/** A request in flight holds its bytes, and whoever waits for it: none of that may outlive it (short-lived-map.ts). */
function patchRequestsInFlight(require: NodeJS.Require): void {
  const { prototype } = require('kafkajs/src/network/requestQueue') as RequestQueueClass;
  Object.defineProperty(prototype, 'inflight', {
    // The constructor assigns a Map.
    set(this: RequestQueue) {
      Object.defineProperty(this, 'inflight', { value: new ShortLivedMap<number, SocketRequest>() });
    },
  });
}
