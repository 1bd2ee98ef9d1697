import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { z } from 'zod';
import { html } from '#libs/service/html.ts';
import { checkOwnForm, ForeignForm, requireVisit, sendPage, toSignIn } from '../html/frame.ts';
import { csrfField, renderPage } from '../html/layout.ts';
import { facts, fieldWords, notice } from '../html/show.ts';
import { type Cookies, maxSealedLength } from '../session/cookies.ts';
import { createSealer } from '../session/seal.ts';
import type { Session } from '../session/session.ts';

/**
 * Keeps a form that was sent after its session had ended. The form is not executed; the person gets it back
 * after signing in. The browser stores it, sealed, for ten minutes.
 */

const keptSchema = z.object({
  actor: z.string(),
  url: z.string(),
  fields: z.array(z.tuple([z.string(), z.string()])),
  until_ms: z.number(),
});

const url = '/admin/ui/kept-form';
const keptSeconds = 600;

interface KeptFormOptions {
  secrets: readonly string[];
  cookie: Cookies;
  origin: string;
  now: () => number;
}

/** Returns a function that keeps a form. It returns the page that shows the form again, or undefined if it is lost. */
export function addKeptForm(app: FastifyInstance, { secrets, cookie, origin, now }: KeptFormOptions) {
  const sealer = createSealer(secrets, 'kept form');

  /** A form that is too large is lost, and the person is redirected to its page. */
  const keep = (request: FastifyRequest, reply: FastifyReply, session: Session): string | undefined => {
    const fields = request.body instanceof URLSearchParams ? request.body : new URLSearchParams();
    try {
      checkOwnForm(request, { session, fields }, origin);
    } catch (error) {
      if (error instanceof ForeignForm) return undefined;
      throw error;
    }
    const entered = [...fields].filter(([name]) => name !== 'csrf_token');
    const kept = { actor: session.actor, url: request.url, fields: entered, until_ms: now() + keptSeconds * 1000 };
    const sealed = sealer.seal(JSON.stringify(kept));
    if (sealed.length > maxSealedLength) return undefined;
    cookie.write(reply, sealed, keptSeconds);
    return url;
  };

  app.addHook('preHandler', async (request, reply) => {
    if (!request.expiredSession) return undefined;
    toSignIn(request, reply, keep(request, reply, request.expiredSession));
    return reply;
  });

  app.get(
    url,
    { config: { page: { title: 'Your form', scope: null }, action: 'page:kept-form' } },
    async (request, reply) => {
      const { person, actor } = requireVisit(request);
      const sealed = cookie.read(request.headers);
      const text = sealed === undefined ? undefined : sealer.open(sealed);
      const kept = text === undefined ? undefined : keptSchema.safeParse(JSON.parse(text)).data;
      if (!kept || kept.actor !== actor || kept.until_ms <= now()) return reply.redirect('/admin/ui', 303);
      const content = html`${notice('info', html`Your session had ended before this was sent. <strong>Nothing has been done yet.</strong>`)}
${facts(kept.fields.filter(isForPeople).map(([name, value]) => [fieldWords(name), value]))}
<form method="post" action="${kept.url}">${csrfField(person.csrf)}${kept.fields.map(([name, value]) => html`<input type="hidden" name="${name}" value="${value}">`)}
<div class="actions"><button autofocus>Send it now</button> <a href="/admin/ui">Leave it</a></div></form>`;
      return sendPage(reply, 200, renderPage({ title: 'Your form', content, person, path: url }));
    },
  );

  return keep;
}

/** Returns the fields that a person has filled in, without hidden ones. */
const isForPeople = ([name, value]: [string, string]): boolean =>
  value !== '' && !/^(idempotency_key|etag|of|made_at|was_.*)$/.test(name);
