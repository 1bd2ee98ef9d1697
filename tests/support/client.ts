import { randomUUID } from 'node:crypto';
import { connect } from 'node:net';
import { expect } from 'vitest';
import type { StatusTransition } from '#libs/contracts/account-status.ts';
import type { Account } from '#libs/contracts/accounts.ts';
import type { ApiKey } from '#libs/contracts/api-keys.ts';
import type { Client } from '#libs/contracts/clients.ts';
import type { Entry } from '#libs/contracts/entries.ts';
import type { Transaction } from '#libs/contracts/transactions.ts';
import type { Transfer } from '#libs/contracts/transfers.ts';
import { checkDocumented } from './documented.ts';

/**
 * A small REST client on fetch for end-to-end tests. It adds only the credentials and, if there is a body,
 * Content-Type. A body can be raw text, so that a test controls every character. It checks that OpenAPI documents the
 * status and code of every response.
 */

/** A resource as in REST: money as JSON numbers. */
type Rest<T> = {
  [K in keyof T]: K extends 'balance' | 'available_balance' | 'amount' | 'balance_after' ? number : T[K];
};
export type RestAccount = Rest<Account>;
export type RestTransaction = Rest<Transaction>;
export type RestTransfer = Rest<Transfer>;
export type RestEntry = Rest<Entry>;
export type RestClient = Client;
export type RestTransition = StatusTransition;
export type RestKey = ApiKey & { api_key?: string };

export interface ErrorBody {
  status: string;
  message: string;
  code: string;
  request_id: string;
  errors?: { field: string; code: string; message: string }[];
  details?: Record<string, string>;
}

export class Answer {
  readonly status: number;
  readonly headers: Headers;
  readonly text: string;

  constructor(status: number, headers: Headers, text: string) {
    this.status = status;
    this.headers = headers;
    this.text = text;
  }

  /** The body as JSON. */
  get body(): unknown {
    return JSON.parse(this.text);
  }

  /** Returns `data` of a success envelope. */
  data<T = Record<string, unknown>>(): T {
    return (this.body as { data: T }).data;
  }

  list<T = Record<string, unknown>>(): T[] {
    return this.data<T[]>();
  }

  get error(): ErrorBody {
    return this.body as ErrorBody;
  }

  header(name: string): string | null {
    return this.headers.get(name);
  }

  /** Returns the path and query of Link rel="next", or undefined on the last page. */
  get next(): string | undefined {
    const link = /<([^>]+)>;\s*rel="next"/.exec(this.header('link') ?? '')?.[1];
    if (link === undefined) return undefined;
    const url = new URL(link, 'http://localhost');
    return url.pathname + url.search;
  }
}

export type HeaderFields = Record<string, string>;
const timeoutMs = 20_000;

export class Api {
  readonly #baseUrl: () => string;
  readonly #credentials: () => HeaderFields;

  constructor(baseUrl: () => string, credentials: () => HeaderFields) {
    this.#baseUrl = baseUrl;
    this.#credentials = credentials;
  }

  get baseUrl(): string {
    return this.#baseUrl();
  }

  /** Returns a client of the same gateway with other credentials. */
  with(credentials: HeaderFields): Api {
    return new Api(this.#baseUrl, () => credentials);
  }

  withKey(apiKey: string): Api {
    return this.with({ 'x-api-key': apiKey });
  }

  withToken(token: string): Api {
    return this.with({ authorization: `Bearer ${token}` });
  }

  /** Sends one request to this exact path, without encoding. */
  async send(
    method: string,
    path: string,
    options: { body?: unknown; raw?: string | Buffer<ArrayBuffer>; headers?: HeaderFields } = {},
  ): Promise<Answer> {
    const text = options.raw ?? (options.body === undefined ? undefined : JSON.stringify(options.body));
    const headers = {
      ...this.#credentials(),
      ...(text === undefined ? {} : { 'content-type': 'application/json' }),
      ...options.headers,
    };
    const response = await fetch(this.#baseUrl() + path, {
      method,
      headers,
      body: text,
      redirect: 'manual',
      signal: AbortSignal.timeout(timeoutMs),
    });
    const received = await response.text();
    checkDocumented(method, path, response.status, received);
    return new Answer(response.status, response.headers, received);
  }

  get(path: string, headers?: HeaderFields): Promise<Answer> {
    return this.send('GET', path, { headers });
  }

  post(path: string, body: unknown = {}, headers?: HeaderFields): Promise<Answer> {
    return this.send('POST', path, { body, headers });
  }

  patch(path: string, body: unknown): Promise<Answer> {
    return this.send('PATCH', path, { body });
  }

  /** Sends a POST with an Idempotency-Key. */
  once(key: string, path: string, body: unknown = {}): Promise<Answer> {
    return this.post(path, body, { 'idempotency-key': key });
  }

  /** Returns all items of a list, page by page. */
  async all<T>(path: string): Promise<T[]> {
    const items: T[] = [];
    for (let next: string | undefined = path; next !== undefined; ) {
      const page: Answer = await this.get(next);
      mustBe(page, 200);
      items.push(...page.list<T>());
      next = page.next;
    }
    return items;
  }

  // These are common requests. Each asserts its success.

  async client(fields: Record<string, unknown> = {}): Promise<RestClient> {
    return done<RestClient>(await this.post('/clients', { ...retail(), ...fields }));
  }

  async account(clientId: string, fields: Record<string, unknown> = {}): Promise<RestAccount> {
    return done<RestAccount>(
      await this.post('/accounts', { client_id: clientId, account_type: 'Savings', currency: 'USD', ...fields }),
    );
  }

  /** Opens an account of a new client. */
  async newAccount(fields: Record<string, unknown> = {}): Promise<RestAccount> {
    return this.account((await this.client()).client_id, fields);
  }

  async transact(
    accountId: string,
    type: 'Deposit' | 'Withdrawal',
    amount: number,
    fields: Record<string, unknown> = {},
  ): Promise<RestTransaction> {
    const answer = await this.post('/transactions', {
      account_id: accountId,
      transaction_type: type,
      amount,
      ...fields,
    });
    mustBe(answer, 201);
    return answer.body as RestTransaction;
  }

  async transfer(
    from: string,
    to: string,
    amount: number,
    fields: Record<string, unknown> = {},
  ): Promise<RestTransfer> {
    return done<RestTransfer>(
      await this.post('/transfers', { from_account_id: from, to_account_id: to, amount, ...fields }),
    );
  }

  async setStatus(accountId: string, status: string, reason?: string): Promise<RestAccount> {
    return done<RestAccount>(await this.post(`/accounts/${accountId}/status-transitions`, { status, reason }), 200);
  }

  async balance(accountId: string): Promise<number> {
    return done<RestAccount>(await this.get(`/accounts/${accountId}`), 200).balance;
  }

  async entries(accountId: string): Promise<RestEntry[]> {
    return this.all<RestEntry>(`/accounts/${accountId}/entries`);
  }

  async key(fields: { scopes: string[] } & Record<string, unknown>): Promise<RestKey & { api_key: string }> {
    return done(await this.post('/admin/api-keys', { name: 'test', ...fields }));
  }
}

function done<T>(answer: Answer, status = 201): T {
  mustBe(answer, status);
  return answer.data<T>();
}

/** Returns the minimal fields of a Retail client. */
export function retail(): Record<string, unknown> {
  return {
    client_type: 'Retail',
    first_name: 'Ada',
    last_name: 'Lovelace',
    email: 'ada@example.com',
    contact_number: '+254700000001',
  };
}

export function corporate(): Record<string, unknown> {
  return {
    client_type: 'Corporate',
    company_name: 'Analytical Engines Ltd',
    registration_number: 'C-1843',
    email: 'office@example.com',
    contact_number: '+442071234567',
  };
}

let phones = Math.floor(Math.random() * 1e8);

/** Returns a phone number that no other client has. */
export function newPhone(): string {
  phones += 1;
  return `+2547${String(phones).padStart(9, '0')}`;
}

export function newKey(): string {
  return `test-${randomUUID()}`;
}

export const unknownId = (prefix: string): string => `${prefix}_${randomUUID().replaceAll('-', '')}`;

/**
 * Throws if the response has another status. This is not an assertion, so that `eventually` retries while a service is
 * unavailable.
 */
function mustBe({ status, text }: Answer, expected: number): void {
  if (status !== expected) throw new Error(`the response is ${status} instead of ${expected}: ${text}`);
}

/** Asserts an error of the contract: its status, its code, and the form of the body. */
export function expectError(answer: Answer, status: number, code: string, message?: RegExp): ErrorBody {
  expect(
    { status: answer.status, code: (JSON.parse(answer.text || '{}') as { code?: string }).code },
    answer.text,
  ).toEqual({ status, code });
  const { error } = answer;
  const known = ['status', 'message', 'code', 'request_id', 'errors', 'details'];
  expect(Object.keys(error).filter((field) => !known.includes(field))).toEqual([]);
  expect(error).toMatchObject({
    status: 'error',
    message: expect.any(String),
    request_id: answer.header('x-request-id'),
  });
  expect(error.message.length).toBeGreaterThan(0);
  expect(answer.header('content-type')).toMatch(/^application\/json/);
  if (message) expect(error.message).toMatch(message);
  return error;
}

/**
 * Sends this text over a socket. Returns the bytes received until the server closed the connection or was silent for
 * ten seconds.
 */
export function rawHttp(baseUrl: string, text: string): Promise<string> {
  const { hostname, port } = new URL(baseUrl);
  return new Promise((resolve) => {
    const socket = connect(Number(port), hostname, () => socket.write(text));
    let received = '';
    const done = () => {
      socket.destroy();
      resolve(received);
    };
    socket.setTimeout(10_000, done);
    socket.on('data', (chunk: Buffer) => {
      received += chunk.toString('latin1');
    });
    socket.on('close', done);
    socket.on('error', done);
  });
}
