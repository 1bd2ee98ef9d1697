import { execFile } from 'node:child_process';
import { mkdtempSync, readFileSync } from 'node:fs';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { runToEnd } from '../../tools/local/child.ts';
import { packClient } from '../../tools/release/clients.ts';
import type { RestTransaction } from '../support/client.ts';
import { have } from '../support/programs.ts';
import { eventually, useBank } from '../support/world.ts';

/**
 * Generates the clients of other languages from docs/openapi.json, and runs the example of each against one bank. Between
 * them is a proxy that cuts off answers, replaces one, makes others late, and answers what a later version of the bank could.
 */
const world = useBank({ env: { FOUR_EYES: 'post_above', FOUR_EYES_KEYS: 'on', FOUR_EYES_LIMITS: 'KES:500000000' } });
const { api } = world;
const root = join(import.meta.dirname, '..', '..');
const examples = join(root, 'examples');

interface Language {
  name: string;
  folder: string;
  start: [command: string, ...args: string[]];
  env?: Record<string, string>;
  /** A file of the packed client. */
  source?: string;
  isPossible: boolean;
}
const hasJava = have('Java', 'Maven');
/** Those first that are ready first. */
const languages: Language[] = [
  {
    name: 'TypeScript',
    folder: 'typescript',
    start: [process.execPath, 'caller.ts'],
    isPossible: true,
  },
  {
    name: 'Go',
    folder: 'go',
    start: ['build/caller'],
    source: 'bank/bank.gen.go',
    isPossible: have('Go'),
  },
  {
    name: 'Python',
    folder: 'python',
    start: ['python3', 'caller.py'],
    env: { PYTHONPATH: 'build' },
    source: 'bank/api/transactions_api.py',
    isPossible: have('Java', 'Python'),
  },
  {
    name: 'Java',
    folder: 'java/client',
    start: ['java', '-cp', 'build/classes:build/jars/*', 'Caller'],
    source: 'src/main/java/bank/api/TransactionsApi.java',
    isPossible: hasJava,
  },
];

/** The 202s that a language has got, and how often each of its postings arrived, by reference. */
class Between {
  readonly pending: string[] = [];
  readonly keys = new Map<string, string[]>();
  readonly #server: Server;
  #cutsNext = false;

  constructor() {
    this.#server = createServer((request, response) => {
      this.#pass(request, response).catch(() => response.destroy());
    });
  }

  async start(): Promise<string> {
    await new Promise<void>((resolve) => this.#server.listen(0, '127.0.0.1', resolve));
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  stop(): void {
    this.#server.closeAllConnections();
    this.#server.close();
  }

  async #pass(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { method, url = '', headers } = request;
    const body = await text(request);
    const reference = method === 'POST' ? (JSON.parse(body) as { reference?: string }).reference : undefined;
    const seen = this.keys.get(reference ?? '') ?? [];
    this.keys.set(reference ?? '', [...seen, String(headers['idempotency-key'])]);
    const passed = Object.fromEntries(
      ['accept', 'content-type', 'idempotency-key', 'x-api-key'].flatMap((name) =>
        headers[name] === undefined ? [] : [[name, String(headers[name])]],
      ),
    );
    const send = () => fetch(api.baseUrl + url, { method, headers: passed, body: body || undefined });
    const first = seen.length === 0;
    const slow = first && reference?.startsWith('slow') === true;
    const cuts = this.#cutsNext;
    this.#cutsNext = first && reference === 'slow';
    const answer = await (slow ? withoutLedger(send) : send());
    const received = await answer.text();
    if (answer.status === 202) this.pending.push(reference ?? '');
    if (reference === 'cut' && first) {
      response.destroy();
      return;
    }
    if (cuts) {
      // Within the body, because Go repeats by itself what was cut off before it.
      response.writeHead(answer.status, { 'content-type': 'application/json', 'content-length': received.length });
      response.write(received.slice(0, 10), () => response.destroy());
      return;
    }
    if (reference === 'bad gateway' && first) {
      response.writeHead(502, { 'content-type': 'text/html' }).end('<h1>Bad Gateway</h1>');
      return;
    }
    const fromLater =
      method === 'GET' && /^\/transactions\/\w+$/.test(url)
        ? received.replace('"transaction_type":"Deposit"', '"transaction_type":"Fee","later":{"field":1}')
        : url.endsWith(`acc_${'f'.repeat(32)}`)
          ? received.replace('"account_not_found"', '"account_on_the_moon"')
          : received;
    for (const name of ['content-type', 'location', 'link', 'retry-after', 'etag']) {
      const value = answer.headers.get(name);
      if (value !== null) response.setHeader(name, value);
    }
    response.writeHead(answer.status).end(fromLater);
  }
}

async function withoutLedger<T>(call: () => Promise<T>): Promise<T> {
  const ledger = world.bank.process('ledger');
  ledger.kill('SIGSTOP');
  try {
    return await call();
  } finally {
    ledger.kill('SIGCONT');
  }
}

/** `generate.sh` of each folder runs once. Half of the optimizations make the generators start twice as fast. */
const generated = new Map<string, Promise<void>>();
const generate = (folder: string): Promise<void> => {
  const run = async () => {
    const { code, stdout, stderr } = await runToEnd('./generate.sh', [], {
      cwd: join(examples, folder),
      env: { ...process.env, JAVA_TOOL_OPTIONS: '-XX:TieredStopAtLevel=1' },
      timeoutMs: 400_000,
    });
    if (code !== 0) throw new Error(`${folder}/generate.sh: ${(stdout + stderr).slice(-3000)}`);
  };
  const done = generated.get(folder) ?? run();
  generated.set(folder, done);
  return done;
};

/** Packs the client in this folder as `npm run release` does, and returns the names of its files. */
async function packedFiles(folder: string): Promise<string[]> {
  const run = promisify(execFile);
  const file = join(mkdtempSync(join(tmpdir(), 'core-banking-packed-')), 'client.tgz');
  await packClient(run, folder.replace('/client', ''), join(examples, folder), file);
  return (await run('tar', ['-tzf', file])).stdout.split('\n');
}

const generateCSharp = () => generate('java/client').then(() => generate('csharp'));

/** All are generated at the same time; the examples run one after the other, because they stop the ledger. */
beforeAll(() => {
  for (const { folder, isPossible } of languages) if (isPossible) generate(folder).catch(() => undefined);
  if (hasJava) generateCSharp().catch(() => undefined);
});

const count = 1000;
let listed: string;
beforeAll(async () => {
  const { client_id } = await api.client();
  listed = (await api.account(client_id, { currency: 'KES' })).account_id;
  const transaction = { account_id: listed, transaction_type: 'Deposit', amount: 0.1 };
  const items = Array.from({ length: count }, () => ({ transaction }));
  const { status } = await api.post('/batches', { mode: 'independent', items }, { 'idempotency-key': 'thousand' });
  expect(status).toBe(200);
  await eventually(async () => (await api.get(`/accounts/${listed}`)).data()['balance'] === 100, 60_000);
});

const between: Between[] = [];
afterAll(() => {
  for (const one of between) one.stop();
});

describe('a caller with a generated client', () => {
  for (const { name, folder, start, env, source, isPossible } of languages) {
    it.runIf(isPossible)(
      `${name}: posts once through cut connections and a 502, waits after a 202, takes a refusal and an approval for what they are, pages, decodes exactly, and takes what it does not know`,
      async () => {
        await generate(folder);
        if (source !== undefined) expect(await packedFiles(folder)).toContain(`core-banking-client/${source}`);
        const proxy = new Between();
        between.push(proxy);
        const [command, ...args] = start;
        const { code, stdout, stderr } = await runToEnd(command, args, {
          cwd: join(examples, folder),
          env: {
            ...process.env,
            ...env,
            BANK_URL: await proxy.start(),
            BANK_API_KEY: world.bank.api_key,
            ACCOUNT_ID: listed,
          },
          timeoutMs: 120_000,
        });
        expect(code, stderr).toBe(0);
        const account_id = /^account (acc_\w+)$/m.exec(stdout)?.[1] ?? '';
        const transactions = await api.all<RestTransaction>(`/transactions?account_id=${account_id}`);
        const ids = (reference: string) =>
          transactions.filter((one) => one.reference === reference).map(({ transaction_id }) => transaction_id);
        expect(transactions.map(({ reference, status }) => `${reference} ${status}`).reverse()).toEqual([
          'cut Completed',
          'slow Completed',
          'bad gateway Completed',
          'too much Failed',
          'slow, too much Failed',
          'later Completed',
        ]);
        for (const [reference, sent] of Object.entries({ cut: 2, slow: 3, 'bad gateway': 2, 'slow, too much': 2 })) {
          const keys = proxy.keys.get(reference) ?? [];
          expect([reference, keys.length >= sent, new Set(keys).size]).toEqual([reference, true, 1]);
        }
        expect([...new Set(proxy.pending)]).toEqual(['slow', 'slow, too much', 'large']);
        const approval_id = /^approval (apr_\w+)$/m.exec(stdout)?.[1] ?? '';
        expect((await api.get(`/admin/approvals/${approval_id}`)).data()).toMatchObject({ status: 'Waiting' });
        expect(
          stdout
            .trim()
            .replaceAll(/ (null|None|<nil>|undefined)$/gm, '')
            .split('\n'),
        ).toEqual([
          `account ${account_id}`,
          `cut ${ids('cut')[0]} Completed`,
          `slow ${ids('slow')[0]} Completed`,
          `bad gateway ${ids('bad gateway')[0]} Completed`,
          'balance 400000.63',
          expect.stringMatching(new RegExp(`^pages ${count} 100(\\.0+)?$`)),
          `error 400 insufficient_funds ${ids('too much')[0]}`,
          `error 400 insufficient_funds ${ids('slow, too much')[0]}`,
          `approval ${approval_id}`,
          'error 404 account_not_found',
          'error 401 invalid_credentials',
          'error 404 account_on_the_moon',
          'type Fee',
        ]);
      },
      480_000,
    );
  }

  it.runIf(hasJava)(
    'C#: the client is generated, with amounts as decimal and the key as the first optional parameter (no .NET compiles it)',
    async () => {
      await generateCSharp();
      expect(await packedFiles('csharp')).toContain('core-banking-client/src/CoreBanking/Api/TransactionsApi.cs');
      const read = (file: string) => readFileSync(join(examples, 'csharp/build/src/CoreBanking', file), 'utf8');
      const account = read('Model/Account.cs');
      expect(account).toContain('public decimal Balance {');
      expect(account).toContain('public string Status {');
      expect(read('Model/ErrorBody.cs')).toContain('public string Code {');
      expect(read('Api/TransactionsApi.cs')).toContain(
        'CreateTransactionWithHttpInfoAsync(CreateTransactionRequest createTransactionRequest, string? idempotencyKey = default',
      );
    },
    480_000,
  );
});
