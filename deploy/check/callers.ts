import { randomInt, randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { expect } from './check.ts';

const thinkMs = 50;
const patienceMs = 15_000;
const accountsCount = 24;
/** No response, outcome unknown, or temporarily unavailable. */
const undecided = new Set([0, 202, 503, 504]);

/** Reports a final refusal, after which another attempt needs a new key. */
const isTooLate = ({ status, body }: Answer): boolean => status === 409 && body['code'] === 'deadline_exceeded';

/** One response of the API; the status is 0 if there was none. */
export interface Answer {
  status: number;
  body: { transaction_id?: string; data?: Record<string, unknown> } & Record<string, unknown>;
}

export async function call(
  baseUrl: string,
  apiKey: string,
  path: string,
  body?: unknown,
  key?: string,
): Promise<Answer> {
  try {
    const response = await fetch(baseUrl + path, {
      method: body === undefined ? 'GET' : 'POST',
      headers: {
        'x-api-key': apiKey,
        'content-type': 'application/json',
        ...(key === undefined ? {} : { 'idempotency-key': key }),
      },
      body: body === undefined ? undefined : JSON.stringify(body),
      signal: AbortSignal.timeout(patienceMs),
    });
    return { status: response.status, body: (await response.json()) as Answer['body'] };
  } catch (error) {
    return { status: 0, body: { message: String((error as { cause?: unknown }).cause ?? error) } };
  }
}

/**
 * Returns the data of the created resource. Repeats the request with the same key until the outcome is known, as
 * callers should.
 */
export async function make(
  baseUrl: string,
  apiKey: string,
  path: string,
  body: unknown,
): Promise<Record<string, unknown>> {
  let key = randomUUID();
  for (let attempt = 0; ; attempt++) {
    const answer = await call(baseUrl, apiKey, path, body, key);
    if (answer.status === 200 || answer.status === 201) return answer.body.data ?? answer.body;
    if (isTooLate(answer)) key = randomUUID();
    else
      expect(
        undecided.has(answer.status) && attempt < 600,
        `POST ${path} was answered ${answer.status} ${JSON.stringify(answer.body)}`,
      );
    await sleep(500);
  }
}

/**
 * Callers that make deposits, each with its own Idempotency-Key, and repeat them with the same key
 * until they succeed. Their responses are then compared with the accounts: an operation that was
 * lost or posted twice shows in a balance.
 */
export class Callers {
  readonly #baseUrl: string;
  readonly #apiKey: string;
  readonly #balances = new Map<string, number>();
  readonly #done: { key: string; account: string; minor: number; transaction: string }[] = [];
  /** Responses other than 2xx, by status. */
  #refused = new Map<string, number>();
  #lastFailure = 0;
  #lastSuccess = 0;
  #running = false;
  #loops: Promise<void>[] = [];

  private constructor(baseUrl: string, apiKey: string) {
    this.#baseUrl = baseUrl;
    this.#apiKey = apiKey;
  }

  /** Callers, each with its own accounts, which are enough to reach every partition. */
  static async create(baseUrl: string, apiKey: string): Promise<Callers> {
    const callers = new Callers(baseUrl, apiKey);
    const client = await make(baseUrl, apiKey, '/clients', {
      client_type: 'Retail',
      first_name: 'Ada',
      last_name: 'Lovelace',
      email: 'ada@example.com',
      contact_number: '+254700000001',
    });
    for (let i = 0; i < accountsCount; i++) {
      const account = await make(baseUrl, apiKey, '/accounts', {
        client_id: client['client_id'],
        account_type: 'Savings',
        currency: 'USD',
      });
      callers.#balances.set(String(account['account_id']), 0);
    }
    return callers;
  }

  start(count = 4): void {
    this.#running = true;
    this.#refused = new Map();
    this.#loops = Array.from({ length: count }, () => this.#loop());
    // The step that waits for this promise fails if it rejects. Without a handler here, the rejection would be
    // unhandled if that step had failed before.
    for (const loop of this.#loops) loop.catch(() => undefined);
  }

  /** Lets each caller complete its operation. Returns the counts since start. */
  async stop(): Promise<string> {
    this.#running = false;
    await Promise.all(this.#loops);
    const refused = [...this.#refused].map(([status, times]) => `${times} × ${status}`).join(', ');
    return `${this.#done.length} operations so far${refused === '' ? '' : `, answered otherwise meanwhile: ${refused}`}`;
  }

  /** The number of requests since start whose response was not 2xx. */
  get refusals(): number {
    return [...this.#refused.values()].reduce((sum, times) => sum + times, 0);
  }

  get operations(): number {
    return this.#done.length;
  }

  /** Waits until all responses have been successful for two seconds. Resolves with the time until then in ms. */
  async calm(timeoutMs = 90_000): Promise<number> {
    const began = performance.now();
    for (;;) {
      const now = performance.now();
      const quietSince = Math.max(this.#lastFailure, began);
      if (this.#lastSuccess > quietSince && now - quietSince > 2_000) return Math.max(0, this.#lastFailure - began);
      expect(
        now - began < timeoutMs,
        `callers still fail after ${timeoutMs / 1000} s: ${[...this.#refused].map(([status, times]) => `${times} × ${status}`).join(', ')}`,
      );
      await sleep(50);
    }
  }

  async #loop(): Promise<void> {
    const accounts = [...this.#balances.keys()];
    while (this.#running) {
      const account = accounts[randomInt(accounts.length)] ?? '';
      const minor = randomInt(1, 10_000);
      await this.#deposit(account, minor);
      await sleep(thinkMs);
    }
  }

  /** Repeats the request until it succeeds, because its outcome would otherwise remain unknown. */
  async #deposit(account: string, minor: number): Promise<void> {
    let key = randomUUID();
    for (let attempt = 0; attempt < 600; attempt++) {
      const answer = await call(
        this.#baseUrl,
        this.#apiKey,
        '/transactions',
        { account_id: account, transaction_type: 'Deposit', amount: minor / 100 },
        key,
      );
      const { status, body } = answer;
      if (status === 200 || status === 201) {
        this.#lastSuccess = performance.now();
        this.#done.push({ key, account, minor, transaction: String(body.transaction_id) });
        this.#balances.set(account, (this.#balances.get(account) ?? 0) + minor);
        return;
      }
      this.#lastFailure = performance.now();
      if (isTooLate(answer)) key = randomUUID();
      else expect(undecided.has(status), `${key} was answered ${status} ${JSON.stringify(body)}`);
      const what = status === 0 ? 'no answer' : String(status);
      this.#refused.set(what, (this.#refused.get(what) ?? 0) + 1);
      await sleep(200);
    }
    throw new Error(`the operation ${key} was not done after 600 attempts`);
  }

  /** Checks that each balance matches the responses, and that repeating a key returns the same transaction. */
  async expectPosted(): Promise<string> {
    for (const [account, minor] of this.#balances) {
      const { status, body } = await call(this.#baseUrl, this.#apiKey, `/accounts/${account}`);
      const balance = Math.round(Number(body.data?.['balance']) * 100);
      expect(
        status === 200 && balance === minor,
        `${account} holds ${balance} minor units (${status}), but the responses add up to ${minor}`,
      );
    }
    for (const { key, account, minor, transaction } of this.#done.slice(-20)) {
      const { body } = await call(
        this.#baseUrl,
        this.#apiKey,
        '/transactions',
        { account_id: account, transaction_type: 'Deposit', amount: minor / 100 },
        key,
      );
      expect(
        body.transaction_id === transaction,
        `${key} gave ${transaction} first, and ${body.transaction_id} when repeated`,
      );
    }
    return `${this.#done.length} operations, none lost, none posted twice`;
  }
}
