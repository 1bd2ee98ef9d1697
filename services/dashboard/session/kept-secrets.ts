import type { FastifyReply, FastifyRequest } from 'fastify';
import { z } from 'zod';
import type { Cookies } from './cookies.ts';
import { createSealer } from './seal.ts';

/**
 * Secrets that the API shows once: of a new API key, or a webhook. The browser keeps them, sealed, until the person says
 * that they are copied, at most for ten minutes, so that a reload does not lose them.
 */

const keptSchema = z.object({
  actor: z.string(),
  secrets: z.array(z.object({ id: z.string(), secret: z.string(), until_ms: z.number() })),
});

const keptSeconds = 600;
/** They fit into one cookie. */
const mostKept = 8;

export type KeptSecrets = ReturnType<ReturnType<typeof createKeptSecrets>>;

export function createKeptSecrets({
  secrets,
  cookie,
  now,
}: {
  secrets: readonly string[];
  cookie: Cookies;
  now: () => number;
}) {
  const sealer = createSealer(secrets, 'kept secrets');
  return ({ headers }: Pick<FastifyRequest, 'headers'>, reply: FastifyReply, actor: string) => {
    const text = sealer.open(cookie.read(headers) ?? '');
    const kept = text === undefined ? undefined : keptSchema.safeParse(JSON.parse(text)).data;
    let held = kept?.actor === actor ? kept.secrets.filter(({ until_ms }) => until_ms > now()) : [];
    const write = () => {
      if (held.length === 0) cookie.clear(reply);
      else cookie.write(reply, sealer.seal(JSON.stringify({ actor, secrets: held })), keptSeconds);
    };
    return {
      /** `id`: whose secret it is. */
      keep(id: string, secret: string): void {
        const others = held.filter((one) => one.id !== id);
        held = [{ id, secret, until_ms: now() + keptSeconds * 1000 }, ...others].slice(0, mostKept);
        write();
      },
      read: (id: string): string | undefined => held.find((one) => one.id === id)?.secret,
      forget(id?: string): void {
        if (held.length === 0) return;
        held = id === undefined ? [] : held.filter((one) => one.id !== id);
        write();
      },
    };
  };
}
