import type { FastifyRequest } from 'fastify';
import { BankError, NoAnswerError } from '../../clients/typescript/errors.ts';
import { readFile } from '../../clients/typescript/lines.ts';
import { type Answer, type Fetch, type Request, send } from '../../clients/typescript/send.ts';

/** Numbers are given as their source text, so that no digit of an amount is lost. */
interface ApiAnswer<T> {
  data: T;
  /** The cursor of the next page of a list. */
  next: string | undefined;
  /** The ETag, if there is one. */
  etag?: string | undefined;
  /** True if the request had been executed before, so that this one did nothing. */
  replayed?: boolean | undefined;
  /** For a list without an index: reports whether all rows were scanned. */
  complete?: boolean | undefined;
}

/** A page or file of the API unchanged, with the headers that describe it. */
export interface ApiDocument {
  content: string | AsyncIterableIterator<Uint8Array>;
  headers: Record<string, string>;
}

export interface ApiProblem {
  code: string;
  message: string;
  errors?: { field: string; code: string; message: string }[];
  details?: Record<string, unknown>;
}

/** A response other than success, with the API's own message. */
export class ApiRefused extends Error {
  override name = 'ApiRefused';
  readonly status: number;
  readonly problem: ApiProblem;

  constructor(status: number, problem: ApiProblem) {
    super(problem.message);
    this.status = status;
    this.problem = problem;
  }
}

type Reviver = (key: string, value: unknown, context: { source?: string }) => unknown;
// Available since Node 21, but not yet in TypeScript's library.
const parseJson = JSON.parse as (text: string, reviver: Reviver) => unknown;
const parse = (text: string): unknown =>
  parseJson(text, (_key, value, { source }) => (typeof value === 'number' ? source : value));

/** The bank itself responds within 5 s, and makes a page for paper in a few more. */
const timeoutMs = 15_000;
/** More than any response: a page of a list has at most 1 MiB, a statement for paper some more; files have no limit. */
const maxResponseBytes = 32 * 1024 * 1024;

/** Connections are kept open between requests; that is fetch's default. */
const boundedFetch: Fetch = async (url, request) => {
  const response = await fetch(url, request);
  const { ok, status, headers, body } = response;
  return { ok, status, headers, body, text: () => readText(response) };
};

/** Returns the body. Rejects with a TypeError, like fetch, if it is too large. */
async function readText(response: Response): Promise<string> {
  const chunks: Uint8Array[] = [];
  let size = 0;
  for await (const chunk of response.body ?? []) {
    size += chunk.byteLength;
    if (size > maxResponseBytes) throw new TypeError(`the response has more than ${maxResponseBytes} bytes`);
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString();
}

export interface ApiOptions {
  /** The base URL of the REST API. */
  url: string;
  fetch?: Fetch;
}

export type Api = ReturnType<ReturnType<typeof createApi>>;

/**
 * Creates the access to the REST API, which is called with the person's own token. The dashboard has no other access to
 * data, so the checks, scopes, limits, audit, and errors of the API apply. The API learns the address of the browser from
 * X-Forwarded-For, and accepts it from the dashboard because TRUST_PROXY names it.
 */
export function createApi({ url, fetch: fetchOnce = boundedFetch }: ApiOptions) {
  return (caller: Pick<FastifyRequest, 'id' | 'ip'>, token: string) => {
    const fetch: Fetch = (target, request) =>
      fetchOnce(target, {
        ...request,
        headers: { ...request.headers, 'x-request-id': caller.id, 'x-forwarded-for': caller.ip },
      });
    const sender = { baseUrl: url, credentials: { token }, attempts: 1, attemptTimeoutMs: timeoutMs, fetch, parse };
    const patience = () => ({ endsAt: performance.now() + timeoutMs, signal: undefined });
    const once = (request: Request) => send(sender, request, patience());
    let isAsked = false;
    const answered = (request: Request): Promise<Answer> => {
      isAsked = true;
      return once(request)
        .catch((error: unknown) => (mayRepeat(request, error) ? once(request) : Promise.reject(error)))
        .catch((error: unknown) => Promise.reject(toRefusal(request, error)));
    };
    const call = async <T>(request: Request): Promise<ApiAnswer<T>> => {
      const { body, headers } = await answered(request);
      const { data, complete } = body as { data: T; complete?: boolean };
      return {
        // POST /transactions returns the Transaction without `data` (contract: envelope-3).
        data: 'data' in (body as object) ? data : (body as T),
        next: nextCursor(headers.get('link')),
        etag: headers.get('etag') ?? undefined,
        replayed: headers.get('idempotent-replayed') === 'true',
        complete,
      };
    };
    return {
      /** Asks the API about the token, unless this has asked something already. Throws if the session has ended. */
      checkToken: async (): Promise<unknown> => isAsked || call({ method: 'GET', path: '/' }),
      get: <T>(path: string) => call<T>({ method: 'GET', path }),
      async getPage(path: string): Promise<ApiDocument> {
        const { body, headers } = await answered({ method: 'GET', path, accept: 'text/html' });
        return { content: String(body), headers: described(headers) };
      },
      /**
       * Returns a file of any length as it arrives. Rejects if the API refuses it; a file that breaks off throws. It must
       * be read, or closed with `return`: until then, the API sends this person no other.
       */
      async getFile(path: string, accept: 'text/csv' | 'application/xml') {
        isAsked = true;
        const request = { method: 'GET', path, accept } as const;
        let headers = {};
        const file = readFile(sender, request, patience(), (given) => {
          headers = described(given);
        });
        let first: IteratorResult<Uint8Array, void> | undefined = await file
          .next()
          .catch((error: unknown) => Promise.reject(toRefusal(request, error)));
        // A generator around `file` would not close it before it is read.
        const content: AsyncIterableIterator<Uint8Array, void> = {
          async next() {
            const part = first ?? (await file.next());
            first = undefined;
            return part;
          },
          return: () => file.return(),
          [Symbol.asyncIterator]: () => content,
        };
        return { content, headers };
      },
      /** With an idempotency key, sending a form twice has one effect. */
      post: <T>(path: string, body: object, key?: string) =>
        call<T>({
          method: 'POST',
          path,
          body: JSON.stringify(body),
          ...(key !== undefined && { idempotencyKey: key }),
        }),
      put: <T>(path: string, body: object) => call<T>({ method: 'PUT', path, body: JSON.stringify(body) }),
      /** `ifMatch`: the only version to which the change applies. */
      patch: <T>(path: string, body: object, ifMatch?: string) =>
        call<T>({ method: 'PATCH', path, body: JSON.stringify(body), ...(ifMatch !== undefined && { ifMatch }) }),
    };
  };
}

/** The headers of a page or file that describe it. */
function described(headers: Headers): Record<string, string> {
  const given = ['content-type', 'content-disposition'].map((name) => [name, headers.get(name)] as const);
  return {
    ...Object.fromEntries(given.filter(([, value]) => value !== null)),
    'content-security-policy': headers.get('content-security-policy') ?? "default-src 'none'",
  };
}

/** Reports whether the connection was closed, as by a gateway that stops, and a second request has no second effect. */
function mayRepeat({ method, idempotencyKey }: Request, error: unknown): boolean {
  const isClosed = error instanceof NoAnswerError && error.cause instanceof TypeError;
  return isClosed && (method === 'GET' || idempotencyKey !== undefined);
}

const away = { code: 'service_unavailable', message: 'the bank cannot answer now' };
const unknown = { code: 'outcome_unknown', message: 'Look whether it was done before you repeat it' };

function toRefusal({ method }: Request, error: unknown): unknown {
  if (error instanceof BankError) {
    const { status, code, message, errors, details } = error;
    return new ApiRefused(status, { code, message, errors, details });
  }
  if (!(error instanceof NoAnswerError)) return error;
  const refused = method === 'GET' || isUnsent(error) ? new ApiRefused(503, away) : new ApiRefused(504, unknown);
  refused.cause = error;
  return refused;
}

/** Reports whether no connection was made, so that the bank has not received the request. */
function isUnsent({ cause }: NoAnswerError): boolean {
  const { code } = (cause as { cause?: { code?: string } } | undefined)?.cause ?? {};
  return code === 'ECONNREFUSED' || code === 'ENOTFOUND' || code === 'EAI_AGAIN' || code === 'UND_ERR_CONNECT_TIMEOUT';
}

function nextCursor(link: string | null): string | undefined {
  const url = /<([^>]*)>; rel="next"/.exec(link ?? '')?.[1];
  return url === undefined ? undefined : (new URL(url, 'http://dashboard').searchParams.get('cursor') ?? undefined);
}

/** The number of concurrent API requests of one page, so that a large page does not slow down others. */
const atOnce = 8;

export async function inTurns<Item>(items: readonly Item[], work: (item: Item) => Promise<void>): Promise<void> {
  const rest = items.values();
  const worker = async () => {
    for (const item of rest) await work(item);
  };
  await Promise.all(Array.from({ length: atOnce }, worker));
}

/** Reads the rows with these ids, each id once and at most `size` of them in one request. */
export async function inGroups<Row>(
  ids: Iterable<string>,
  size: number,
  read: (group: string[]) => Promise<Row[]>,
): Promise<Row[]> {
  const wanted = [...new Set(ids)];
  const groups = Array.from({ length: Math.ceil(wanted.length / size) }, (_, i) =>
    wanted.slice(i * size, (i + 1) * size),
  );
  const found: Row[] = [];
  await inTurns(groups, async (group) => {
    found.push(...(await read(group)));
  });
  return found;
}

/**
 * Returns undefined if the API refuses, for a part without which a page is shown nevertheless. Throws if the session has
 * ended.
 */
export async function known<T>(answer: Promise<T>): Promise<T | undefined> {
  try {
    return await answer;
  } catch (error) {
    if (error instanceof ApiRefused && error.status !== 401) return undefined;
    throw error;
  }
}
