import { createHash } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import type { FastifyInstance, FastifyRequest } from 'fastify';
import { fileText } from '#libs/service/csv.ts';
import { refuse } from '../../gateway/http/errors.ts';

export type Receive = (request: FastifyRequest, payload: IncomingMessage) => Promise<Buffer>;

/** More than any form of ours has. Reading takes as long as there are fields, however small they are. */
const maxFields = 1_000;

/** Throws a Refused for more fields than maxFields, each of which begins with `mark`. */
function checkFields(text: string, mark: RegExp): void {
  if (text.split(mark, maxFields + 2).length > maxFields + 1)
    throw refuse('body_too_large', `the form must not have more than ${maxFields} fields`);
}

/** Parses a form without a file. */
export function readFields(body: Buffer): URLSearchParams {
  const text = String(body);
  checkFields(text, /&/);
  return new URLSearchParams(text);
}

/**
 * Parses forms with a file. Fields are as in other forms. The text of a file is in its field, the name of the file in
 * `…_name`, and the SHA-256 of its bytes in `…_sha256`.
 */
export function addUploads(app: FastifyInstance, receive: Receive): void {
  app.addContentTypeParser('multipart/form-data', async (request: FastifyRequest, payload: IncomingMessage) => {
    const form = await readForm(await receive(request, payload), request.headers['content-type'] ?? '');
    const fields = new URLSearchParams();
    for (const [name, value] of form) {
      if (typeof value === 'string') fields.append(name, value);
      else {
        const bytes = new Uint8Array(await value.arrayBuffer());
        fields.append(name, fileText(bytes));
        fields.append(`${name}_name`, value.name);
        fields.append(`${name}_sha256`, createHash('sha256').update(bytes).digest('hex'));
      }
    }
    return fields;
  });
}

async function readForm(body: Buffer, type: string): Promise<FormData> {
  checkFields(body.toString('latin1'), /^content-disposition:/im);
  try {
    return await new Response(new Uint8Array(body), { headers: { 'content-type': type } }).formData();
  } catch {
    throw refuse('validation_failed', 'the form cannot be read');
  }
}
