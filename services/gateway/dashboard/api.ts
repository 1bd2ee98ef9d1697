import type { FastifyInstance, FastifyRequest } from 'fastify';

/**
 * The public REST API, called inside of this process with the person's own access token. It is the
 * dashboard's only way to data: the same checks, scopes, limits, audit and errors as for everybody.
 */
export interface Api {
  get<T>(path: string): Promise<ApiAnswer<T>>;
  /** The answer of that media type, as it came. */
  getFile(path: string, type: string): Promise<Buffer>;
  /** `idempotencyKey` makes a form that is sent twice do its work once. */
  post<T>(path: string, body: object, idempotencyKey?: string): Promise<ApiAnswer<T>>;
  /** `ifMatch`: the version that the change is made to, and to no other. */
  patch<T>(path: string, body: object, ifMatch?: string): Promise<ApiAnswer<T>>;
}

/** Numbers are their source text: no digit of an amount is lost. */
interface ApiAnswer<T> {
  data: T;
  /** The cursor of the next page of a list. */
  next: string | undefined;
  /** Its version, where it has one. */
  etag?: string | undefined;
  /** Of a list that no index confines: whether it looked at everything. */
  complete?: boolean | undefined;
}

export interface ApiProblem {
  code: string;
  message: string;
  errors?: { field: string; code: string; message: string }[];
  details?: Record<string, unknown>;
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
    // A new Transaction is answered as it is, without a `data` around it (contract: Envelope).
    return {
      data: 'data' in body ? body.data : (body as T),
      next: nextCursor(answer.headers.link),
      etag: answer.headers.etag?.toString(),
      complete: body.complete,
    };
  };
  return {
    get: (path) => call('GET', path, {}),
    async getFile(path, type) {
      const answer = await send('GET', path, { accept: type });
      if (answer.statusCode >= 300) throw new ApiRefused(answer.statusCode, JSON.parse(answer.payload) as ApiProblem);
      return answer.rawPayload;
    },
    post: (path, body, idempotencyKey) =>
      call(
        'POST',
        path,
        {
          'content-type': 'application/json',
          ...(idempotencyKey === undefined ? {} : { 'idempotency-key': idempotencyKey }),
        },
        JSON.stringify(body),
      ),
    patch: (path, body, ifMatch) =>
      call(
        'PATCH',
        path,
        { 'content-type': 'application/json', ...(ifMatch === undefined ? {} : { 'if-match': ifMatch }) },
        JSON.stringify(body),
      ),
  };
}

function nextCursor(link: unknown): string | undefined {
  const url = typeof link === 'string' ? /<([^>]*)>; rel="next"/.exec(link)?.[1] : undefined;
  return url === undefined ? undefined : (new URL(url, 'http://dashboard').searchParams.get('cursor') ?? undefined);
}
