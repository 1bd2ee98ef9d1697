import type { FastifyInstance, FastifyRequest } from 'fastify';

/** Numbers are given as their source text, so that no digit of an amount is lost. */
interface ApiAnswer<T> {
  data: T;
  /** The cursor of the next page of a list. */
  next: string | undefined;
  /** The ETag, if there is one. */
  etag?: string | undefined;
  /** For a list without an index: reports whether all rows were scanned. */
  complete?: boolean | undefined;
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
const parse = JSON.parse as (text: string, reviver: Reviver) => unknown;

export type Api = ReturnType<typeof createApi>;

/**
 * Creates the access to the public REST API, which is called within this process with the person's own token. The
 * dashboard has no other access to data, so the checks, scopes, limits, audit, and errors of the API apply.
 */
export function createApi(app: FastifyInstance, request: FastifyRequest, token: string) {
  const send = (method: 'GET' | 'POST' | 'PATCH', url: string, headers: Record<string, string>, payload?: string) =>
    app.inject({
      method,
      url,
      payload,
      headers: {
        host: request.headers.host ?? 'dashboard',
        authorization: `Bearer ${token}`,
        'x-request-id': request.id,
        ...headers,
      },
      remoteAddress: request.ip,
    });
  const call = async <T>(...sent: Parameters<typeof send>): Promise<ApiAnswer<T>> => {
    const answer = await send(...sent);
    const body = parse(answer.payload, (_key, value, { source }) => (typeof value === 'number' ? source : value)) as {
      data: T;
      complete?: boolean;
    } & ApiProblem;
    if (answer.statusCode >= 300) throw new ApiRefused(answer.statusCode, body);
    // POST /transactions returns the Transaction without `data` (contract: envelope-3).
    return {
      data: 'data' in body ? body.data : (body as T),
      next: nextCursor(answer.headers.link),
      etag: answer.headers.etag?.toString(),
      complete: body.complete,
    };
  };
  const write = <T>(method: 'POST' | 'PATCH', path: string, body: object, headers: Record<string, string>) =>
    call<T>(method, path, { 'content-type': 'application/json', ...headers }, JSON.stringify(body));
  return {
    get: <T>(path: string) => call<T>('GET', path, {}),
    /** Returns a page of the API unchanged, with its content policy. */
    async getHtml(path: string): Promise<{ text: string; policy: string }> {
      const answer = await send('GET', path, { accept: 'text/html' });
      if (answer.statusCode >= 300) throw new ApiRefused(answer.statusCode, JSON.parse(answer.payload) as ApiProblem);
      return { text: answer.payload, policy: String(answer.headers['content-security-policy']) };
    },
    /** With an idempotency key, sending a form twice has one effect. */
    post: <T>(path: string, body: object, key?: string) =>
      write<T>('POST', path, body, key === undefined ? {} : { 'idempotency-key': key }),
    /** `ifMatch`: the only version to which the change applies. */
    patch: <T>(path: string, body: object, ifMatch?: string) =>
      write<T>('PATCH', path, body, ifMatch === undefined ? {} : { 'if-match': ifMatch }),
  };
}

function nextCursor(link: unknown): string | undefined {
  const url = typeof link === 'string' ? /<([^>]*)>; rel="next"/.exec(link)?.[1] : undefined;
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

/** Returns undefined if the API refuses, for a part without which a page is shown nevertheless. */
export async function known<T>(answer: Promise<T>): Promise<T | undefined> {
  try {
    return await answer;
  } catch (error) {
    if (error instanceof ApiRefused) return undefined;
    throw error;
  }
}
