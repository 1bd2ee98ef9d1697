import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { z } from 'zod';
import { clientName } from '#libs/contracts/clients.ts';
import { subjectsIn } from '#libs/contracts/ids.ts';
import { amountText } from '#libs/service/formats.ts';
import { html } from '#libs/service/html.ts';
import { checkOwnForm, ForeignForm, type PageRequest, requireVisit, sendPage, toSignIn } from '../html/frame.ts';
import { csrfField, renderPage } from '../html/layout.ts';
import { readNamed } from '../html/owners.ts';
import { type Fact, facts, fieldWords, idLink, notice } from '../html/show.ts';
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
  title: z.string(),
  fields: z.array(z.tuple([z.string(), z.string()])),
  /** True if the form only confirms a page that can be shown again. */
  is_confirmation: z.boolean(),
  until_ms: z.number(),
});
type Kept = z.infer<typeof keptSchema>;

export const keptFormUrl = '/admin/ui/kept-form';
const keptSeconds = 600;

interface KeptFormOptions {
  secrets: readonly string[];
  cookie: Cookies;
  origin: string;
  now: () => number;
}

export function addKeptForm(app: FastifyInstance, { secrets, cookie, origin, now }: KeptFormOptions) {
  const sealer = createSealer(secrets, 'kept form');
  const read = ({ headers }: FastifyRequest): Kept | undefined => {
    const text = sealer.open(cookie.read(headers) ?? '');
    const kept = text === undefined ? undefined : keptSchema.safeParse(JSON.parse(text)).data;
    return kept && kept.until_ms > now() ? kept : undefined;
  };

  /** Keeps a form. Returns the page that shows it again, or undefined if it is lost, because it is too large. */
  const keep = (request: FastifyRequest, reply: FastifyReply, session: Session): string | undefined => {
    const fields = request.body instanceof URLSearchParams ? request.body : new URLSearchParams();
    try {
      checkOwnForm(request, { session, fields }, origin);
    } catch (error) {
      if (error instanceof ForeignForm) return undefined;
      throw error;
    }
    const entered = [...fields].filter(([name]) => name !== 'csrf_token');
    const { url = '', config } = request.routeOptions;
    const kept: Kept = {
      actor: session.actor,
      url: request.url,
      title: config.page?.title ?? '',
      fields: entered,
      is_confirmation: entered.every(([name]) => name === 'of') && app.hasRoute({ method: 'GET', url }),
      until_ms: now() + keptSeconds * 1000,
    };
    const sealed = sealer.seal(JSON.stringify(kept));
    if (sealed.length > maxSealedLength) return undefined;
    cookie.write(reply, sealed, keptSeconds);
    return keptFormUrl;
  };

  app.addHook('preHandler', async (request, reply) => {
    if (!request.expiredSession) return undefined;
    toSignIn(request, reply, true, keep(request, reply, request.expiredSession));
    return reply;
  });

  app.get(
    keptFormUrl,
    { config: { page: { title: 'Your form', scope: null }, action: 'page:kept-form' } },
    async (request, reply) => {
      const visit = requireVisit(request);
      const { person, actor } = visit;
      const kept = read(request);
      if (kept?.actor !== actor)
        return sendPage(reply, 404, renderPage({ title: 'Your form', content: gone, person, path: keptFormUrl }));
      // The page that is confirmed says everything itself, and as of now.
      if (kept.is_confirmation) return reply.redirect(`${kept.url}?${new URLSearchParams(kept.fields)}`, 303);
      const subjects = await readSubjects(visit, kept);
      const content = html`${notice('info', html`Your session had ended before this was sent. <strong>Nothing has been done yet.</strong>`)}
<article class="narrow">${facts([['What', kept.title], ...subjects.values(), ...enteredFacts(kept, subjects)])}</article>
<form method="post" action="${kept.url}">${csrfField(person.csrf)}${kept.fields.map(([name, value]) => html`<input type="hidden" name="${name}" value="${value}">`)}
<div class="actions"><button autofocus>Send it now</button> <a href="/admin/ui">Leave</a></div></form>`;
      return sendPage(reply, 200, renderPage({ title: 'Your form', content, person, path: keptFormUrl }));
    },
  );

  return { keep, has: (request: FastifyRequest): boolean => read(request) !== undefined };
}

const gone = html`<p role="alert">There is no form to give back. One that is sent after the end of its session is kept for ${keptSeconds / 60} minutes, in that browser, for the person who sent it.</p>
<p><a href="/admin/ui" role="button">To the home page</a></p>`;

/** Fields of a form that no person has filled in. */
const isHidden = (name: string): boolean =>
  /^(idempotency_key|etag|of|made_at|was_.*|shown_.*|list|others|found_for)$/.test(name);

/** Returns the accounts and clients that the form names, in its address too, as far as the person may see them. */
async function readSubjects(visit: PageRequest, { url, fields }: Kept): Promise<ReadonlyMap<string, Fact>> {
  const named = [url, ...fields.filter(([name]) => !isHidden(name)).map(([, value]) => value)];
  const { accounts, clients } = await readNamed(visit, named.flatMap(subjectsIn));
  const subjects = new Map<string, Fact>();
  for (const { account_id, account_number, account_type, balance, currency } of accounts.values()) {
    const text = html`${idLink(account_id, account_number)}, ${account_type}, ${amountText(balance, currency)}`;
    subjects.set(account_id, ['Account', text]);
  }
  for (const client of clients.values())
    subjects.set(client.client_id, ['Client', idLink(client.client_id, clientName(client))]);
  return subjects;
}

/** Names of fields that their forms show with other words. */
const labels: Record<string, string> = {
  other_number: 'Other account',
  effective_date: 'Value date',
  ussd_phone_number: 'USSD phone',
  contact_number: 'Phone',
  email: 'E-mail',
  client_type: 'Type',
  account_type: 'Type',
  initial_deposit: 'First deposit',
  per_transaction: 'Most per posting',
  per_day_out: 'Most out per day',
  minimum_balance: 'Least that stays available',
  url: 'Receiver',
  expires_at: 'Expires at the end of',
};

/** Returns what a person has filled in. */
const enteredFacts = ({ fields }: Kept, subjects: ReadonlyMap<string, Fact>): Fact[] =>
  fields
    .filter(([name, value]) => value !== '' && !isHidden(name) && !subjects.has(value))
    .map(([name, value]) => [labels[name] ?? fieldWords(name), html`<span class="lines">${value}</span>`]);
