import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { bankDay } from '#libs/service/formats.ts';
import {
  type ApprovalNeededError,
  type Bank,
  BankError,
  clientCredentials,
  createBank,
  type DayLine,
  NoAnswerError,
} from '../../clients/typescript/index.ts';
import { MAIN_CLIENT } from '../../tools/local/bank.ts';
import { type RestTransaction, retail } from '../support/client.ts';
import { Proxy } from '../support/proxy.ts';
import { staffEnv, staffToken } from '../support/staff.ts';
import { eventually, useBank } from '../support/world.ts';

/** Tests clients/typescript with a real bank, through a proxy that drops responses, and as an installed package. */
const world = useBank({ env: { ...staffEnv, FOUR_EYES: 'reverse' } });
const { api } = world;

let proxy: Proxy;
let bank: Bank;
let account_id: string;
beforeAll(async () => {
  proxy = await new Proxy({ target: api.baseUrl }).start();
  bank = createBank({ baseUrl: proxy.url, apiKey: world.bank.api_key });
  const { client_id } = await bank.createClient(retail() as Parameters<Bank['createClient']>[0]);
  ({ account_id } = await bank.openAccount({
    client_id,
    account_type: 'Savings',
    currency: 'USD',
    initial_deposit: 100,
  }));
});
afterAll(() => proxy?.stop());

const deposit = (amount: number) => ({ account_id, transaction_type: 'Deposit', amount }) as const;
const booked = async (amount: number) =>
  (await api.all<RestTransaction>(`/transactions?account_id=${account_id}&status=Completed`)).filter(
    (one) => one.amount === amount,
  ).length;
const failure = (call: Promise<unknown>): Promise<unknown> =>
  call.then(
    () => expect.fail('the call must fail'),
    (error: unknown) => error,
  );

describe('a call is executed once', () => {
  it('posts once although the connection breaks between request and response', async () => {
    await proxy.set({ kind: 'silent' });
    const call = bank.createTransaction(deposit(5));
    await eventually(async () => (await booked(5)) === 1);
    await proxy.set({ kind: 'cut' });
    await proxy.heal();
    expect(await call).toMatchObject({ status: 'Completed', amount: 5 });
    expect(await booked(5)).toBe(1);
  });

  it('waits after a 202 and returns the outcome or refusal as if it had been immediate', async () => {
    const ledger = world.bank.process('ledger');
    ledger.kill('SIGSTOP');
    const calls = [
      bank.createTransaction(deposit(6)),
      failure(bank.createTransaction({ ...deposit(1e6), transaction_type: 'Withdrawal' })),
      failure(bank.createTransaction(deposit(7), { deadlineMs: 8000 })),
    ] as const;
    const tooLate = await calls[2];
    expect(tooLate).toMatchObject({
      name: 'NoAnswerError',
      pending: { status: 'Pending', amount: 7 },
      idempotencyKey: expect.any(String),
    });
    ledger.kill('SIGCONT');
    expect(await calls[0]).toMatchObject({ status: 'Completed', amount: 6, currency: 'USD' });
    expect(await calls[1]).toMatchObject({
      name: 'BankError',
      status: 400,
      code: 'insufficient_funds',
      details: { transaction_id: expect.stringMatching(/^txn_/) },
    });
    const { idempotencyKey } = tooLate as NoAnswerError;
    expect(await bank.createTransaction(deposit(7), { idempotencyKey: idempotencyKey ?? '' })).toMatchObject({
      status: 'Completed',
    });
    expect([await booked(6), await booked(7)]).toEqual([1, 1]);
  });

  it('changes a client and a status by their ETag, and repeats the change of a client if the connection breaks', async () => {
    let etag = '';
    const onHeaders = (headers: Headers) => void (etag = headers.get('etag') ?? '');
    const { client_id } = await bank.getAccount({ account_id });
    await bank.getClient({ client_id }, { onHeaders });
    const ifMatch = etag;
    await proxy.set({ kind: 'silent' });
    const call = bank.updateClient({ client_id, address: 'Here' }, { ifMatch });
    await eventually(async () => (await api.get(`/clients/${client_id}`)).data()['address'] === 'Here');
    await proxy.set({ kind: 'cut' });
    await proxy.heal();
    expect(await call).toMatchObject({ address: 'Here' });
    expect(await failure(bank.updateClient({ client_id, address: 'There' }, { ifMatch }))).toMatchObject({
      code: 'version_mismatch',
    });
    await bank.getAccount({ account_id }, { onHeaders });
    const version = { ifMatch: etag };
    expect(await bank.changeAccountStatus({ account_id, status: 'Inactive' }, version)).toMatchObject({
      status: 'Inactive',
    });
    expect(await failure(bank.changeAccountStatus({ account_id, status: 'Active' }, version))).toMatchObject({
      code: 'version_mismatch',
    });
    await bank.changeAccountStatus({ account_id, status: 'Active' }, { ifMatch: '*' });
  });

  it('reports that a second person must approve, and the result when it is repeated', async () => {
    const [alice, bob] = ['alice', 'bob'].map((name) =>
      createBank({ baseUrl: proxy.url, token: staffToken(world.bank, name) }),
    );
    const { transaction_id } = await bank.createTransaction(deposit(9));
    const reversal = (idempotencyKey?: string) =>
      alice?.reverseTransaction(
        { transaction_id, reason: 'x' },
        idempotencyKey === undefined ? {} : { idempotencyKey },
      );
    const waits = await failure(reversal() ?? Promise.resolve());
    expect(waits).toMatchObject({
      name: 'ApprovalNeededError',
      approval: { action: 'reverse', status: 'Waiting' },
      idempotencyKey: expect.any(String),
    });
    const { approval, idempotencyKey } = waits as ApprovalNeededError;
    expect(await bob?.approveRequest({ approval_id: approval.approval_id })).toMatchObject({
      status: 'Approved',
      outcome: { status: 'success' },
    });
    expect(await reversal(idempotencyKey)).toMatchObject({ amount: 9, reverses_transaction_id: transaction_id });
  });

  it('repeats after a 504 with the same key until the outcome is known', async () => {
    const accounts = world.bank.process('accounts');
    const before = (await api.all('/clients')).length;
    accounts.kill('SIGSTOP');
    const impatient = createBank({ baseUrl: proxy.url, apiKey: world.bank.api_key, attempts: 1 });
    const call = bank.createClient({ ...retail(), last_name: 'Once' } as Parameters<Bank['createClient']>[0]);
    const unknown = await failure(impatient.createClient(retail() as Parameters<Bank['createClient']>[0]));
    expect(unknown).toMatchObject({
      status: 504,
      code: 'outcome_unknown',
      idempotencyKey: expect.any(String),
      details: { client_id: expect.any(String) },
    });
    accounts.kill('SIGCONT');
    const { idempotencyKey, details } = unknown as BankError;
    expect(
      await bank.createClient(retail() as Parameters<Bank['createClient']>[0], {
        idempotencyKey: idempotencyKey ?? '',
      }),
    ).toMatchObject({ client_id: details['client_id'] });
    expect(await call).toMatchObject({ last_name: 'Once' });
    expect((await api.all('/clients')).length).toBe(before + 2);
  });

  it('repeats after a 408, for which the bank had not received the whole request, with the same key', async () => {
    await proxy.set({ kind: 'truncate' });
    const options = { baseUrl: proxy.url, apiKey: world.bank.api_key, attemptTimeoutMs: 40_000 };
    const booking = createBank(options).createTransaction(deposit(11));
    const refused = await failure(createBank({ ...options, attempts: 1 }).createTransaction(deposit(11.5)));
    expect(refused).toMatchObject({ status: 408, code: 'request_timeout' });
    await proxy.heal();
    expect(await booking).toMatchObject({ status: 'Completed', amount: 11 });
    expect([await booked(11), await booked(11.5)]).toEqual([1, 0]);
  });

  it('aborts with its signal, also while waiting', async () => {
    await proxy.set({ kind: 'cut' });
    const stop = new AbortController();
    const call = failure(bank.getAccount({ account_id }, { signal: stop.signal }));
    stop.abort('enough');
    expect(await call).toBe('enough');
    expect(await failure(bank.getAccount({ account_id }, { deadlineMs: 300 }))).toBeInstanceOf(NoAnswerError);
    await proxy.heal();
    expect(await failure(bank.getAccount({ account_id }, { signal: AbortSignal.abort('never') }))).toBe('never');
  });
});

describe('responses', () => {
  it('lists are paged automatically', async () => {
    for (let n = 0; n < 5; n++) await bank.createTransaction(deposit(0.01));
    const sizes: number[] = [];
    for await (const page of bank.listEntries({ account_id, limit: 2, order: 'asc' }).pages()) sizes.push(page.length);
    expect(sizes.length).toBeGreaterThanOrEqual(3);
    const sequences: number[] = [];
    for await (const { sequence } of bank.listEntries({ account_id, limit: 2, order: 'asc' })) sequences.push(sequence);
    expect(sequences).toEqual(sequences.map((_, index) => index + 1));
    expect(sequences.length).toBe(sizes.reduce((sum, size) => sum + size, 0));
    expect(await bank.listEntries({ account_id, limit: 2, order: 'asc' }).toArray(3)).toMatchObject([
      { sequence: 1 },
      { sequence: 2 },
      { sequence: 3 },
    ]);
    const statement = await bank.getStatement({ account_id, limit: 3 }).toArray();
    expect(statement.flatMap(({ entries }) => entries)).toHaveLength(statement[0]?.entry_count ?? 0);
    const types: (string | null)[] = [];
    const onHeaders = (headers: Headers) => void types.push(headers.get('content-type'));
    const parts: Uint8Array[] = [];
    for await (const part of bank.getStatementXml({ account_id, on: '2026-01-31' }, { onHeaders })) parts.push(part);
    expect(Buffer.concat(parts).toString()).toContain(`<Id>${statement[0]?.account_number}-2026-01-31</Id>`);
    expect(await bank.getStatementHtml({ account_id, on: '2026-01-31' }, { onHeaders })).toMatch(/^<!doctype html>/i);
    for await (const _line of bank.listBalances({}, { onHeaders }));
    expect(types).toEqual(['application/xml; charset=utf-8', 'text/html; charset=utf-8', 'application/x-ndjson']);
  });

  it('files of any length are read line by line, or as the bytes whose hash is that of the closed day', async () => {
    const day = bankDay(Date.now() - 86_400_000);
    await bank.createTransaction({ ...deposit(3), effective_date: day });
    const closing = await bank.closeDay({ date: day });
    const hash = createHash('sha256');
    for await (const chunk of bank.listDayLines({ date: day }).bytes()) hash.update(chunk);
    expect(hash.digest('hex')).toBe(closing.accounts_sha256);
    const own: DayLine[] = [];
    for await (const line of bank.listDayLines({ date: day })) if (line.account_id === account_id) own.push(line);
    expect(own).toMatchObject([{ opening: '0.00', closing: '3.00', sum: '3.00', count: 1 }]);
    for await (const { account_id: id, balance } of bank.listBalances({ on: day, currency: 'USD' }))
      if (id === account_id) expect(balance).toBe('3.00');
    const csv: string[] = [];
    for await (const chunk of bank.listBalances({ on: day }).bytes('text/csv')) csv.push(Buffer.from(chunk).toString());
    expect(csv.join('')).toContain(`\n${account_id},`);
    const unknown = bank.listDayLines({ date: '2020-01-01' });
    expect(await failure(unknown[Symbol.asyncIterator]().next())).toMatchObject({ code: 'day_not_found' });
    // The file is abandoned after its first line, so that the next one is not the second at a time.
    for await (const _line of bank.listBalances()) break;
    await eventually(async () => (await bank.listBalances()[Symbol.asyncIterator]().next()).done === false);
  });

  it('a file that breaks off, or stops, is an error after its last complete line', async () => {
    const [line, half] = ['{"account_id":"acc_1"}\n', '{"account_id":"ac'];
    let end: 'cut' | 'none' | 'early' = 'cut';
    const server = createServer((_request, response) => {
      response.writeHead(200).write(line + half);
      if (end !== 'none') setTimeout(() => (end === 'cut' ? response.destroy() : response.end()), 100);
    });
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    const baseUrl = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    const options = { baseUrl, apiKey: 'any', attemptTimeoutMs: 500 };
    for (const [kind, message] of [
      ['cut', 'broke off: '],
      ['none', 'broke off: no part within 500 ms'],
      ['early', 'ends within a line'],
    ] as const) {
      end = kind;
      const lines = createBank(options).listBalances()[Symbol.asyncIterator]();
      expect(await lines.next()).toEqual({ done: false, value: { account_id: 'acc_1' } });
      expect(await failure(lines.next())).toMatchObject({
        name: 'NoAnswerError',
        message: expect.stringContaining(`the file from ${baseUrl} ${message}`),
      });
    }
    server.closeAllConnections();
    server.close();
  });

  it('errors have a code', async () => {
    const error = await failure(
      bank.createTransaction({ account_id, transaction_type: 'Deposit', amount: 0.001, currency: 'USD' }),
    );
    expect(error).toBeInstanceOf(BankError);
    expect(error).toMatchObject({
      status: 400,
      code: 'invalid_amount_precision',
      request_id: expect.any(String),
      errors: [{ field: 'amount', code: 'invalid_amount_precision' }],
    });
    expect(await failure(bank.getAccount({ account_id: '../clients' }))).toMatchObject({ code: 'account_not_found' });
    expect(() => bank.getAccount({ account_id: '..' })).toThrow('account_id is missing');
  });

  it('tokens are accepted, and renewed if the bank refuses one', async () => {
    const provider = clientCredentials({
      tokenEndpoint: `${world.bank.issuer}/token`,
      clientId: MAIN_CLIENT,
      clientSecret: process.env['TEST_CLIENT_SECRET'] ?? '',
      scope: 'accounts:read',
    });
    const asked: boolean[] = [];
    const token = async (renew: boolean) => (asked.push(renew), renew ? await provider(renew) : 'stale');
    expect(await createBank({ baseUrl: proxy.url, token }).getAccount({ account_id })).toMatchObject({ account_id });
    expect(asked).toEqual([false, true]);
    expect(await provider(false)).toBe(await provider(false));
    expect(await failure(createBank({ baseUrl: proxy.url, token: provider }).listClients().toArray())).toMatchObject({
      status: 403,
      code: 'insufficient_scope',
    });
    expect(await failure(createBank({ baseUrl: proxy.url, token: 'stale' }).health())).toMatchObject({
      status: 401,
      code: 'invalid_credentials',
    });
    const wrong = clientCredentials({
      tokenEndpoint: `${world.bank.issuer}/token`,
      clientId: MAIN_CLIENT,
      clientSecret: 'wrong',
    });
    expect(await failure(createBank({ baseUrl: proxy.url, token: wrong }).health())).toMatchObject({
      message: expect.stringContaining('invalid_client'),
    });
  });
});

it('the packed package compiles and runs in another project, with the program of its README', () => {
  const source = join(import.meta.dirname, '..', '..', 'clients', 'typescript');
  const [, program = ''] = /```ts\n([\s\S]*?)```/.exec(readFileSync(join(source, 'README.md'), 'utf8')) ?? [];
  const dir = mkdtempSync(join(tmpdir(), 'core-banking-client-'));
  try {
    const run = (command: string, ...args: string[]) =>
      execFileSync(command, args, {
        cwd: dir,
        encoding: 'utf8',
        env: { ...process.env, BASE_URL: api.baseUrl, API_KEY: world.bank.api_key },
      });
    execFileSync('npm', ['pack', '--silent', '--pack-destination', dir], { cwd: source });
    writeFileSync(join(dir, 'package.json'), JSON.stringify({ name: 'user', private: true, type: 'module' }));
    run('npm', 'install', '--offline', '--no-audit', '--no-fund', '--silent', './core-banking-client-1.0.0-rc.tgz');
    writeFileSync(join(dir, 'program.ts'), program);
    const bin = join(source, '..', '..', 'node_modules');
    run(
      join(bin, '.bin', 'tsc'),
      '--strict',
      '--target',
      'es2022',
      '--module',
      'nodenext',
      '--typeRoots',
      join(bin, '@types'),
      '--types',
      'node',
      'program.ts',
    );
    expect(run(process.execPath, 'program.js')).toMatch(
      /^Completed 1750\.75\ncredit 250\.75 1750\.75\ncredit 1500 1500\n400 insufficient_funds txn_[0-9a-f]{32}\n$/,
    );
  } finally {
    rmSync(dir, { recursive: true, force: true });
  }
});
