import { createRequire } from 'node:module';

/** What the patch touches of kafkajs' RequestQueue; its package ships no types for it. */
interface RequestQueue {
  pending: unknown[];
  throttledUntil: number;
  throttleCheckTimeoutId: NodeJS.Timeout | null;
  checkPendingRequests(): void;
}

type RequestQueueClass = { prototype: RequestQueue & { scheduleCheckPendingRequests(): void } };

const patchedVersion = '2.2.4';
const pendingCheckIntervalMs = 10;
const require = createRequire(import.meta.url);

let patched = false;

/**
 * Replaces the one method of kafkajs that re-arms a 1 ms timer for ever on every connection, even an idle
 * one (kafkajs issue 1751): a check is armed only while a request waits. Idempotent; throws when the
 * installed kafkajs is another version than the one this was written against.
 */
export function patchRequestQueueTimer(): void {
  if (patched) return;
  const { version } = require('kafkajs/package.json') as { version: string };
  if (version !== patchedVersion) {
    throw new Error(`kafkajs ${version} is installed, but its timer patch was written for ${patchedVersion}: review libs/kafka/kafkajs-patch.ts`);
  }
  const queue = require('kafkajs/src/network/requestQueue') as RequestQueueClass;
  if (typeof queue.prototype.scheduleCheckPendingRequests !== 'function') {
    throw new Error('kafkajs RequestQueue has no scheduleCheckPendingRequests: review libs/kafka/kafkajs-patch.ts');
  }
  queue.prototype.scheduleCheckPendingRequests = function scheduleCheckPendingRequests(this: RequestQueue): void {
    // push() calls this again for whatever is queued later, so nothing pending needs no timer.
    if (this.throttleCheckTimeoutId || this.pending.length === 0) return;
    const throttledForMs = this.throttledUntil - Date.now();
    this.throttleCheckTimeoutId = setTimeout(() => {
      this.throttleCheckTimeoutId = null;
      this.checkPendingRequests();
    }, throttledForMs > 0 ? throttledForMs : pendingCheckIntervalMs);
  };
  patched = true;
}
