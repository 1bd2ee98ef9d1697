export interface CallOptions {
  /**
   * For a POST: identifies the request, so that it is executed once however often it is sent. Generated
   * for each call if it is not given.
   */
  idempotencyKey?: string;
  /**
   * For a PATCH and changeAccountStatus: the ETag of the version to change. If the resource has changed
   * since, the bank responds with version_mismatch.
   */
  ifMatch?: string;
  /** Called with the response headers of a call that is not a list, for a file once it begins; for example, to get its ETag for ifMatch. */
  onHeaders?: (headers: Headers) => void;
  /** Aborts the call, which then rejects with the signal's reason. A request already sent may still be executed. */
  signal?: AbortSignal;
  deadlineMs?: number;
}

/** The items of a list, requested page by page on demand: `for await (const account of bank.listAccounts())`. */
export interface Pages<T> extends AsyncIterable<T> {
  /** The same by pages of the bank; the `limit` of the call is the page size. */
  pages(): AsyncIterable<T[]>;
  /** All items, or the first `count`. */
  toArray(count?: number): Promise<T[]>;
}

/**
 * A file of any length, requested when it is read: `for await (const line of bank.listBalances())`. One part of it is in
 * memory at a time. A file that breaks off, or ends within a line, throws a NoAnswerError after its last complete line; `deadlineMs` is the time
 * until it begins.
 */
export interface Lines<T> extends AsyncIterable<T> {
  /** The same as the bank sends it: as JSON lines, whose bytes have the hash of a closed day, or as CSV. */
  bytes(form?: 'application/x-ndjson' | 'text/csv'): AsyncIterable<Uint8Array>;
}
