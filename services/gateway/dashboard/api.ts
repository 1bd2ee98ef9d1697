import type { FastifyInstance, FastifyRequest } from 'fastify';

/**
 * The public REST API, called inside of this process with the person's own access token. It is the dashboard's only way to
 * data: the same checks, scopes, limits, audit and errors as for everybody.
 */
export interface Api {
  get<T>(path: string): Promise<ApiAnswer<T>>;
  /** `idempotencyKey` makes a form that is sent twice do its work once. */
  post<T>(path: string, body: object, idempotencyKey?: string): Promise<ApiAnswer<T>>;
  patch<T>(path: string, body: object): Promise<ApiAnswer<T>>;
}

/** Numbers are their source text: no digit of an amount is lost. */
export interface ApiAnswer<T> {
  data: T;
  /** The cursor of the next page of a list. */
  next: string | undefined;
}

export interface ApiProblem {
  code: string;
  message: string;
  errors?: { field: string; code: string; message: string }[];
}

/** An answer other than success, made for people's eyes by the API itself. */
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
// In V8 since Node 21, not in the compiler's library yet.
const parse = JSON.parse as (text: string, reviver: Reviver) => unknown;

export function createApi(app: FastifyInstance, request: FastifyRequest, token: string): Api {
  const call = async <T>(method: 'GET' | 'POST' | 'PATCH', url: string, headers: Record<string, string>, payload?: string): Promise<ApiAnswer<T>> => {
    const answer = await app.inject({
      method,
      url,
      payload,
      headers: { host: request.headers.host ?? 'dashboard', authorization: `Bearer ${token}`, 'x-request-id': request.id, ...headers },
      remoteAddress: request.ip,
    });
    const body = parse(answer.payload, (_key, value, { source }) => (typeof value === 'number' ? source : value)) as { data: T } & ApiProblem;
    if (answer.statusCode >= 300) throw new ApiRefused(answer.statusCode, body);
    return { data: body.data, next: nextCursor(answer.headers.link) };
  };
  return {
    get: (path) => call('GET', path, {}),
    post: (path, body, idempotencyKey) =>
      call('POST', path, { 'content-type': 'application/json', ...(idempotencyKey === undefined ? {} : { 'idempotency-key': idempotencyKey }) }, JSON.stringify(body)),
    patch: (path, body) => call('PATCH', path, { 'content-type': 'application/json' }, JSON.stringify(body)),
  };
}

function nextCursor(link: unknown): string | undefined {
  const url = typeof link === 'string' ? /<([^>]*)>; rel="next"/.exec(link)?.[1] : undefined;
  return url === undefined ? undefined : (new URL(url, 'http://dashboard').searchParams.get('cursor') ?? undefined);
}
