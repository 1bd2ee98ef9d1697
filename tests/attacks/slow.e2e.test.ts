import { connect, type Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type Answer, type Api, type RestAccount, retail } from '../support/client.ts';
import { useBank } from '../support/world.ts';

/**
 * Tests slow requests: connections that send headers or bodies a byte at a time are closed within 15 s, and other
 * callers are not affected.
 */
const world = useBank();
const { api } = world;
let account: RestAccount;
let drips: Drip[] = [];
beforeAll(async () => {
  account = await api.newAccount({ initial_deposit: 100 });
});
afterAll(() => drips.forEach(({ socket }) => socket.destroy()));

interface Drip {
  socket: Socket;
  received: string;
  /** Milliseconds from the connection until the gateway closed it. */
  cut: Promise<number>;
}

/** Sends `head` at once, then a character every half second until the connection is closed. */
function drip(head: string, drop: string): Drip {
  const { hostname, port } = new URL(api.baseUrl);
  const startedAt = performance.now();
  const socket = connect(Number(port), hostname, () => socket.write(head));
  const timer = setInterval(() => socket.writable && socket.write(drop), 500);
  const one: Drip = {
    socket,
    received: '',
    cut: new Promise((resolve) => {
      socket.on('close', () => {
        clearInterval(timer);
        resolve(performance.now() - startedAt);
      });
    }),
  };
  socket.on('data', (chunk: Buffer) => (one.received += chunk.toString()));
  // A write may happen after the close.
  socket.on('error', () => undefined);
  return one;
}

const line = 'POST /transactions HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n';
const withKey = () => `${line}x-api-key: ${world.bank.api_key}\r\n`;
const kinds: Record<string, () => Drip> = {
  'nothing at all': () => drip('', ''),
  'a request line': () => drip('GET /', 'a'),
  headers: () => drip(line, 'X: y\r\n'),
  'one long header': () => drip(`${line}X: `, 'y'),
  'a body': () => drip(`${withKey()}Content-Length: 60000\r\n\r\n{"a":"`, 'x'),
  chunks: () => drip(`${withKey()}Transfer-Encoding: chunked\r\n\r\n1\r\n{\r\n`, '1\r\n \r\n'),
  'an endless chunk extension': () => drip(`${withKey()}Transfer-Encoding: chunked\r\n\r\n1;`, 'a'),
  'a body without credentials': () => drip(`${line}Content-Length: 60000\r\n\r\n`, 'x'),
  trailers: () => drip(`${withKey()}Transfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n`, 'X: y\r\n'),
  'a second request': () => drip(`GET / HTTP/1.1\r\nHost: x\r\nx-api-key: ${world.bank.api_key}\r\n\r\nGET /`, 'a'),
};

/** Returns the 99th percentile of one caller's deposits, in ms. */
async function p99(caller: Api, requests = 60): Promise<number> {
  const times: number[] = [];
  for (let i = 0; i < requests; i++) {
    const startedAt = performance.now();
    await caller.transact(account.account_id, 'Deposit', 1);
    times.push(performance.now() - startedAt);
  }
  return times.sort((a, b) => a - b)[Math.floor(requests * 0.99)] ?? Number.NaN;
}

/** Differences below this are noise, because other processes use the same cores. */
const floorMs = 250;

const big = 64_000;
const fill = (unit: string) => unit.repeat(Math.floor(big / unit.length));
/** Bodies on which a badly written parser or pattern would take seconds. */
const dear: Record<string, () => string> = {
  'thousands of keys': () => `{${Array.from({ length: 6_000 }, (_, i) => `"k${i}":0`).join(',')}}`,
  'a key of 64 KB': () => `{"${fill('k')}":1}`,
  'empty lists': () => `{"scopes":[${fill('[],')}[]]}`,
  'thousands of wrong items': () => `{"name":"x","scopes":[${fill('"x",')}"x"]}`,
  'a number of 64 KB': () => `{"amount":${fill('1')}}`,
  'an exponent of 64 KB': () => `{"amount":1e${fill('9')}}`,
  'a fraction of 64 KB': () => `{"amount":0.${fill('0')}1}`,
  escapes: () => `{"first_name":"${fill('\\u00e9')}"}`,
  'combining marks': () => `{"first_name":"a${'\u0301'.repeat(30_000)}"}`,
  'an e-mail of dots': () => JSON.stringify({ ...retail(), email: `${fill('a.')}@${fill('b.').slice(0, 200)}` }),
  'an almost valid email address': () => JSON.stringify({ ...retail(), email: `a@${'a.'.repeat(125)}` }),
  'a phone of dashes': () => JSON.stringify({ ...retail(), contact_number: `+${fill('- ')}1` }),
  'a name of blanks': () => JSON.stringify({ ...retail(), first_name: fill(' ') }),
  'an almost valid time': () =>
    JSON.stringify({ name: 'x', scopes: ['clients:read'], expires_at: `2026-01-01T00:00:00.${fill('0')}` }),
};

/**
 * Returns the response, which must arrive within a second after the reply timeout; a gateway that
 * gets no CPU time may respond 503 first, and a caller whose bodies have cost too much gets 429.
 */
async function bounded(call: () => Promise<Answer>): Promise<Answer> {
  for (let attempt = 1; ; attempt++) {
    const startedAt = performance.now();
    const answer = await call();
    expect(performance.now() - startedAt).toBeLessThan(6_000);
    if (![429, 503].includes(answer.status) || attempt === 10) return answer;
    await sleep(1_000);
  }
}

describe('requests that are expensive to read', () => {
  it.each(Object.entries(dear))('%s are refused as fast as other errors', async (_, body) => {
    for (const path of ['/clients', '/transactions', '/admin/api-keys']) {
      expect([400, 413]).toContain((await bounded(() => api.send('POST', path, { raw: body() }))).status);
    }
  });

  it.each([
    '/clients?cursor=@',
    '/transactions?reference=@',
    '/transactions?min_amount=1@',
    '/transactions?from=@',
    '/clients?ussd_phone=+@',
    '/accounts/@',
    '/accounts/number/SAV-@/balance',
  ])('%s of 60 KB', async (path) => {
    expect([400, 404]).toContain((await bounded(() => api.get(path.replace('@', '0'.repeat(60_000))))).status);
  });
});

describe('200 slow connections', () => {
  it('do not delay another caller: its p99 is less than twice what it was', async () => {
    await p99(api, 50);
    const before = await p99(api);
    drips = Object.values(kinds).flatMap((make) => Array.from({ length: 20 }, make));
    // A stall of the machine may spoil one of the two measurements.
    const meanwhile = Math.min(await p99(api), await p99(api));
    expect(meanwhile).toBeLessThan(Math.max(2 * before, floorMs));
  }, 180_000);

  it('are all closed within 15 s with at most one response each, none of them a success', async () => {
    expect(drips).toHaveLength(200);
    const cuts = await Promise.all(drips.map(({ cut }) => cut));
    expect(Math.max(...cuts)).toBeLessThan(15_000);
    for (const [at, name] of Object.keys(kinds).entries()) {
      for (const { received } of drips.slice(20 * at, 20 * at + 20)) {
        const statuses = [...received.matchAll(/HTTP\/1\.1 (\d{3}) /g)].map(([, status]) => Number(status));
        if (name === 'a second request') expect([name, statuses]).toEqual([name, [200, 408]]);
        else if (name === 'a body without credentials') expect([name, statuses]).toEqual([name, [401]]);
        else expect([name, statuses]).toEqual([name, [408]]);
      }
    }
  });

  it('have no later effect: the next requests succeed', async () => {
    const deposits = await Promise.all(
      Array.from({ length: 50 }, () => api.transact(account.account_id, 'Deposit', 1)),
    );
    expect(new Set(deposits.map(({ status }) => status))).toEqual(new Set(['Completed']));
  });
});
