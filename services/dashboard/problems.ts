import type { FastifyReply, FastifyRequest } from 'fastify';
import type { Logger } from 'pino';
import { type ErrorCode, errorCodes } from '#libs/contracts/errors.ts';
import { type Html, html } from '#libs/service/html.ts';
import { ApiRefused } from './api.ts';
import { ForeignForm, pageOfForm, sendPage, toSignIn } from './html/frame.ts';
import { renderPage } from './html/layout.ts';
import { logRefused, toRefused } from './refusals.ts';
import type { Session } from './session/session.ts';

/** Error pages, which say what to do next. */

interface Problem {
  status: number;
  title: string;
  text: string;
}

interface ErrorPageOptions {
  logger: Logger;
  keepConnection(reply: FastifyReply): void;
  /** Keeps a form whose session has ended. Returns the page that shows it again after the sign-in. */
  keepForm(request: FastifyRequest, reply: FastifyReply, session: Session): string | undefined;
}

export function createErrorPages({ logger, keepConnection, keepForm }: ErrorPageOptions) {
  /** Tells the audit and the log what the dashboard itself refused. The API records and logs its own refusals. */
  const refused = async (
    request: FastifyRequest,
    code: ErrorCode,
    more: { status?: number; error?: unknown },
  ): Promise<void> => {
    logRefused(logger, request, code, more);
    const { action } = request.routeOptions.config;
    const isForAuditors = code === 'insufficient_scope' || code === 'invalid_credentials';
    if (!isForAuditors || !request.visit || action === undefined) return;
    await request.visit.api
      .post('/admin/activities', { action, outcome: code })
      .catch((error: unknown) => logger.warn({ err: error, request_id: request.id }, 'a refusal was not recorded'));
  };
  const toProblem = async (error: unknown, request: FastifyRequest): Promise<Problem> => {
    if (error instanceof ApiRefused) {
      // The API has no line for a request that it did not answer.
      if (error.cause !== undefined) logRefused(logger, request, 'service_unavailable', { error: error.cause });
      return of(error.status, error.problem.message);
    }
    // A wrong form token counts as a failed credential.
    if (error instanceof ForeignForm) {
      await refused(request, 'invalid_credentials', { status: foreignForm.status });
      return foreignForm;
    }
    const refusal = toRefused(error);
    const code = refusal?.code ?? 'internal_error';
    await refused(request, code, { error: refusal ? undefined : error });
    return of(errorCodes[code].status, refusal?.message ?? '');
  };
  return async (error: unknown, request: FastifyRequest, reply: FastifyReply): Promise<FastifyReply> => {
    keepConnection(reply);
    const { visit } = request;
    // The token has expired, or the person signed out or in again elsewhere.
    if (error instanceof ApiRefused && error.status === 401 && visit) {
      toSignIn(request, reply, true, request.method === 'POST' ? keepForm(request, reply, visit.session) : undefined);
      return reply;
    }
    const problem = await toProblem(error, request);
    const { status, title } = problem;
    return sendPage(
      reply,
      status,
      renderPage({
        title,
        content: problemContent(problem, request),
        person: visit?.person,
        here: pageOfForm(request),
      }),
    );
  };
}

const foreignForm: Problem = {
  status: 403,
  title: 'This form was not accepted',
  text: 'It was not sent by a page of your current session, perhaps because you signed out meanwhile, or somebody else signed in. Nothing was changed. Open the page again and repeat your entry.',
};

/** What people read, by status; others are shown with the message of the API, or as our fault. */
const texts: Record<number, (message: string) => [title: string, text: string]> = {
  403: (message) => [
    'You may not do this',
    `Your permissions do not allow it: ${message}. Ask an administrator if you need it.`,
  ],
  404: (message) => ['Not found', `${message.charAt(0).toUpperCase()}${message.slice(1)}.`],
  413: () => ['Too large', 'This is too much for one request. Nothing was changed; divide it into several.'],
  429: () => [
    'Too many requests',
    'You sent more requests than are allowed at once, or per minute. Wait a little, then open the page again.',
  ],
  503: () => [
    'Not available now',
    'The bank cannot answer at the moment. Nothing was changed; try again in a few seconds.',
  ],
  504: (message) => ['Outcome not known yet', `The bank did not confirm in time whether it was done. ${message}.`],
};
const ourFault = [
  'Something went wrong',
  'The error was logged. Try again; if the problem remains, give operations the request id below.',
] as const;

function of(status: number, message: string): Problem {
  const [title, text] = texts[status]?.(message) ?? (status >= 500 ? ourFault : ['This was not accepted', message]);
  return { status, title, text };
}

/** Nobody looks for the request of a mistyped address. */
function problemContent({ status, text }: Problem, request: FastifyRequest): Html {
  return html`<p role="alert">${text}</p>
<p><a href="/admin/ui" role="button">To the home page</a></p>${
    status !== 404 &&
    html`
<p class="quiet">Request id: <code>${request.id}</code></p>`
  }`;
}
