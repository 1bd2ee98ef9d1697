/**
 * Parses the responses of a server on one connection: only statuses, and the end of each response.
 * Bodies must have a Content-Length, as those of all contenders do. Throws for anything else.
 */
export class HttpResponses {
  readonly #onResponse: (status: number) => void;
  #rest: Buffer = Buffer.alloc(0);
  /** Bytes of the current body that are missing, and its status. */
  #missing = 0;
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
        if (this.#missing === 0) this.#onResponse(this.#status);
        continue;
      }
      const end = chunk.indexOf('\r\n\r\n', from, 'latin1');
      if (end < 0) {
        this.#rest = Buffer.from(chunk.subarray(from));
        return;
      }
      this.#status = statusOf(chunk, from);
      this.#missing = contentLength(chunk, from, end);
      from = end + 4;
      if (this.#missing === 0) this.#onResponse(this.#status);
    }
  }
}

const zero = 48;

/** From `HTTP/1.1 201 …`. */
function statusOf(chunk: Buffer, from: number): number {
  const status =
    ((chunk[from + 9] ?? 0) - zero) * 100 + ((chunk[from + 10] ?? 0) - zero) * 10 + (chunk[from + 11] ?? 0) - zero;
  if (chunk[from] !== 72 || !(status >= 100 && status < 600)) throw new Error('what came is no HTTP response');
  return status;
}

const header = '\r\ncontent-length: ';

function contentLength(chunk: Buffer, from: number, end: number): number {
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
  const found = /\r\ncontent-length: *(\d+)/i.exec(chunk.toString('latin1', from, end));
  if (!found) throw new Error('a response without Content-Length');
  return Number(found[1]);
}
