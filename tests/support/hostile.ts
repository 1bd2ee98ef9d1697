import { connect } from 'node:net';
import { afterAll, beforeAll, expect } from 'vitest';
import { endpoints } from '#libs/contracts/endpoints.ts';
import { type ErrorBody, errorBodySchema, errorCodes } from '#libs/contracts/errors.ts';
import { readOutbox } from '#libs/postgres/outbox/test/test-outbox.ts';
import { type Answer, type Api, unknownId } from './client.ts';
import type { World } from './world.ts';

/**
 * Shared by tests of hostile input: text that an error body must never contain, data that must not change, and raw
 * connections.
 */

/** Text of drivers, libraries, stack traces, files, and SQL. */
const leaks = [
  /\bat \S+ \(/,
  /\bat (async |file:|\/)/,
  /node_modules|node:internal|file:\/\//,
  /\.(ts|js|mjs|sql):\d+/,
  /\/(work|home|usr|root|tmp)\//,
  /\b(zod|fastify|kafkajs|lossless|undici|postgres|pg_|psql|llhttp)\b/i,
  /\b(TypeError|RangeError|SyntaxError|ReferenceError|ECONN\w+|ERR_\w+|FST_\w+|HPE_\w+|SQLSTATE)\b/,
  /\b(select .* from|insert into|update .* set|delete from|violates|constraint|relation "|invalid input syntax|out of range)\b/i,
  /\[object Object\]|undefined|\bNaN\b/,
];

/** Asserts the common error body, the status of its code, and that it reveals no internals. */
export function checkErrorBody(status: number, text: string): ErrorBody {
  const body = errorBodySchema.strict().parse(JSON.parse(text));
  expect(status, text).toBe(errorCodes[body.code].status);
  for (const leak of leaks) expect(text).not.toMatch(leak);
  return body;
}

/** Asserts a refusal: its status (never 5xx) and body. Returns the body. */
export function expectRefused(answer: Answer, status: number, code?: string): ErrorBody {
  expect(answer.status, answer.text).toBe(status);
  const body = checkErrorBody(answer.status, answer.text);
  if (code !== undefined) expect(body.code, answer.text).toBe(code);
  expect(body.request_id).toBe(answer.header('x-request-id'));
  expect(answer.header('content-type')).toBe('application/json; charset=utf-8');
  expect(answer.header('www-authenticate') !== null, 'WWW-Authenticate belongs to 401 and 403').toBe(
    status === 401 || status === 403,
  );
  return body;
}

/**
 * Asserts a 400 with exactly these violations, `[field, code]`, in any order, each with a message.
 */
export function expectViolations(answer: Answer, expected: [field: string, code: string][]): void {
  const { errors, message } = expectRefused(answer, 400);
  expect(errors?.map(({ field, code }) => [field, code]).sort(), answer.text).toEqual([...expected].sort());
  for (const violation of errors ?? []) expect(violation.message).toMatch(/\S/);
  expect(message).toMatch(/\S/);
}

const counted = [
  'v_accounts',
  'v_transactions',
  'v_entries',
  'commands',
  'accounts.clients',
  'accounts.accounts',
  'accounts.status_transitions',
  'accounts.api_keys',
  'accounts.approvals',
  'accounts.commands',
];

/** Returns the numbers of all rows and messages that a request can add. */
export async function footprint(world: World): Promise<Record<string, unknown>> {
  const columns = counted.map((name) => `(select count(*)::int from ${name}) as "${name}"`);
  const [row] = await world.sql(
    `select ${columns.join(', ')}, (select coalesce(sum(balance_minor), 0)::text from v_accounts) as balances`,
  );
  // A refused request adds an audit record and its event, and nothing else.
  const told = await Promise.all(
    ['ledger.outbox', 'accounts.outbox'].map(async (name) => [
      name,
      (await readOutbox(world.pool, name)).filter(({ topic }) => topic !== 'audit').length,
    ]),
  );
  return { ...row, ...Object.fromEntries(told) };
}

/** Asserts that the tests of the surrounding `describe` create, change, and send nothing. */
export function expectNothingDone(world: World): void {
  let before: Record<string, unknown>;
  beforeAll(async () => {
    before = await footprint(world);
  });
  afterAll(async () => {
    expect(await footprint(world)).toEqual(before);
    await world.expectBooksInOrder();
  });
}

export interface RawAnswer {
  status: number;
  head: string;
  body: string;
}

/**
 * Writes bytes to a new connection. Returns the final responses (without 1xx) in order, and whether the server closed
 * the connection. Ends when it is closed, after `quietMs` of silence after a response, or after ten seconds. A
 * response with `Connection: close` is followed by the end of the connection, so it is waited for.
 * `halfClose`: the caller ends its side.
 */
export function exchange(
  baseUrl: string,
  bytes: string,
  { quietMs = 300, halfClose = false } = {},
): Promise<{ answers: RawAnswer[]; closed: boolean }> {
  const { hostname, port } = new URL(baseUrl);
  return new Promise((resolve) => {
    const socket = connect(Number(port), hostname, () =>
      halfClose ? socket.end(bytes, 'latin1') : socket.write(bytes, 'latin1'),
    );
    let received = '';
    let quiet: NodeJS.Timeout | undefined;
    const end = (closed: boolean) => {
      clearTimeout(quiet);
      clearTimeout(bound);
      socket.destroy();
      resolve({ answers: splitAnswers(received), closed });
    };
    const bound = setTimeout(() => end(false), 10_000);
    socket.on('data', (chunk: Buffer) => {
      received += chunk.toString('latin1');
      clearTimeout(quiet);
      const latest = splitAnswers(received).at(-1);
      if (latest !== undefined && !/\r\nconnection: close/i.test(latest.head))
        quiet = setTimeout(() => end(false), quietMs);
    });
    socket.on('close', () => end(true));
    socket.on('error', () => undefined);
  });
}

function splitAnswers(text: string): RawAnswer[] {
  const answers: RawAnswer[] = [];
  for (let rest = text; rest !== ''; ) {
    const at = rest.indexOf('\r\n\r\n');
    if (at < 0) break;
    const head = rest.slice(0, at);
    const status = Number(/^HTTP\/1\.1 (\d{3}) /.exec(head)?.[1] ?? Number.NaN);
    const length = Number(/\r\ncontent-length: (\d+)/i.exec(head)?.[1] ?? 0);
    const body = Buffer.from(rest.slice(at + 4, at + 4 + length), 'latin1').toString();
    rest = rest.slice(at + 4 + length);
    if (status >= 200 || Number.isNaN(status)) answers.push({ status, head, body });
  }
  return answers;
}

const ids: Record<string, string> = {
  client_id: unknownId('cli'),
  account_id: unknownId('acc'),
  transaction_id: unknownId('txn'),
  transfer_id: unknownId('trf'),
  key_id: unknownId('key'),
  dead_letter_id: unknownId('dlt'),
  accountNumber: 'SAV-0000000000',
};

/** Returns every row of the endpoints table, with its path filled with unknown ids. */
export const everyEndpoint = Object.entries(endpoints).map(([name, endpoint]) => ({
  name,
  method: endpoint.method,
  scope: endpoint.scope,
  path: endpoint.path.replace(/:(\w+)/g, (_, id: string) => ids[id] ?? id),
}));

/** Returns texts for `it.each`, each with a name that fits into a line. */
export function named(texts: string[]): [name: string, text: string][] {
  return texts.map((text) => [text.length > 50 ? `${text.slice(0, 20)}… of ${text.length}` : text, text]);
}

/** Sends a POST with this exact text. */
export function postRaw(
  api: Api,
  path: string,
  raw: string | Buffer<ArrayBuffer>,
  headers: Record<string, string> = {},
): Promise<Answer> {
  return api.send('POST', path, { raw, headers });
}
