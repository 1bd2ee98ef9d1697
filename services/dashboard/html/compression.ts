import { promisify } from 'node:util';
import { brotliCompress, constants, gzip } from 'node:zlib';
import type { FastifyInstance, FastifyRequest } from 'fastify';

/** Responses in fewer bytes. */

const brotli = promisify(brotliCompress);
const zip = promisify(gzip);

export type Encoding = 'br' | 'gzip';

/** Returns the best encoding that the browser accepts, or undefined. */
export function acceptedEncoding({ headers }: Pick<FastifyRequest, 'headers'>): Encoding | undefined {
  const accepted = [headers['accept-encoding'] ?? ''].flat().join(',').toLowerCase();
  const named = accepted.split(',').flatMap((part) => {
    const [name = '', ...parameters] = part.split(';').map((text) => text.trim());
    return parameters.some((text) => /^q=0(\.0*)?$/.test(text)) ? [] : [name];
  });
  return (['br', 'gzip'] as const).find((encoding) => named.includes(encoding));
}

/** `quality`: 1 to 11 for br; more takes longer. */
export const compress = (content: string | Buffer, encoding: Encoding, quality: number): Promise<Buffer> =>
  encoding === 'br' ? brotli(content, { params: { [constants.BROTLI_PARAM_QUALITY]: quality } }) : zip(content);

/** Below this, in characters, compression saves nothing. */
const worthwhile = 1024;

/**
 * Compresses pages. A page that another site has made the browser request is left as it is: from the sizes of many such
 * responses, somebody who sees the encrypted traffic could guess what else is on the page (BREACH). Browsers say which
 * site a request comes from, and no script can change what they say.
 */
export function compressPages(app: FastifyInstance): void {
  app.addHook('onSend', async (request, reply, payload) => {
    const isOwn = ['same-origin', 'none'].includes(String(request.headers['sec-fetch-site']));
    const isPage = String(reply.getHeader('content-type')).startsWith('text/html');
    const encoding = isOwn ? acceptedEncoding(request) : undefined;
    if (typeof payload !== 'string' || !isPage || encoding === undefined || payload.length < worthwhile) return payload;
    reply.removeHeader('content-length').headers({ 'content-encoding': encoding, vary: 'accept-encoding' });
    return compress(payload, encoding, 5);
  });
}
