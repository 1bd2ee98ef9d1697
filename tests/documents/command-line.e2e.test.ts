import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { unknownId } from '../support/client.ts';
import { staffEnv, staffToken } from '../support/staff.ts';
import { eventually, useBank } from '../support/world.ts';

/** Every command of `npm run bank --`, as a process, against one bank. */
const world = useBank({ env: { ...staffEnv, FOUR_EYES: 'reverse' } });
const { api } = world;

const script = join(import.meta.dirname, '../../cli/bank.ts');
const environment = (changes: Record<string, string> = {}) => ({
  ...process.env, NODE_COMPILE_CACHE: join(import.meta.dirname, '../../node_modules/.cache/node-compile-cache'), BANK_URL: api.baseUrl, BANK_API_KEY: world.bank.api_key, KAFKA_BROKERS: world.bank.kafka_brokers, TOPIC_PREFIX: world.bank.topic_prefix, ...changes,
});

function bank(parameters: string, changes?: Record<string, string>): Promise<{ code: number; out: string; err: string }> {
  return new Promise((resolve) => {
    execFile(process.execPath, [script, ...parameters.split(' ')], { env: environment(changes), timeout: 60_000, maxBuffer: 2 ** 24 }, (error, out, err) => resolve({ code: error ? Number(error.code) : 0, out, err }));
  });
}

/** What a command that must succeed printed. */
async function done<T>(parameters: string): Promise<T> {
  const { code, out, err } = await bank(`${parameters} --json`);
  expect(code, err).toBe(0);
  return JSON.parse(out) as T;
}

const countOf = async (table: string) => (await world.sql<{ count: number }>(`select count(*)::int as count from ${table}`))[0]?.count;

describe('bank', () => {
  it('seed: the same bank again adds nothing', async () => {
    const counts = await done<Record<string, number>>('seed --clients 12 --days 40 --seed 7');
    expect(counts).toMatchObject({ clients: 12, accounts: expect.any(Number), operations: expect.any(Number) });
    const before = [await countOf('transactions'), await countOf('accounts.clients'), await countOf('accounts.accounts'), await countOf('accounts.status_transitions')];
    expect(before.slice(1, 3)).toEqual([12, counts['accounts']]);
    const { code, out, err } = await bank('seed --clients 12 --days 40 --seed 7');
    expect([code, out]).toEqual([0, expect.stringMatching(/^12 clients, \d+ accounts, \d+ operations, of which \d+ were refused as meant/)]);
    expect(err).toContain(`operations: ${counts['operations']} of ${counts['operations']}`);
    expect([await countOf('transactions'), await countOf('accounts.clients'), await countOf('accounts.accounts'), await countOf('accounts.status_transitions')]).toEqual(before);
  });

  it('demo: each scene with its entries, which balance, and its events', async () => {
    type Scene = { title: string; refused?: string; entries: { side: string; amount: number }[]; events: { headers: Record<string, string> }[] };
    const scenes = await done<Scene[]>('demo');
    expect(scenes.map(({ entries, events, refused }) => [entries.length, events.length, refused])).toEqual([
      [4, 2, undefined], [0, 1, undefined], [4, 1, undefined], [4, 1, undefined], [2, 3, undefined], [0, 1, 'insufficient_funds'],
      [0, 1, undefined], [0, 1, 'inactive_account'], [0, 1, undefined], [4, 2, undefined], [2, 3, undefined],
    ]);
    for (const { entries, title } of scenes) expect(entries.reduce((sum, { side, amount }) => sum + (side === 'DR' ? amount : -amount), 0), title).toBe(0);
    expect(scenes[6]?.events[0]?.headers['ce_type']).toBe('corebanking.account.status_changed.v1');
  });

  it('keys: made, used, replaced, ended', async () => {
    const made = await bank('keys create reporting --scopes accounts:read clients:read');
    expect(made).toMatchObject({ code: 0, out: expect.stringMatching(/^cbk_live_\S+\n$/), err: expect.stringContaining('reporting') });
    const caller = api.withKey(made.out.trim());
    expect((await caller.get('/accounts?limit=1')).status).toBe(200);
    const [key] = await done<{ key_id: string; name: string; scopes: string[] }[]>('keys list --limit 1');
    expect(key).toMatchObject({ name: 'reporting', scopes: ['accounts:read', 'clients:read'] });
    const { api_key, key_id } = await done<{ api_key: string; key_id: string }>(`keys rotate ${key?.key_id} --overlap-seconds 600`);
    expect((await api.withKey(api_key).get('/accounts?limit=1')).status).toBe(200);
    expect((await bank(`keys revoke ${key_id}`)).out).toBe(`${key_id} revoked\n`);
    await eventually(async () => (await api.withKey(api_key).get('/accounts?limit=1')).status === 401);
    expect((await bank('keys list --limit 2')).out.split('\n')).toHaveLength(3);
  });

  it('approvals: listed, shown, approved and rejected, by a person', async () => {
    const { account_id } = await api.newAccount();
    const asked = await Promise.all([5, 6].map(async (amount) => {
      const { transaction_id } = await api.transact(account_id, 'Deposit', amount);
      return (await api.withToken(staffToken(world.bank, 'alice')).post(`/transactions/${transaction_id}/reversal`, { reason: 'x' })).data<{ approval_id: string }>().approval_id;
    }));
    const [first = '', second = ''] = asked;
    const bob = { BANK_TOKEN: staffToken(world.bank, 'bob') };
    expect((await bank('approvals list --status Waiting', bob)).out.split('\n')).toHaveLength(3);
    expect((await bank(`approvals show ${first}`, bob)).out).toMatch(/^apr_\w+  Waiting .*\n  transaction txn_\w+: Completed -> reversed\n/);
    expect((await bank(`approvals approve ${first}`, bob)).out).toBe(`${first} Approved done\n`);
    expect((await bank(`approvals reject ${second} --reason no`, bob)).out).toBe(`${second} Rejected\n`);
    expect(await bank(`approvals approve ${second}`, bob)).toMatchObject({ code: 1, err: expect.stringContaining('409 approval_decided') });
    expect(await bank(`approvals approve ${second}`)).toMatchObject({ code: 1, err: expect.stringContaining('403 insufficient_scope') });
  });

  it('tail: events as they come, until it is told to stop; then the same ones, from a moment before them', async () => {
    const { account_id } = await api.newAccount();
    const before = new Date();
    const child = spawn(process.execPath, [script, 'tail', 'transactions', '--account', account_id], { env: environment(), stdio: ['ignore', 'pipe', 'pipe'] });
    let [out, err] = ['', ''];
    child.stdout.on('data', (chunk: Buffer) => (out += String(chunk)));
    child.stderr.on('data', (chunk: Buffer) => (err += String(chunk)));
    await eventually(async () => err.includes('following'));
    await (await api.newAccount({ initial_deposit: 3 }), api.transact(account_id, 'Deposit', 12.5));
    await eventually(async () => out.includes('\n'));
    child.kill('SIGINT');
    expect((await once(child, 'exit'))[0]).toBe(0);
    expect(out).toMatch(new RegExp(`^\\S+Z  transaction\\.completed   ${account_id}  Deposit 12\\.50 USD credit Completed 12\\.50\\n$`));
    const tailed = await bank(`tail transactions --from ${before.toISOString()} --count 1 --account ${account_id} --json`);
    expect(JSON.parse(tailed.out)).toMatchObject({ data: { transaction: { account_id, amount: '12.50' }, sequence: 1 } });
    const [both, vague] = await Promise.all([bank(`tail transactions --from-beginning --from ${before.toISOString()}`), bank('tail transactions --from 2026-01-31')]);
    expect(both).toMatchObject({ code: 2, err: expect.stringContaining('cannot be used with') });
    expect(vague).toMatchObject({ code: 2, err: expect.stringContaining('must be a time such as') });
  });

  it('load: so many a second, with their outcomes', async () => {
    const [transfers, balances] = await Promise.all([done('load --seconds 1 --rate 40 --accounts 4'), done('load --seconds 1 --rate 40 --accounts 2 --kind balance')]);
    for (const summary of [transfers, balances]) expect(summary).toMatchObject({ sent: 40, completed: 40, outcomes: { Completed: 40 }, p50_ms: expect.any(Number), p99_ms: expect.any(Number) });
  });

  it('verify-books: passed, in words and as JSON', async () => {
    expect(await bank('verify-books')).toMatchObject({ code: 0, out: 'the books balance\n' });
    expect(await done('verify-books')).toMatchObject({ state: 'passed', findings: [] });
  });

  it('says in its exit code what was wrong', async () => {
    const elsewhere = { BANK_URL: 'http://127.0.0.1:9' };
    const nowhere = { BANK_URL: '', BANK_API_KEY: '', LOCAL_DIR: '/nowhere' };
    const [revoke, scopes, count, events, noBank, silent, help] = await Promise.all([
      bank(`keys revoke ${unknownId('key')}`), bank('keys create x --scopes everything'), bank('seed --clients many'), bank('tail transactions', { KAFKA_BROKERS: '' }),
      bank('keys list', nowhere), bank('keys list', elsewhere), bank('seed --help'),
    ]);
    expect(revoke).toMatchObject({ code: 1, err: expect.stringContaining('404 api_key_not_found') });
    for (const wrong of [scopes, count]) expect(wrong).toMatchObject({ code: 2, out: '', err: expect.stringContaining('--help tells more') });
    expect(events).toMatchObject({ code: 2, err: expect.stringContaining('KAFKA_BROKERS is not set') });
    expect(noBank).toMatchObject({ code: 2, err: expect.stringContaining('npm start') });
    expect(silent).toMatchObject({ code: 3, err: expect.stringContaining('no answer from http://127.0.0.1:9') });
    expect(help).toMatchObject({ code: 0, out: expect.stringContaining('Example:') });
  });
});
