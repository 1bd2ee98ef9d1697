import type { FastifyReply, FastifyRequest } from 'fastify';
import type { Logger } from 'pino';
import { errorCodes } from '#libs/contracts/errors.ts';
import type { Html } from '#libs/service/html.ts';
import { html } from '#libs/service/html.ts';
import type { AuditRecords } from '../access/audit-records.ts';
import { KeysUnavailable } from '../access/jwks.ts';
import { internalError, logRefused, refusalOf, unavailable } from '../http/errors.ts';
import { ApiRefused } from './api.ts';
import { ForeignForm, sendPage } from './html/frame.ts';
import { renderPage } from './html/layout.ts';

/** Error pages, which say what to do next. */

interface Problem {
  status: number;
  title: string;
  text: string;
}

export function createErrorPages({ logger, auditRecords }: { logger: Logger; auditRecords: AuditRecords }) {
  return (error: unknown, request: FastifyRequest, reply: FastifyReply): FastifyReply => {
    const refusal =
      error instanceof ApiRefused || error instanceof ForeignForm
        ? undefined
        : error instanceof KeysUnavailable
          ? unavailable
          : (refusalOf(error) ?? internalError);
    // The API records and logs its own refusals. A wrong form token counts as a failed credential.
    if (refusal) {
      auditRecords.refused(request, refusal.code);
      logRefused(logger, request, refusal.code, { error: refusal === internalError ? error : undefined });
    }
    if (error instanceof ForeignForm) {
      auditRecords.refused(request, 'invalid_credentials');
      logRefused(logger, request, 'invalid_credentials', { status: foreignForm.status });
    }
    const problem =
      error instanceof ForeignForm
        ? foreignForm
        : error instanceof ApiRefused
          ? of(error.status, error.problem.message)
          : of(errorCodes[refusal?.code ?? 'internal_error'].status, refusal?.message ?? '');
    return sendPage(
      reply,
      problem.status,
      renderPage({
        title: problem.title,
        content: problemContent(problem, request),
        person: request.visit?.person,
        path: '',
      }),
    );
  };
}

const foreignForm: Problem = {
  status: 403,
  title: 'This form was not accepted',
  text: 'It was not sent by a page of your current session, perhaps because you signed in again meanwhile. Nothing was changed. Open the page again and repeat your entry.',
};

function of(status: number, message: string): Problem {
  if (status === 403)
    return {
      status,
      title: 'You may not do this',
      text: `Your permissions do not allow it: ${message}. Ask an administrator if you need it.`,
    };
  if (status === 404) return { status, title: 'Not found', text: `There is nothing here: ${message}.` };
  if (status === 413)
    return {
      status,
      title: 'Too large',
      text: 'This is too much for one request. Nothing was changed; divide it into several.',
    };
  if (status === 429)
    return {
      status,
      title: 'Too many requests',
      text: 'You sent more requests than are allowed per minute. Wait a little, then open the page again.',
    };
  if (status === 503)
    return {
      status,
      title: 'Not available now',
      text: 'The bank cannot answer at the moment. Nothing was changed; try again in a few seconds.',
    };
  if (status === 504)
    return {
      status,
      title: 'Outcome not known yet',
      text: `The bank did not confirm in time whether it was done. ${message}.`,
    };
  if (status >= 500)
    return {
      status,
      title: 'Something went wrong',
      text: 'The error was logged. Try again; if the problem remains, give operations the request id below.',
    };
  return { status, title: 'This was not accepted', text: message };
}

function problemContent({ text }: Problem, request: FastifyRequest): Html {
  return html`<p role="alert">${text}</p>
<p><a href="/admin/ui" role="button">To the start page</a></p>
<p class="quiet">Request id: <code>${request.id}</code></p>`;
}
