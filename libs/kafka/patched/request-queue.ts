import { ShortLivedMap } from '../short-lived-map.ts';

interface SocketRequest {
  sentAt: number;
  requestTimeout: number;
  timeoutRequest(): void;
}

/** The patched part of kafkajs' RequestQueue, for which its package has no types. */
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

/** Patches timers and bookkeeping of kafkajs' request queues. */
export function quietRequestQueue(require: NodeJS.Require): void {
  patchTimers(require);
  patchRequestsInFlight(require);
}

/**
 * In kafkajs every connection, even an idle one, re-arms a 1 ms timer forever (kafkajs issue 1751). With this
 * patch a timer is armed only while a request is pending. kafkajs also checks each connection ten times a
 * second for late requests; here one timer checks all of them.
 */
function patchTimers(require: NodeJS.Require): void {
  const { prototype } = require('kafkajs/src/network/requestQueue') as RequestQueueClass;
  prototype.scheduleCheckPendingRequests = function scheduleCheckPendingRequests(this: RequestQueue): void {
    // push() calls this again for later requests, so no timer is needed while nothing is pending.
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
  prototype.scheduleRequestTimeoutCheck = function scheduleRequestTimeoutCheck(this: RequestQueue): void {
    if (!this.enforceRequestTimeout) return;
    this.destroy();
    timeoutChecks.add(this);
    // The timer does not keep the process alive; open connections do.
    timeoutTimer ??= setInterval(checkTimeouts, timeoutCheckIntervalMs).unref();
  };
}

/** The queues of open connections. */
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

/** A request in flight references its bytes and its waiter, which must not outlive it (short-lived-map.ts). */
function patchRequestsInFlight(require: NodeJS.Require): void {
  const { prototype } = require('kafkajs/src/network/requestQueue') as RequestQueueClass;
  Object.defineProperty(prototype, 'inflight', {
    // The constructor assigns a Map.
    set(this: RequestQueue) {
      Object.defineProperty(this, 'inflight', { value: new ShortLivedMap<number, SocketRequest>() });
    },
  });
}
