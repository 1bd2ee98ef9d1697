/**
 * Parses the responses of a server on one connection: only the statuses, and the end of each response. A body must have
 * a Content-Length, or consist of chunks without trailers. Throws for other responses.
 */
export class HttpResponses {
  readonly #onResponse: (status: number) => void;
  #rest: Buffer = Buffer.alloc(0);
  /** The missing bytes of the current body or chunk, and the status of the response. */
  #missing = 0;
  #isChunked = false;
  #status = 0;

  constructor(onResponse: (status: number) => void) {
    this.#onResponse = onResponse;
  }

  /** Parses received bytes; the buffer belongs to the caller and can be reused afterwards. */
  take(read: Buffer): void {
    let from = 0;
    let chunk = read;
    if (this.#rest.length > 0) {
      chunk = Buffer.concat([this.#rest, read]);
      this.#rest = Buffer.alloc(0);
    }
    while (from < chunk.length) {
      if (this.#missing > 0) {
        const taken = Math.min(this.#missing, chunk.length - from);
        this.#missing -= taken;
        from += taken;
        if (this.#missing === 0 && !this.#isChunked) this.#onResponse(this.#status);
        continue;
      }
      const separator = this.#isChunked ? '\r\n' : '\r\n\r\n';
      const end = chunk.indexOf(separator, from, 'latin1');
      if (end < 0) {
        this.#rest = Buffer.from(chunk.subarray(from));
        return;
      }
      if (this.#isChunked) this.#beginChunk(chunk.toString('latin1', from, end));
      else this.#beginBody(chunk, from, end);
      from = end + separator.length;
      if (this.#missing === 0 && !this.#isChunked) this.#onResponse(this.#status);
    }
  }

  #beginBody(chunk: Buffer, from: number, end: number): void {
    this.#status = parseStatus(chunk, from);
    const length = contentLength(chunk, from, end);
    this.#isChunked = length === 'chunked';
    this.#missing = length === 'chunked' ? 0 : length;
  }

  /**
   * Begins a chunk. Its size is hexadecimal; every chunk ends with a line break, and the last one has size 0.
   */
  #beginChunk(size: string): void {
    if (!/^[0-9a-f]+$/i.test(size)) throw new Error('a chunk without a size');
    this.#missing = parseInt(size, 16) + 2;
    this.#isChunked = this.#missing > 2;
  }
}

const zero = 48;

/** Parses the status in `HTTP/1.1 201 …`. */
function parseStatus(chunk: Buffer, from: number): number {
  const status =
    ((chunk[from + 9] ?? 0) - zero) * 100 + ((chunk[from + 10] ?? 0) - zero) * 10 + (chunk[from + 11] ?? 0) - zero;
  if (chunk[from] !== 72 || !(status >= 100 && status < 600))
    throw new Error('the received bytes are not an HTTP response');
  return status;
}

const header = '\r\ncontent-length: ';

function contentLength(chunk: Buffer, from: number, end: number): number | 'chunked' {
  const at = chunk.indexOf(header, from, 'latin1');
  if (at >= 0 && at < end) {
    let length = 0;
    for (let i = at + header.length; i < end; i++) {
      const digit = (chunk[i] ?? 0) - zero;
      if (digit < 0 || digit > 9) break;
      length = length * 10 + digit;
    }
    return length;
  }
  const head = chunk.toString('latin1', from, end);
  const found = /\r\ncontent-length: *(\d+)/i.exec(head);
  if (found) return Number(found[1]);
  if (/\r\ntransfer-encoding: *chunked/i.test(head)) return 'chunked';
  throw new Error('a response without Content-Length');
}
