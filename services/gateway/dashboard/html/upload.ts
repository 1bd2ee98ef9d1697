import type { IncomingMessage } from 'node:http';
import type { FastifyInstance, FastifyRequest } from 'fastify';
import { refuse } from '../../http/errors.ts';

export type Receive = (request: FastifyRequest, payload: IncomingMessage) => Promise<Buffer>;

/**
 * Parses forms with a file. Fields are as in other forms. The text of a file is in its field, and
 * the name of the file in `…_name`.
 */
export function addUploads(app: FastifyInstance, receive: Receive): void {
  app.addContentTypeParser('multipart/form-data', async (request: FastifyRequest, payload: IncomingMessage) => {
    const form = await readForm(await receive(request, payload), request.headers['content-type'] ?? '');
    const fields = new URLSearchParams();
    for (const [name, value] of form) {
      if (typeof value === 'string') fields.append(name, value);
      else {
        fields.append(name, fileText(new Uint8Array(await value.arrayBuffer())));
        fields.append(`${name}_name`, value.name);
      }
    }
    return fields;
  });
}

async function readForm(body: Buffer, type: string): Promise<FormData> {
  try {
    return await new Response(new Uint8Array(body), { headers: { 'content-type': type } }).formData();
  } catch {
    throw refuse('validation_failed', 'the form cannot be read');
  }
}

/** Decodes the encodings of spreadsheets: UTF-8, UTF-16 with a byte order mark, otherwise windows-1252. Pure. */
export function fileText(bytes: Uint8Array): string {
  if (bytes[0] === 0xff && bytes[1] === 0xfe) return new TextDecoder('utf-16le').decode(bytes);
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes);
  } catch {
    return new TextDecoder('windows-1252').decode(bytes);
  }
}
