import type { IncomingHttpHeaders } from 'node:http';
import type { FastifyReply } from 'fastify';

export type Cookies = ReturnType<typeof createCookie>;

/** Browsers reject cookies of more than 4096 bytes, including name and attributes. */
export const maxSealedLength = 3_900;

/**
 * One of the dashboard's own cookies. They are HttpOnly, so that scripts cannot read them. They are Lax, so that they
 * are not sent with forms or frames of other sites, but are sent with the redirect from the issuer. With https the name
 * has the prefix `__Host-`, so that browsers accept the cookie only from this host, for path /, over https.
 */
export function createCookie(name: string, isSecure: boolean) {
  const full = isSecure ? `__Host-${name}` : name;
  const attributes = `; Path=/; HttpOnly; SameSite=Lax${isSecure ? '; Secure' : ''}`;
  return {
    read({ cookie }: IncomingHttpHeaders): string | undefined {
      const start = `${full}=`;
      const found = cookie
        ?.split(';')
        .map((part) => part.trim())
        .find((part) => part.startsWith(start));
      return found?.slice(start.length);
    },
    /** Without `maxAgeS`, the cookie is kept until the browser is closed. */
    write: (reply: FastifyReply, value: string, maxAgeS?: number) =>
      void reply.header(
        'set-cookie',
        `${full}=${value}${attributes}${maxAgeS === undefined ? '' : `; Max-Age=${maxAgeS}`}`,
      ),
    clear: (reply: FastifyReply) => void reply.header('set-cookie', `${full}=${attributes}; Max-Age=0`),
  };
}
