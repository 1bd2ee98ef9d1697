import { describe, expect, it } from 'vitest';
import { HttpResponses } from './http-responses.ts';

function statuses(parts: string[]): number[] {
  const seen: number[] = [];
  const responses = new HttpResponses((status) => seen.push(status));
  for (const part of parts) responses.take(Buffer.from(part));
  return seen;
}

const created = 'HTTP/1.1 201 Created\r\nx: y\r\ncontent-length: 4\r\n\r\nabcd';
const refused = 'HTTP/1.1 503 Service Unavailable\r\nContent-Length: 2\r\n\r\n{}';
const chunked =
  'HTTP/1.1 202 Accepted\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nab\r\n\r\na\r\n0123456789\r\n0\r\n\r\n';
const empty = 'HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n';

describe('HttpResponses', () => {
  it('returns the status of each response, however the bytes are split', () => {
    const text = created + refused + chunked + empty + created;
    for (const size of [1, 2, 7, 50, text.length]) {
      const parts = Array.from({ length: Math.ceil(text.length / size) }, (_, i) =>
        text.slice(i * size, (i + 1) * size),
      );
      expect(statuses(parts)).toEqual([201, 503, 202, 200, 201]);
    }
  });

  it('returns a response only when its body is complete', () => {
    for (const text of [created, chunked]) expect(statuses([text.slice(0, -1)])).toEqual([]);
  });

  it('does not treat a body as headers', () => {
    const body = '\r\ncontent-length: 99999\r\n';
    expect(statuses([`HTTP/1.1 200 OK\r\nContent-Length: ${body.length}\r\n\r\n${body}`])).toEqual([200]);
  });

  it('throws for invalid responses', () => {
    expect(() => statuses(['SSH-2.0-OpenSSH_9\r\n\r\n'])).toThrow('not an HTTP response');
    expect(() => statuses(['HTTP/1.1 200 OK\r\nserver: x\r\n\r\n'])).toThrow('without Content-Length');
    expect(() => statuses(['HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nxyz\r\n'])).toThrow('without a size');
  });
});
