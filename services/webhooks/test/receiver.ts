import { createServer, type IncomingHttpHeaders, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { CloudEvent } from '#libs/contracts/event-feed.ts';

/** For tests: a receiver of webhooks, on a real server. */

interface Received {
  headers: IncomingHttpHeaders;
  body: string;
  event: CloudEvent;
  at: number;
}

export type Answer = (response: ServerResponse, received: Received, request: IncomingMessage) => void;

export const ok: Answer = (response) => void response.writeHead(204).end();
export const status =
  (code: number, headers: Record<string, string> = {}): Answer =>
  (response) =>
    void response.writeHead(code, headers).end();
export const hang: Answer = () => undefined;
export const close: Answer = (_response, _received, request) => void request.socket.destroy();

export async function startReceiver(answer: Answer = ok) {
  const received: Received[] = [];
  const receiver = { answer };
  const server = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('end', () => {
      const body = Buffer.concat(chunks).toString();
      const one = { headers: request.headers, body, event: JSON.parse(body) as CloudEvent, at: Date.now() };
      received.push(one);
      receiver.answer(response, one, request);
    });
  });
  await new Promise<void>((resolve) => {
    server.listen(0, '127.0.0.1', resolve);
  });
  const { port } = server.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${port}/hook`,
    port,
    received,
    /** Ids of events, in the order of arrival. */
    ids: () => received.map(({ event }) => event.id),
    set answer(next: Answer) {
      receiver.answer = next;
    },
    stop: () =>
      new Promise<void>((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}
