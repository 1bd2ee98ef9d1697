import { hash } from 'node:crypto';
import { endpoints } from '#libs/contracts/endpoints.ts';
import type { Position } from '#libs/contracts/message-fields.ts';
import type { MessageData } from '#libs/contracts/messages.ts';
import type { EntryLine, Statement } from '#libs/contracts/statements.ts';
import { acceptedTypes } from '../http/accept.ts';
import { type Refused, refuseViolations } from '../http/errors.ts';
import { knownForm } from '../http/unknown-ids.ts';
import { type Origin, replyWaitMs } from '../messages/encode.ts';
import { ConcurrencyLimit } from '../overload/concurrency-limit.ts';
import { requireData } from './answer.ts';
import type { Forwarder } from './forward.ts';
import { parseQuery } from './input.ts';
import { printedStatement, stylesheet } from './printed-statement.ts';
import { givenFilters, isRecordedFor, recordOrRefuse } from './recorded-reads.ts';
import { toOrigin } from './request.ts';
import type { Handler, RouteDependencies } from './routes.ts';

/** GET /accounts/:account_id/statement as a page made for paper: the whole period. */

const page = 'text/html';
/** A page of this length has about 4 MB. */
const maxPrinted = 10_000;
const styleHash = hash('sha256', stylesheet, 'base64');

/** Responds with a page if the request prefers one; otherwise calls `json`. */
export function statementHandler(json: Handler, deps: RouteDependencies): Handler {
  // Each page needs up to twenty queries.
  const shares = new ConcurrencyLimit(
    1,
    'another statement of this caller is being made; wait for it, then repeat the request',
  );
  return async (request, reply) => {
    if (!prefersPage(request.headers.accept)) return json(request, reply);
    const query = parseQuery(endpoints.get_statement.query, request.query as Record<string, unknown>);
    if (query.cursor !== undefined)
      throw refuseViolations([
        { field: 'cursor', code: 'validation_failed', message: 'cursor is for JSON; text/html is the whole period' },
      ]);
    const origin = toOrigin(request);
    const account_id = knownForm('account', (request.params as Record<string, string>)['account_id']);
    const text = await shares.run(origin.caller.actor, async () => {
      const { from, to, effective_from, effective_to } = query;
      const period = { account_id, from, to, effective_from, effective_to };
      const statement = await wholeStatement(period, origin, deps.forwarder);
      const holder = await readHolder(account_id, origin, deps.forwarder);
      if (isRecordedFor('get_statement', origin.caller)) {
        await recordOrRefuse(deps.auditRecords, request, {
          actor: origin.caller.actor,
          action: 'export',
          resource_id: account_id,
          outcome: 'success',
          details: { file: 'statement.html', rows: statement.entry_count, filters: givenFilters(query) },
        });
        deps.auditRecords.done(request, 'export');
      }
      return printedStatement({ statement, holder, created_at: new Date(deps.now()).toISOString() });
    });
    reply.headers({
      'content-type': `${page}; charset=utf-8`,
      'content-security-policy': `default-src 'none'; style-src 'sha256-${styleHash}'; frame-ancestors 'none'`,
    });
    reply.send(text);
  };
}

/**
 * Reports whether this Accept header prefers a page: it names text/html, and does not prefer JSON. Browsers name it;
 * programs that accept anything get JSON. Pure.
 */
export function prefersPage(accept = ''): boolean {
  const wanted = acceptedTypes(accept);
  const own = wanted.get(page) ?? 0;
  const json = wanted.get('application/json');
  return own > 0 && (json === undefined ? own >= (wanted.get('application/*') ?? wanted.get('*/*') ?? 0) : own > json);
}

/** Reads every entry of the period. Each page may take as long as a reply may take. */
async function wholeStatement(
  period: Omit<MessageData<'get_statement'>, 'limit' | 'after'>,
  origin: Origin,
  forwarder: Forwarder,
): Promise<Statement> {
  const entries: EntryLine[] = [];
  for (let after: Position | undefined; ; ) {
    const { item, next } = requireData(
      await forwarder.query('get_statement', { ...period, limit: 500, after }, period.account_id, patient(origin)),
    );
    if (item.entry_count > maxPrinted) throw tooMany(item.entry_count);
    entries.push(...item.entries);
    if (next === undefined) return { ...item, entries };
    after = next;
  }
}

const patient = (origin: Origin): Origin => ({ ...origin, answerBy: performance.now() + replyWaitMs });

function tooMany(count: number): Refused {
  const message = `the period has ${count} entries: choose one of at most ${maxPrinted} for a printed statement`;
  return refuseViolations([{ field: 'from', code: 'validation_failed', message }]);
}

/** Returns the name and address of the account's owner, or nothing if the caller may not read clients. */
async function readHolder(account_id: string, origin: Origin, forwarder: Forwarder): Promise<string[]> {
  if (!origin.caller.scopes.has('clients:read')) return [];
  const { client_id } = requireData(await forwarder.query('get_account', { account_id }, account_id, patient(origin)));
  const client = requireData(await forwarder.query('get_client', { client_id }, client_id, patient(origin)));
  const name = client.client_type === 'Retail' ? `${client.first_name} ${client.last_name}` : client.company_name;
  return [name, ...(client.address ?? '').split('\n').filter((line) => line !== '')];
}
