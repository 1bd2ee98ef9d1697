import type { FastifyReply, FastifyRequest } from 'fastify';
import type { Logger } from 'pino';
import { type ErrorCode, errorCodes } from '#libs/contracts/errors.ts';
import { type Html, html } from '#libs/service/html.ts';
import { KeysUnavailable } from '../gateway/access/jwks.ts';
import type { AuditRecords } from '../gateway/audit/audit-records.ts';
import { internalError, logRefused, refusalOf, unavailable } from '../gateway/http/errors.ts';
import { ApiRefused } from './api.ts';
import { ForeignForm, sendPage } from './html/frame.ts';
import { renderPage } from './html/layout.ts';

/** Error pages, which say what to do next. */

interface Problem {
  status: number;
  title: string;
  text: string;
}

interface ErrorPageOptions {
  logger: Logger;
  auditRecords: AuditRecords;
  keepConnection(reply: FastifyReply): void;
}

export function createErrorPages({ logger, auditRecords, keepConnection }: ErrorPageOptions) {
  const refused = (request: FastifyRequest, code: ErrorCode, more: { status?: number; error?: unknown }) => {
    auditRecords.refused(request, code);
    logRefused(logger, request, code, more);
  };
  const problemOf = (error: unknown, request: FastifyRequest): Problem => {
    // The API records and logs its own refusals.
    if (error instanceof ApiRefused) return of(error.status, error.problem.message);
    // A wrong form token counts as a failed credential.
    if (error instanceof ForeignForm) {
      refused(request, 'invalid_credentials', { status: foreignForm.status });
      return foreignForm;
    }
    const refusal = error instanceof KeysUnavailable ? unavailable : (refusalOf(error) ?? internalError);
    refused(request, refusal.code, { error: refusal === internalError ? error : undefined });
    return of(errorCodes[refusal.code].status, refusal.message);
  };
  return (error: unknown, request: FastifyRequest, reply: FastifyReply): FastifyReply => {
    const problem = problemOf(error, request);
    keepConnection(reply);
    const { status, title } = problem;
    const person = request.visit?.person;
    return sendPage(reply, status, renderPage({ title, content: problemContent(problem, request), person }));
  };
}

const foreignForm: Problem = {
  status: 403,
  title: 'This form was not accepted',
  text: 'It was not sent by a page of your current session, perhaps because you signed in again meanwhile. Nothing was changed. Open the page again and repeat your entry.',
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

function problemContent({ text }: Problem, request: FastifyRequest): Html {
  return html`<p role="alert">${text}</p>
<p><a href="/admin/ui" role="button">To the home page</a></p>
<p class="quiet">Request id: <code>${request.id}</code></p>`;
}
