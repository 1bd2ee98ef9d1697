import type { CallOptions, Lines } from './call.ts';
import { NoAnswerError } from './errors.ts';
import type { Patience, Request, Sender } from './send.ts';
import { failureReason, send } from './send.ts';

const lineFeed = 10;

/** The file at this path, requested each time that it is read. */
export function createLines<T>(
  sender: Sender,
  request: Request,
  patience: () => Patience,
  onHeaders: CallOptions['onHeaders'],
): Lines<T> {
  // A file that a proxy has cut may end like a whole one.
  async function* bytes(accept = 'application/x-ndjson') {
    let last: number | undefined;
    for await (const part of readFile(sender, { ...request, accept }, patience(), onHeaders)) {
      last = part.at(-1) ?? last;
      yield part;
    }
    if (last !== undefined && last !== lineFeed)
      throw new NoAnswerError(`the file from ${sender.baseUrl} ends within a line`);
  }
  return {
    bytes,
    async *[Symbol.asyncIterator]() {
      const decoder = new TextDecoder();
      let rest = '';
      for await (const chunk of bytes()) {
        const lines = (rest + decoder.decode(chunk, { stream: true })).split('\n');
        rest = lines.pop() ?? '';
        for (const line of lines) yield JSON.parse(line) as T;
      }
    },
  };
}

/**
 * Yields the parts of a file as they arrive. Throws a NoAnswerError if it breaks off, or if a part does not arrive within
 * the timeout of an attempt.
 */
export async function* readFile(
  sender: Sender,
  request: Request,
  patience: Patience,
  onHeaders?: CallOptions['onHeaders'],
): AsyncGenerator<Uint8Array, void> {
  const { body, headers } = await send(sender, { ...request, isStream: true }, patience);
  if (!(body instanceof ReadableStream)) throw new TypeError('fetch must return the body of the response');
  onHeaders?.(headers);
  const reader = (body as ReadableStream<Uint8Array>).getReader();
  try {
    for (;;) {
      const { done, value } = await inTime(reader.read(), sender);
      if (done) return;
      yield value;
    }
  } catch (error) {
    patience.signal?.throwIfAborted();
    throw error instanceof TypeError || error instanceof DOMException
      ? new NoAnswerError(`the file from ${sender.baseUrl} broke off: ${failureReason(error)}`, { cause: error })
      : error;
  } finally {
    // The reader may have left early.
    await reader.cancel().catch(() => undefined);
  }
}

async function inTime<T>(part: Promise<T>, { attemptTimeoutMs }: Sender): Promise<T> {
  let timer: ReturnType<typeof setTimeout> | undefined;
  const late = new Promise<never>((_resolve, reject) => {
    timer = setTimeout(
      () => reject(new DOMException(`no part within ${attemptTimeoutMs} ms`, 'TimeoutError')),
      attemptTimeoutMs,
    );
  });
  try {
    return await Promise.race([part, late]);
  } finally {
    clearTimeout(timer);
  }
}
