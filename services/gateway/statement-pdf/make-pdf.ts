import { setTimeout as sleep } from 'node:timers/promises';
import { Worker } from 'node:worker_threads';
import { Refused, unavailable } from '../http/errors.ts';
import type { PrintedStatement } from './statement-pdf.ts';

/** The maximum number of entries in a PDF. More would take more memory than a gateway has available. */
export const maxPrinted = 2_000;
const longestMs = 20_000;
const heap = { maxOldGenerationSizeMb: 128, maxYoungGenerationSizeMb: 16 };

/**
 * Generates PDFs, each in a separate thread, so that other requests do not wait: one at a time, in the order of the
 * requests. A request whose turn has not come after `maxWaitMs` is refused with 503.
 */
export function createPdfMaker(maxWaitMs = 10_000): (read: () => Promise<PrintedStatement>) => Promise<Buffer> {
  /** Resolves when every earlier request has ended. */
  let last: Promise<void> = Promise.resolve();
  return async (read) => {
    const [turn, own] = [last, Promise.withResolvers<void>()];
    last = turn.then(() => own.promise);
    try {
      const isInTime = await Promise.race([turn.then(() => true), sleep(maxWaitMs, false, { ref: false })]);
      if (!isInTime) throw new Refused(unavailable);
      return await inThread(await read());
    } finally {
      own.resolve();
    }
  };
}

async function inThread(printed: PrintedStatement): Promise<Buffer> {
  const worker = new Worker(new URL('./worker.ts', import.meta.url), { workerData: printed, resourceLimits: heap });
  const tooLong = setTimeout(() => void worker.terminate(), longestMs);
  try {
    return await new Promise<Buffer>((resolve, reject) => {
      worker.once('message', (file: Uint8Array) => resolve(Buffer.from(file)));
      worker.once('error', reject);
      worker.once('exit', () => reject(new Refused(unavailable)));
    });
  } finally {
    clearTimeout(tooLong);
    await worker.terminate();
  }
}
