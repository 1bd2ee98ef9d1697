import { randomUUID } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { z } from 'zod';
import { ConfigError, loadConfig, url } from '#libs/service/config.ts';

/** Why a command did not do what it was asked; ends the process with that code. */
export class Failure extends Error {
  readonly exitCode: 1 | 2 | 3;

  constructor(exitCode: 1 | 2 | 3, message: string) {
    super(message);
    this.exitCode = exitCode;
  }
}

const cliConfig = z.object({
  BANK_URL: url('http', 'https').optional().describe('Base URL of the bank'),
  BANK_API_KEY: z.string().optional().describe('API key that the command line uses'),
  LOCAL_DIR: z.string().default(join(import.meta.dirname, '..', '.local')).describe('Where the local bank keeps connection.json'),
});

/** The bank to talk to, and the key. Throws a Failure that says what is missing. */
function connection(): { base_url: string; api_key: string } {
  try {
    const { BANK_URL: base_url, BANK_API_KEY: api_key, LOCAL_DIR } = loadConfig(cliConfig);
    if (base_url !== undefined && api_key !== undefined) return { base_url: base_url.replace(/\/$/, ''), api_key };
    if (base_url !== undefined || api_key !== undefined) throw new Failure(2, 'BANK_URL and BANK_API_KEY are given together, or neither');
    return JSON.parse(readFileSync(join(LOCAL_DIR, 'connection.json'), 'utf8')) as { base_url: string; api_key: string };
  } catch (error) {
    if (error instanceof ConfigError) throw new Failure(2, error.message);
    if (error instanceof Failure) throw error;
    throw new Failure(2, 'no bank: set BANK_URL and BANK_API_KEY, or start the local one (npm start)');
  }
}

const timeoutMs = 15_000;

interface Answer {
  data: unknown;
  /** Path and query of the next page. */
  next: string | undefined;
}

/** One request. Throws a Failure with the bank's own words where it refuses (1), or where there is no answer (3). */
async function send(method: string, path: string, body?: unknown): Promise<Answer> {
  const { base_url, api_key } = connection();
  const headers = { 'x-api-key': api_key, ...(body === undefined ? {} : { 'content-type': 'application/json', 'idempotency-key': randomUUID() }) };
  let response: Response;
  let text: string;
  try {
    response = await fetch(base_url + path, { method, headers, body: body === undefined ? null : JSON.stringify(body), redirect: 'error', signal: AbortSignal.timeout(timeoutMs) });
    text = await response.text();
  } catch (error) {
    throw new Failure(3, `no answer from ${base_url}: ${error instanceof Error ? String(error.cause ?? error.message) : 'unknown'}`);
  }
  const answer = parsed(text);
  if (!response.ok) throw new Failure(response.status < 500 ? 1 : 3, `${response.status} ${printable(answer.code ?? '')}: ${printable(answer.message ?? text.slice(0, 200))}`);
  const link = /<([^>]+)>;\s*rel="next"/.exec(response.headers.get('link') ?? '')?.[1];
  return { data: answer.data, next: link };
}

function parsed(text: string): { data?: unknown; code?: string; message?: string } {
  try {
    return JSON.parse(text) as { data?: unknown };
  } catch {
    return {};
  }
}

export async function get<T>(path: string): Promise<T> {
  return (await send('GET', path)).data as T;
}

export async function post<T>(path: string, body: unknown): Promise<T> {
  return (await send('POST', path, body)).data as T;
}

const pageSize = 500;

/** Up to `limit` items of a list, over as many pages as that takes. Filters that are undefined are left out. */
export async function list<T>(path: string, filters: Record<string, string | undefined>, limit: number): Promise<T[]> {
  const query = new URLSearchParams({ limit: String(Math.min(limit, pageSize)) });
  for (const [name, value] of Object.entries(filters)) if (value !== undefined) query.set(name, value);
  const items: T[] = [];
  for (let next: string | undefined = `${path}?${query}`; next !== undefined && items.length < limit;) {
    const page: Answer = await send('GET', next);
    items.push(...(page.data as T[]));
    next = page.next;
  }
  return items.slice(0, limit);
}

/** Text from outside, for a terminal: control characters, which could drive it, are shown as their code points. */
export function printable(text: string): string {
  return text.replace(/[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u202a-\u202e\u2066-\u2069]/g, (char) => `\\u${char.charCodeAt(0).toString(16).padStart(4, '0')}`);
}

export function print(text: string): void {
  process.stdout.write(`${printable(text)}\n`);
}

export function printJson(data: unknown): void {
  process.stdout.write(`${JSON.stringify(data, null, 2)}\n`);
}
