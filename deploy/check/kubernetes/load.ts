import { randomUUID } from 'node:crypto';
import { existsSync, writeFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';

/**
 * Callers in a pod of the cluster. They make deposits of 1 through the gateway's Service, each with its own
 * Idempotency-Key, until /tmp/stop exists. Then every request whose response was not 201 is repeated until it is, and
 * the balance must equal the number of keys. The last line is the result as JSON.
 */
const { BASE_URL = '', API_KEY = '', LANES = '4', PAUSE_MS = '200' } = process.env;
const repeatMs = 60_000;

interface Answer {
  /** The status is 0 if the connection broke, or no response arrived within 10 s. */
  status: number;
  ms: number;
  why: string;
}

async function call(
  method: string,
  path: string,
  body?: object,
  idempotencyKey: string = randomUUID(),
): Promise<Answer & { data: Record<string, unknown> }> {
  const startedAt = performance.now();
  const headers = { 'x-api-key': API_KEY, 'content-type': 'application/json', 'idempotency-key': idempotencyKey };
  try {
    const response = await fetch(BASE_URL + path, {
      method,
      headers: method === 'GET' ? { 'x-api-key': API_KEY } : headers,
      body: body && JSON.stringify(body),
      signal: AbortSignal.timeout(10_000),
    });
    const answer = (await response.json()) as { code?: string; data?: Record<string, unknown> };
    return {
      status: response.status,
      ms: performance.now() - startedAt,
      why: answer.code ?? '',
      data: answer.data ?? {},
    };
  } catch (error) {
    const { message, cause } = error as Error & { cause?: { code?: string } };
    return { status: 0, ms: performance.now() - startedAt, why: cause?.code ?? message, data: {} };
  }
}

/**
 * Repeats the request with one key until it succeeds, because the load starts together with the
 * bank.
 */
async function made(path: string, body: object, idField: string): Promise<string> {
  const key = randomUUID();
  for (const giveUpAt = performance.now() + repeatMs; ; await sleep(1000)) {
    const { status, why, data } = await call('POST', path, body, key);
    if (status === 201) return String(data[idField]);
    if (performance.now() > giveUpAt) throw new Error(`POST ${path}: ${status} ${why}`);
  }
}

const clientId = await made(
  '/clients',
  {
    client_type: 'Retail',
    first_name: 'Amina',
    last_name: 'Otieno',
    email: `${randomUUID()}@example.org`,
    contact_number: '+254700000001',
  },
  'client_id',
);
const accountId = await made(
  '/accounts',
  { client_id: clientId, account_type: 'Savings', currency: 'USD' },
  'account_id',
);

const deposit = (key: string) =>
  call('POST', '/transactions', { account_id: accountId, transaction_type: 'Deposit', amount: 1 }, key);
const answers = new Map<string, Answer>();
let lastAnswerAt = performance.now();
let longestGapMs = 0;

await Promise.all(
  Array.from({ length: Number(LANES) }, async () => {
    while (!existsSync('/tmp/stop')) {
      const key = randomUUID();
      const answer = await deposit(key);
      // The self-test plants this additional deposit, which the comparison with the balance must detect.
      if (existsSync('/tmp/book-twice')) await deposit(randomUUID());
      answers.set(key, answer);
      if (answer.status === 201) {
        longestGapMs = Math.max(longestGapMs, performance.now() - lastAnswerAt);
        lastAnswerAt = performance.now();
        if (answers.size > 20) writeFileSync('/tmp/under-way', '');
      }
      await sleep(Number(PAUSE_MS));
    }
  }),
);

const counts = (of: (answer: Answer) => string) =>
  Object.fromEntries([...Map.groupBy(answers.values(), of)].map(([name, group]) => [name, group.length]));
const open = [...answers].filter(([, { status }]) => status !== 201).map(([key]) => key);
const giveUpAt = performance.now() + repeatMs;
for (const key of open) {
  while ((await deposit(key)).status !== 201 && performance.now() < giveUpAt) await sleep(500);
}
const balance = (await call('GET', `/accounts/${accountId}`)).data['balance'];
const sorted = [...answers.values()].map(({ ms }) => ms).sort((a, b) => a - b);
const failed = [...answers.values()].filter(({ status }) => status !== 201 && status !== 202);
console.log(
  JSON.stringify({
    requests: answers.size,
    statuses: counts(({ status }) => String(status)),
    failed: failed.length,
    why: [...new Set(failed.map(({ status, why }) => `${status} ${why}`))],
    p50_ms: Math.round(sorted[Math.floor(sorted.length / 2)] ?? 0),
    p99_ms: Math.round(sorted[Math.floor(sorted.length * 0.99)] ?? 0),
    slowest_ms: Math.round(sorted.at(-1) ?? 0),
    longest_gap_ms: Math.round(longestGapMs),
    each_once: balance === answers.size,
  }),
);
