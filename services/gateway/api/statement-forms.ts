import { hash } from 'node:crypto';
import { setImmediate } from 'node:timers/promises';
import { clientName } from '#libs/contracts/clients.ts';
import { endpoints } from '#libs/contracts/endpoints.ts';
import type { Position } from '#libs/contracts/message-fields.ts';
import type { MessageData } from '#libs/contracts/messages.ts';
import type { Statement } from '#libs/contracts/statements.ts';
import { preferredType } from '../http/accept.ts';
import { type Refused, refuseViolations } from '../http/errors.ts';
import { knownForm } from '../http/unknown-ids.ts';
import type { Origin } from '../messages/encode.ts';
import { ConcurrencyLimit } from '../overload/concurrency-limit.ts';
import { requireData } from './answer.ts';
import { type CamtStatement, camtEnd, camtEntries, camtStart } from './camt.ts';
import type { Forwarder } from './forward.ts';
import { parseQuery } from './input.ts';
import { printedStatement, stylesheet } from './printed-statement.ts';
import { givenFilters, isRecordedFor, recordOrRefuse } from './recorded-reads.ts';
import { toOrigin } from './request.ts';
import type { Handler, RouteDependencies } from './routes.ts';
import { patient, sendTexts } from './streams.ts';

/** GET /accounts/:account_id/statement as a page made for paper, or as camt.053: the whole period. */

const page = 'text/html';
const forms = [page, 'application/xml', 'text/xml'] as const;
/** A page of this length has about 4 MB. */
const maxPrinted = 10_000;
const styleHash = hash('sha256', stylesheet, 'base64');

type Period = Omit<MessageData<'get_statement'>, 'limit' | 'after'>;

/** Responds with a page or a file if the request prefers one; otherwise calls `json`. */
export function statementHandler(json: Handler, deps: RouteDependencies): Handler {
  // Each page needs up to twenty queries and two for a hundred other accounts, a file up to two hundred.
  const shares = new ConcurrencyLimit(
    1,
    'another statement of this caller is being made; wait for it, then repeat the request',
  );
  return async (request, reply) => {
    const form = preferredType(request.headers.accept, forms);
    if (form === undefined) return json(request, reply);
    const query = parseQuery(endpoints.get_statement.query, request.query as Record<string, unknown>);
    const { from, to, effective_from, effective_to, on } = query;
    if (query.cursor !== undefined) throw refuseField('cursor', `cursor is for JSON; ${form} is the whole period`);
    if (form !== page && on === undefined)
      throw refuseField('on', `on is required: ${form} is the statement of one day`);
    const origin = toOrigin(request);
    const account_id = knownForm('account', (request.params as Record<string, string>)['account_id']);
    const pages = readStatement({ account_id, from, to, effective_from, effective_to, on }, origin, deps.forwarder);
    const record = async (file: string, rows: number) => {
      if (!isRecordedFor('get_statement', origin.caller)) return;
      await recordOrRefuse(deps.auditRecords, request, {
        actor: origin.caller.actor,
        action: 'export',
        resource_id: account_id,
        outcome: 'success',
        details: { file, rows, filters: givenFilters(query) },
      });
      deps.auditRecords.done(request, 'export');
    };
    await shares.run(origin.caller.actor, async () => {
      if (form === page) {
        const statement = await wholeStatement(pages, on === undefined ? 'from' : 'on');
        const holder = await readHolder(account_id, origin, deps.forwarder);
        const payees = await readPayees(statement, origin, deps.forwarder);
        await record('statement.html', statement.entry_count);
        reply.headers({
          'content-type': `${page}; charset=utf-8`,
          'content-security-policy': `default-src 'none'; style-src 'sha256-${styleHash}'; frame-ancestors 'none'`,
        });
        const created_at = new Date(deps.now()).toISOString();
        return void reply.send(printedStatement({ statement, holder, payees, created_at }));
      }
      // A refusal is the response; after the first page, a failure ends the connection.
      const statement = (await pages.next()).value as Statement;
      const [holder] = await readHolder(account_id, origin, deps.forwarder);
      await record('statement.xml', statement.entry_count);
      const about = { statement, on: on as string, holder, created_at: deps.now() };
      reply.header('content-disposition', `attachment; filename="statement-${statement.account_number}-${on}.xml"`);
      return sendTexts(reply, `${form}; charset=utf-8`, camtTexts(about, pages));
    });
  };
}

const refuseField = (field: string, message: string) =>
  refuseViolations([{ field, code: 'validation_failed', message }]);

/** Reads a statement page by page. Each may take as long as a reply may take. */
async function* readStatement(period: Period, origin: Origin, forwarder: Forwarder): AsyncGenerator<Statement> {
  for (let after: Position | undefined; ; ) {
    const { item, next } = requireData(
      await forwarder.query('get_statement', { ...period, limit: 500, after }, period.account_id, patient(origin)),
    );
    yield item;
    if (next === undefined) return;
    after = next;
  }
}

/** Yields the text of a file, one page of the statement after the other. `rest`: the pages after the first. */
async function* camtTexts(about: CamtStatement, rest: AsyncIterable<Statement>): AsyncGenerator<string> {
  yield camtStart(about);
  yield* entryTexts(about.statement, about.on);
  for await (const one of rest) yield* entryTexts(one, about.on);
  yield camtEnd;
}

/** The text of a whole page takes 40 ms of CPU, so it is made in pieces, between which other requests are served. */
async function* entryTexts(page: Statement, on: string): AsyncGenerator<string> {
  for (let at = 0; at < page.entries.length; at += 50) {
    yield camtEntries({ ...page, entries: page.entries.slice(at, at + 50) }, on);
    await setImmediate();
  }
}

/** Returns a statement with all of its entries. */
async function wholeStatement(pages: AsyncIterable<Statement>, field: 'from' | 'on'): Promise<Statement> {
  const read: Statement[] = [];
  for await (const one of pages) {
    if (one.entry_count > maxPrinted) throw tooMany(one.entry_count, field);
    read.push(one);
  }
  const [first] = read as [Statement];
  return { ...first, entries: read.flatMap(({ entries }) => entries) };
}

function tooMany(count: number, field: 'from' | 'on'): Refused {
  const message =
    field === 'on'
      ? `the day has ${count} entries, and a printed statement at most ${maxPrinted}: use JSON or application/xml`
      : `the period has ${count} entries: choose one of at most ${maxPrinted} for a printed statement`;
  return refuseField(field, message);
}

/** Returns the name and address of the account's owner, or nothing if the caller may not read clients. */
async function readHolder(account_id: string, origin: Origin, forwarder: Forwarder): Promise<string[]> {
  if (!origin.caller.scopes.has('clients:read')) return [];
  const { client_id } = requireData(await forwarder.query('get_account', { account_id }, account_id, patient(origin)));
  const client = requireData(await forwarder.query('get_client', { client_id }, client_id, patient(origin)));
  return [clientName(client), ...(client.address ?? '').split('\n').filter((line) => line !== '')];
}

/** The maximum number of ids in one query. */
const mostAtOnce = 100;

/** Returns the names of the owners of the other accounts, by account ids, or none if the caller may not read every client. */
async function readPayees(
  { entries }: Statement,
  origin: Origin,
  forwarder: Forwarder,
): Promise<ReadonlyMap<string, string>> {
  const { scopes, boundClientId } = origin.caller;
  const names = new Map<string, string>();
  if (!scopes.has('clients:read') || boundClientId !== undefined) return names;
  const ids = [...new Set(entries.flatMap(({ counterparty_account_id: id }) => id ?? []))];
  const page = { limit: mostAtOnce, order: 'desc' } as const;
  for (let at = 0; at < ids.length; at += mostAtOnce) {
    const account_ids = ids.slice(at, at + mostAtOnce).join(',');
    const accounts = requireData(
      await forwarder.query('list_accounts', { account_ids, ...page }, origin.requestId, patient(origin)),
    ).items;
    if (accounts.length === 0) continue;
    const client_ids = [...new Set(accounts.map(({ client_id }) => client_id))].join(',');
    const clients = requireData(
      await forwarder.query('list_clients', { client_ids, ...page }, origin.requestId, patient(origin)),
    ).items;
    const byId = new Map(clients.map((client) => [client.client_id, clientName(client)]));
    for (const { account_id, client_id } of accounts) {
      const name = byId.get(client_id);
      if (name !== undefined) names.set(account_id, name);
    }
  }
  return names;
}
