import { Readable } from 'node:stream';
import type { FastifyReply } from 'fastify';
import { type Endpoint, endpoints } from '#libs/contracts/endpoints.ts';
import type { MessageData } from '#libs/contracts/messages.ts';
import { csvLine } from '#libs/service/csv.ts';
import { prefersCsv } from '../http/accept.ts';
import { refuse } from '../http/errors.ts';
import { type Origin, replyWaitMs } from '../messages/encode.ts';
import { ConcurrencyLimit } from '../overload/concurrency-limit.ts';
import { requireData } from './answer.ts';
import { parseQuery } from './input.ts';
import { toOrigin } from './request.ts';
import type { Handler, HandlerDependencies } from './routes.ts';

/** Files of any length (contract: days): JSON lines or, by Accept, CSV. One page of lines is in memory at a time. */

type StreamName = 'list_balances' | 'list_day_lines';

const ndjson = 'application/x-ndjson';
const csv = 'text/csv';

/** Files that are being sent, by caller. */
const files = new ConcurrencyLimit(
  1,
  'another file of this caller is being sent; wait for it, then repeat the request',
);

/** In HTTP/1.0, a body ends with the connection, so half a file would look complete. */
const needsVersion =
  'a file requires HTTP/1.1, which marks its end; a proxy in front of the bank may have to be configured for it';

export const isStream = (name: string): name is StreamName => name === 'list_balances' || name === 'list_day_lines';

export function streamHandler(name: StreamName, endpoint: Endpoint, { forwarder }: HandlerDependencies): Handler {
  return async (request, reply) => {
    const query = parseQuery(endpoint.query, request.query as Record<string, unknown>) as Record<string, unknown>;
    if (request.raw.httpVersion === '1.0') throw refuse('validation_failed', needsVersion);
    const origin = toOrigin(request);
    const asked = { ...query, ...(request.params as object) };
    const readPage = async (from: object) => {
      const data = { ...asked, ...from } as MessageData<StreamName>;
      return requireData(await forwarder.query(name, data, origin.requestId, patient(origin)));
    };
    const isCsv = prefersCsv(request.headers.accept);
    await files.run(origin.caller.actor, async () => {
      // A refusal is the response; after the first page, a failure ends the connection.
      const first = await readPage({});
      const lines = texts(first, readPage, isCsv ? Object.keys(columns(name)) : undefined);
      await sendTexts(reply, isCsv ? `${csv}; charset=utf-8; header=present` : ndjson, lines);
    });
  };
}

/** Sends texts while they are made. Resolves when the response has ended, whoever ended it; then no more are made. */
export async function sendTexts(reply: FastifyReply, type: string, texts: AsyncIterable<string>): Promise<void> {
  // It may have ended before there was anything to send; then nothing is emitted any more.
  if (reply.raw.closed) return;
  const stream = Readable.from(texts);
  reply.header('content-type', type);
  const ended = new Promise<void>((resolve) => void reply.raw.once('close', resolve));
  reply.send(stream);
  await ended;
  stream.destroy();
}

interface LinesPage {
  lines: string[];
  next?: string | undefined;
  as_of?: string | undefined;
}

/** Yields the pages as texts. `header`: the columns of CSV. */
async function* texts(first: LinesPage, readPage: (from: object) => Promise<LinesPage>, header?: string[]) {
  if (header) yield csvLine(header);
  for (let page = first; ; page = await readPage({ after: page.next, as_of: first.as_of })) {
    yield page.lines.map((line) => (header ? toCsv(line) : `${line}\n`)).join('');
    if (page.next === undefined) return;
  }
}

const toCsv = (line: string): string => csvLine(Object.values(JSON.parse(line) as object).map(String));

function columns(name: StreamName): Record<string, unknown> {
  return (endpoints[name].result as unknown as { shape: Record<string, unknown> }).shape;
}

/** The origin of one of several queries for a request, each of which may take as long as a reply may take. */
export const patient = (origin: Origin): Origin => ({ ...origin, answerBy: performance.now() + replyWaitMs });
