import { createHash } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import type { FastifyInstance, FastifyRequest } from 'fastify';
import { fileText } from '#libs/service/csv.ts';
import { Refused } from '../refusals.ts';

/** More than any form of ours has. Reading takes as long as there are fields, however small they are. */
const maxFields = 1_000;

/** Throws a Refused for more fields than maxFields, each of which begins with `mark`. */
function checkFields(text: string, mark: RegExp): void {
  if (text.split(mark, maxFields + 2).length > maxFields + 1)
    throw new Refused('body_too_large', `the form must not have more than ${maxFields} fields`);
}

/** Bodies that are being read, in bytes: some dozens of the largest. */
const maxHeldBytes = 64 * 1024 * 1024;
let heldBytes = 0;

/**
 * Reads the body of a form, to its end also if it is too large, because a browser that is still sending would not see
 * the response.
 */
export async function readBody({ routeOptions }: FastifyRequest, payload: IncomingMessage): Promise<Buffer> {
  const { bodyLimit } = routeOptions;
  const chunks: Buffer[] = [];
  let size = 0;
  let held = 0;
  try {
    for await (const chunk of payload as AsyncIterable<Buffer>) {
      size += chunk.length;
      if (size > bodyLimit || heldBytes + chunk.length > maxHeldBytes) continue;
      held += chunk.length;
      heldBytes += chunk.length;
      chunks.push(chunk);
    }
  } finally {
    heldBytes -= held;
  }
  if (size > bodyLimit) throw new Refused('body_too_large', `the form must not exceed ${bodyLimit / 1024} KiB`);
  if (held < size) throw new Refused('service_unavailable', 'too many forms at once');
  return Buffer.concat(chunks);
}

/** Parses a form without a file. */
export function readFields(body: Buffer): URLSearchParams {
  const text = String(body);
  checkFields(text, /&/);
  return new URLSearchParams(text);
}

/**
 * Parses forms with a file. Fields are as in other forms. The text of a file is in its field, the name of the file in
 * `…_name`, and the SHA-256 of its text in `…_sha256`: the
 * same if the file is saved again in another encoding or with other line ends.
 */
export function addUploads(app: FastifyInstance): void {
  app.addContentTypeParser('multipart/form-data', async (request: FastifyRequest, payload: IncomingMessage) => {
    const form = await readForm(await readBody(request, payload), request.headers['content-type'] ?? '');
    const fields = new URLSearchParams();
    for (const [name, value] of form) {
      if (typeof value === 'string') fields.append(name, value);
      else {
        const text = fileText(new Uint8Array(await value.arrayBuffer()));
        const lines = text.replaceAll(/\r\n?/g, '\n').replace(/\n*$/, '\n');
        fields.append(name, text);
        fields.append(`${name}_name`, value.name);
        fields.append(`${name}_sha256`, createHash('sha256').update(lines).digest('hex'));
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
    throw new Refused('validation_failed', 'the form cannot be read');
  }
}
