import { execFile, spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { mkdtempSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, dirname, join } from 'node:path';
import { promisify } from 'node:util';
import { describe, expect, it } from 'vitest';
import { commandLine } from '../support/bundle.ts';
import { unknownId } from '../support/client.ts';
import { staffEnv, staffToken } from '../support/staff.ts';
import { eventually, useBank } from '../support/world.ts';

/** Tests every command of `npm run bank --`, run as a process against one bank. */
const world = useBank({ webhooks: 1, env: { ...staffEnv, FOUR_EYES: 'reverse' } });
const { api } = world;

const source = join(import.meta.dirname, '../../cli/bank.ts');
const script = join(process.env['TEST_PROGRAMS'] ?? '', commandLine);
const environment = (changes: Record<string, string> = {}) => ({
  ...process.env,
  NODE_COMPILE_CACHE: join(import.meta.dirname, '../../node_modules/.cache/node-compile-cache'),
  BANK_URL: api.baseUrl,
  BANK_API_KEY: world.bank.api_key,
  KAFKA_BROKERS: world.bank.kafka_brokers,
  TOPIC_PREFIX: world.bank.topic_prefix,
  ...changes,
});

function bank(
  parameters: string,
  changes?: Record<string, string>,
): Promise<{ code: number; out: string; err: string }> {
  return new Promise((resolve) => {
    execFile(
      process.execPath,
      [script, ...parameters.split(' ')],
      { env: environment(changes), timeout: 60_000, maxBuffer: 2 ** 24 },
      (error, out, err) => resolve({ code: error ? Number(error.code) : 0, out, err }),
    );
  });
}

/** Returns the output of a command that must succeed. */
async function done<T>(parameters: string): Promise<T> {
  const { code, out, err } = await bank(`${parameters} --json`);
  expect(code, err).toBe(0);
  return JSON.parse(out) as T;
}

const countRows = async (table: string) =>
  (await world.sql<{ count: number }>(`select count(*)::int as count from ${table}`))[0]?.count;

describe('bank', () => {
  it('seed: repeating it adds nothing', async () => {
    const counts = await done<Record<string, number>>('seed --clients 12 --days 40 --seed 7');
    expect(counts).toMatchObject({
      clients: 12,
      accounts: expect.any(Number),
      operations: expect.any(Number),
      already_there: 0,
    });
    const before = [
      await countRows('transactions'),
      await countRows('accounts.clients'),
      await countRows('accounts.accounts'),
      await countRows('accounts.status_transitions'),
    ];
    expect(before.slice(1, 3)).toEqual([12, counts['accounts']]);
    expect(await countRows('dated_entries')).toBeGreaterThan(0);
    expect(await countRows('accounts where per_day_out_minor = 15000000')).toBe(1);
    const { code, out, err } = await bank('seed --clients 12 --days 40 --seed 7');
    expect([code, out]).toEqual([
      0,
      expect.stringMatching(
        /^12 clients, \d+ accounts, \d+ operations, of which \d+ were refused as meant, in \S+ s\nall of it was already there\n$/,
      ),
    ]);
    expect(err).toContain(`operations: ${counts['operations']} of ${counts['operations']}`);
    expect([
      await countRows('transactions'),
      await countRows('accounts.clients'),
      await countRows('accounts.accounts'),
      await countRows('accounts.status_transitions'),
    ]).toEqual(before);
  });

  it('demo: shows each scene with balanced entries and events', async () => {
    type Scene = {
      title: string;
      refused?: string;
      entries: { side: string; amount: number }[];
      events: { headers: Record<string, string> }[];
    };
    const scenes = await done<Scene[]>('demo');
    expect(scenes.map(({ entries, events, refused }) => [entries.length, events.length, refused])).toEqual([
      [4, 2, undefined],
      [0, 1, undefined],
      [4, 1, undefined],
      [4, 1, undefined],
      [2, 3, undefined],
      [0, 1, 'insufficient_funds'],
      [0, 1, undefined],
      [0, 1, 'inactive_account'],
      [0, 1, undefined],
      [4, 2, undefined],
      [2, 3, undefined],
      [0, 1, undefined],
      [4, 2, undefined],
      [4, 6, undefined],
    ]);
    for (const { entries, title } of scenes)
      expect(
        entries.reduce((sum, { side, amount }) => sum + (side === 'DR' ? amount : -amount), 0),
        title,
      ).toBe(0);
    expect(scenes[6]?.events[0]?.headers['ce_type']).toBe('corebanking.account.status_changed.v1');
  });

  it('client, account, deposit, withdraw, transfer, show, statement, reverse: work like the API, with account numbers', async () => {
    const { client_id } = await done<{ client_id: string }>(
      'client open --first-name Amina --last-name Otieno --email amina@example.org --phone +254700000001',
    );
    type Opened = { account_id: string; account_number: string };
    const [savings, checking] = [
      await done<Opened>(`account open ${client_id} --currency KES --initial-deposit 1500`),
      await done<Opened>(`account open ${client_id} --type Checking --currency KES --number CHK-${Date.now()}`),
    ];
    const deposit = await bank(`deposit ${savings.account_number} 250.75 --description Cash --reference R-1`);
    expect(deposit).toMatchObject({
      code: 0,
      out: expect.stringMatching(
        new RegExp(
          `^txn_\\w+  \\S+Z  Completed  Deposit  credit 250\\.75 KES  Cash\n${savings.account_number}  balance 1750\\.75 KES\n$`,
        ),
      ),
    });
    await done(`withdraw ${savings.account_id} 50.25`);
    const once = [
      await done<{ transfer_id: string }>(
        `transfer ${savings.account_number} ${checking.account_number} 100 --key rent-${client_id}`,
      ),
      await done<{ transfer_id: string }>(
        `transfer ${savings.account_number} ${checking.account_number} 100 --key rent-${client_id}`,
      ),
    ];
    expect(once[1]).toEqual(once[0]);
    expect((await bank(`show ${savings.account_number}`)).out).toMatch(
      /^acc_\w+ {2}SAV-\d+ {2}Savings {2}Active {2}1600\.50 KES\n {2}txn_/,
    );
    expect((await bank(`show ${client_id}`)).out.split('\n')).toEqual([
      expect.stringContaining('Amina Otieno'),
      expect.stringContaining('CHK-'),
      expect.stringContaining('SAV-'),
      '',
    ]);
    expect((await bank(`show ${once[0]?.transfer_id}`)).out).toContain(
      `from ${savings.account_id} to ${checking.account_id}  100.00 KES`,
    );
    const statement = (await bank(`statement ${savings.account_number}`)).out.split('\n');
    expect(statement.map((line) => line.trim().replace(/\s+/g, ' '))).toEqual([
      `${savings.account_number} from its opening to now`,
      'opening balance 0.00 KES',
      expect.stringMatching(/\+1500\.00 KES 1500\.00 KES Deposit Initial deposit$/),
      expect.stringMatching(/\+250\.75 KES 1750\.75 KES Deposit Cash$/),
      expect.stringMatching(/-50\.25 KES 1700\.50 KES Withdrawal$/),
      expect.stringMatching(new RegExp(`-100\\.00 KES 1600\\.50 KES Transfer ${checking.account_number}$`)),
      'closing balance 1600.50 KES',
      '',
    ]);
    const file = join(mkdtempSync(join(tmpdir(), 'statement-')), 'statement.html');
    expect(await bank(`statement ${savings.account_number} --html ${file}`)).toMatchObject({
      code: 0,
      out: '',
      err: `written to ${file}\n`,
    });
    const printed = readFileSync(file, 'utf8').replace(/<[^>]+>/g, ' ');
    expect(printed.replace(/[\s\u00a0]+/g, ' ')).toMatch(
      /Core Banking Amina Otieno .* Closing balance 1 600\.50 KES .* Deposit Initial deposit 1 500\.00 1 500\.00 /,
    );
    expect(await bank(`statement ${savings.account_number} --html ${dirname(file)}`)).toMatchObject({
      code: 2,
      out: '',
    });
    const [camt, day] = [file.replace('html', 'xml'), '2026-01-31'];
    expect(await bank(`statement ${savings.account_number} --on ${day} --camt ${camt}`)).toMatchObject({ code: 0 });
    expect(readFileSync(camt, 'utf8')).toContain(`<Id>${savings.account_number}-${day}</Id>`);
    expect((await bank(`statement ${savings.account_number} --on ${day}`)).out).toMatch(
      new RegExp(`^${savings.account_number} {2}${day}\n`),
    );
    expect(readdirSync(dirname(camt))).not.toContain(`${basename(camt)}.part`);
    for (const [options, err] of [
      [`--camt ${camt}`, 'give --on <date> too'],

      [`--on ${day} --camt ${camt}/none`, 'ENOTDIR'],
    ])
      expect(await bank(`statement ${savings.account_number} ${options}`)).toMatchObject({
        code: 2,
        err: expect.stringContaining(String(err)),
      });
    expect(await done(`reverse ${once[0]?.transfer_id} --reason mistake`)).toMatchObject({
      transaction_type: 'Transfer',
      reverses_transaction_id: expect.any(String),
    });
    expect(await done(`show ${once[0]?.transfer_id}`)).toMatchObject({
      reversed_by_transfer_id: expect.stringMatching(/^trf_/),
    });
    expect(await bank(`withdraw ${savings.account_number} 99999`)).toMatchObject({
      code: 1,
      out: '',
      err: expect.stringMatching(/^400 insufficient_funds: Insufficient Funds: .*\n$/),
    });
    expect(await bank('deposit SAV-0000000000 1')).toMatchObject({
      code: 1,
      err: expect.stringMatching(/^404 account_not_found: .*SAV-0000000000/),
    });
    for (const wrong of ['1,5', '-1', '1e3', '1234567890123456', ''])
      expect(await bank(`deposit ${savings.account_number} ${wrong}`)).toMatchObject({ code: 2, out: '' });
    expect(await bank(`client open --first-name Amina --email x --phone y`)).toMatchObject({
      code: 1,
      err: expect.stringMatching(/last_name is required.*email must be/),
    });
  });

  it('hold: placed, captured in part to another account and in cash, released, shown', async () => {
    const [savings, other] = [await api.newAccount({ initial_deposit: 100 }), await api.newAccount()];
    const placed = await bank(
      `hold place ${savings.account_number} 60.50 --description Hotel --expires-at ${new Date(Date.now() + 3_600_000).toISOString()} --key hold-${savings.account_id}`,
    );
    expect(placed).toMatchObject({
      code: 0,
      out: expect.stringMatching(
        new RegExp(
          `^hld_\\w+  \\S+Z  Active  60\\.50 USD  until \\S+Z  Hotel\n${savings.account_number}  balance 100\\.00 USD  available 39\\.50 USD\n$`,
        ),
      ),
    });
    const [hold = ''] = placed.out.split(' ');
    expect(await bank(`withdraw ${savings.account_number} 50`)).toMatchObject({
      code: 1,
      err: expect.stringContaining('insufficient_funds'),
    });
    expect(await done(`hold capture ${hold} 20 --to ${other.account_number} --keep-rest`)).toMatchObject({
      hold: { status: 'Active', captured_amount: 20 },
      transfer: { to_account_id: other.account_id, amount: 20, description: 'Hotel' },
    });
    expect((await bank(`hold capture ${hold} 10.5 --description Night --keep-rest`)).out.split('\n')).toEqual([
      expect.stringMatching(/Active {2}60\.50 USD {2}captured 30\.50 USD/),
      expect.stringMatching(/^txn_\w+ .*Withdrawal {2}debit 10\.50 USD {2}Night$/),
      '',
    ]);
    expect(await bank(`hold capture ${hold} 30.01`)).toMatchObject({
      code: 1,
      err: expect.stringContaining('400 amount_exceeds_hold'),
    });
    expect((await bank(`hold release ${hold}`)).out).toMatch(
      /^hld_\w+ {2}\S+Z {2}Released {2}60\.50 USD {2}captured 30\.50 USD/,
    );
    expect(await done(`hold show ${hold}`)).toMatchObject({ hold_id: hold, status: 'Released' });
    expect(await done(`hold list ${savings.account_number}`)).toMatchObject([{ hold_id: hold }]);
    expect(await done(`hold list ${savings.account_id} --status Active`)).toEqual([]);
    expect((await bank(`show ${hold}`)).out).toContain('Released');
    expect(await bank(`hold capture ${hold}`)).toMatchObject({
      code: 1,
      err: expect.stringContaining('400 hold_not_active'),
    });
    expect(
      await done(`hold capture ${(await done<{ hold_id: string }>(`hold place ${savings.account_id} 1`)).hold_id}`),
    ).toMatchObject({ hold: { status: 'Captured' }, transaction: { amount: 1 } });
  });

  it('batch: sent from a file, independent or atomic, executed once per key, and shown', async () => {
    const [from, to] = [await api.newAccount({ initial_deposit: 100 }), await api.newAccount()];
    const file = join(mkdtempSync(join(tmpdir(), 'batch-')), 'batch.json');
    const transfer = (amount: number) => ({
      transfer: { from_account_id: from.account_id, to_account_id: to.account_id, amount },
    });
    writeFileSync(file, JSON.stringify([transfer(10.5), transfer(1000)]));
    expect(await bank(`batch send ${file} --atomic --key all-${from.account_id}`)).toMatchObject({
      code: 1,
      out: '',
      err: expect.stringMatching(/^400 batch_refused: .*items\[1\]\.transfer: Insufficient Funds/),
    });
    const names = `--external-id file-${from.account_id} --metadata file_name=wages`;
    const sent = await bank(`batch send ${file} --key each-${from.account_id} ${names}`);
    expect(sent).toMatchObject({
      code: 1,
      err: '1 of 2 items were refused\n',
      out: expect.stringMatching(
        /^ {2}0 {2}trf_\w+ .*Completed.* 10\.50 USD\n {2}1 {2}trf_\w+ .*Failed.* insufficient_funds: .*\nbat_\w+ {2}\S+ {2}independent {2}Completed {2}1 completed, 1 failed, 0 pending {2}10\.50 USD {2}key:\w+ {2}file-acc_\w+\n$/,
      ),
    });
    expect((await bank(`batch send ${file} --key each-${from.account_id} ${names}`)).out).toBe(sent.out);
    expect(sent.out).toContain((await bank(`batch list --external-id file-${from.account_id}`)).out);
    expect((await bank('batch list --external-id none')).out).toBe('none\n');
    expect((await bank(`batch show ${/bat_\w+/.exec(sent.out)?.[0]}`)).out).toBe(sent.out);
    expect(await done(`balance ${from.account_number}`)).toMatchObject({ balance: 89.5, available_balance: 89.5 });
    const body = { mode: 'atomic', items: [transfer(1), transfer(2)], external_id: `body-${from.account_id}` };
    writeFileSync(file, JSON.stringify(body));
    const atomic = `batch send ${file} --key body-${from.account_id}`;
    expect(await done(atomic)).toMatchObject({
      mode: 'atomic',
      external_id: body.external_id,
      counts: { completed: 2 },
    });
    expect((await bank(`${atomic} --atomic`)).code).toBe(0);
    writeFileSync(file, JSON.stringify({ ...body, mode: 'independent' }));
    expect(await bank(`batch send ${file} --key x --atomic`)).toMatchObject({
      code: 2,
      err: `--atomic: the mode in ${file} is independent\n`,
    });
    for (const [content, why] of [
      ['7', 'must be an array of items, or a body of POST /batches'],
      ['[{"transfer": {"amount": 100.00000000000000001}}]', 'must be an amount'],
      ['[', 'JSON'],
    ] as const) {
      writeFileSync(file, content);
      expect(await bank(`batch send ${file} --key x`)).toMatchObject({
        code: 2,
        out: '',
        err: expect.stringContaining(why),
      });
    }
    expect(await bank(`batch send ${file}`)).toMatchObject({ code: 2, err: expect.stringContaining('--key') });
  });

  it('client list: by email, USSD phone, external_id, and words of the name', async () => {
    const external_id = `crm-${Date.now()}`;
    const ussd = `+2547${String(Date.now()).slice(-8)}`;
    const { client_id } = await done<{ client_id: string }>(
      `client open --first-name Wanjiru --last-name ${external_id} --email ${external_id}@example.org --phone +254700000001 --ussd-phone ${ussd} --external-id ${external_id}`,
    );
    for (const filter of [
      `--email ${external_id}@EXAMPLE.org`,
      `--ussd-phone ${ussd}`,
      `--external-id ${external_id}`,
      `--q ${external_id.toUpperCase()}`,
    ])
      expect(await done(`client list ${filter}`), filter).toMatchObject([{ client_id }]);
    expect((await bank(`client list --external-id ${external_id}`)).out).toMatch(`${client_id}  Retail  Wanjiru`);
    expect(await bank('client list --external-id nobody')).toMatchObject({ code: 0, out: 'none\n' });
  });

  it('client change, account status, balance at a moment, metadata', async () => {
    const { client_id } = await done<{ client_id: string }>(
      'client open --first-name Amina --last-name Otieno --email amina@example.org --phone +254700000001 --metadata branch=Nairobi --metadata note=a=b',
    );
    expect(await done(`client change ${client_id} --phone +254700000002 --metadata branch=Mombasa`)).toMatchObject({
      contact_number: '+254700000002',
      email: 'amina@example.org',
      metadata: { branch: 'Mombasa' },
    });
    const { account_number } = await done<{ account_number: string }>(
      `account open ${client_id} --currency KES --external-id a-${client_id} --metadata a.b=c`,
    );
    const { created_at } = await done<{ created_at: string }>(`deposit ${account_number} 12.50 --metadata slip=7`);
    expect((await bank(`balance ${account_number} --at ${created_at}`)).out).toMatch(
      /^SAV-\d+ {2}\S+Z {2}balance 0\.00 KES {2}after entry 0\n$/,
    );
    for (const day of ['2026-01-01', '2026-01-01T00:00Z', '2026-01-01T03:00:00+03:00'])
      expect(await done(`balance ${account_number} --at ${day}`)).toMatchObject({ at: '2026-01-01T00:00:00.000Z' });
    for (const wrong of ['2026-02-30', '2026-1-1', '2026-01-01T00:00:00', 'today'])
      expect(await bank(`balance ${account_number} --at ${wrong}`), wrong).toMatchObject({
        code: 2,
        err: expect.stringContaining('must be a date or time such as'),
      });
    expect((await bank(`balance ${account_number}`)).out).toMatch(
      / {2}balance 12\.50 KES {2}available 12\.50 KES {2}after entry 1\n$/,
    );
    expect((await bank(`account status ${account_number} Frozen`)).err).toContain('reason is required to freeze');
    expect((await bank(`account status ${account_number} Frozen --reason fraud --note seen`)).out).toContain(
      '  Frozen  ',
    );
    expect(await done(`account status ${account_number} Active`)).toMatchObject({
      status: 'Active',
      external_id: `a-${client_id}`,
      metadata: { 'a.b': 'c' },
    });
    expect(await bank(`client change ${client_id} --metadata branch`)).toMatchObject({
      code: 2,
      err: expect.stringContaining('must be a key and a value'),
    });
  });

  it('keys: created, used, rotated, revoked', async () => {
    const made = await bank('keys create reporting --scopes accounts:read clients:read');
    expect(made).toMatchObject({
      code: 0,
      out: expect.stringMatching(/^cbk_live_\S+\n$/),
      err: expect.stringContaining('reporting'),
    });
    const caller = api.withKey(made.out.trim());
    expect((await caller.get('/accounts?limit=1')).status).toBe(200);
    const [key] = await done<{ key_id: string; name: string; scopes: string[] }[]>('keys list --limit 1');
    expect(key).toMatchObject({ name: 'reporting', scopes: ['accounts:read', 'clients:read'] });
    const { api_key, key_id } = await done<{ api_key: string; key_id: string }>(
      `keys rotate ${key?.key_id} --overlap-seconds 600`,
    );
    expect((await api.withKey(api_key).get('/accounts?limit=1')).status).toBe(200);
    expect((await bank(`keys revoke ${key_id}`)).out).toBe(`${key_id} revoked\n`);
    await eventually(async () => (await api.withKey(api_key).get('/accounts?limit=1')).status === 401);
    expect((await bank('keys list --limit 2')).out.split('\n')).toHaveLength(3);
  });

  it('approvals: listed, shown, approved, and rejected by a person', async () => {
    const { account_id } = await api.newAccount();
    const asked = await Promise.all(
      [5, 6].map(async (amount) => {
        const { transaction_id } = await api.transact(account_id, 'Deposit', amount);
        return (
          await api
            .withToken(staffToken(world.bank, 'alice'))
            .post(`/transactions/${transaction_id}/reversal`, { reason: 'x' })
        ).data<{ approval_id: string }>().approval_id;
      }),
    );
    const [first = '', second = ''] = asked;
    const bob = { BANK_TOKEN: staffToken(world.bank, 'bob') };
    expect((await bank('approvals list --status Waiting', bob)).out.split('\n')).toHaveLength(3);
    expect((await bank(`approvals show ${first}`, bob)).out).toMatch(
      /^apr_\w+ {2}Waiting .* Reverse transaction txn_\w+ of [\d.]+ USD on account acc_\w+\n {2}POST \/transactions\//,
    );
    expect((await bank(`approvals approve ${first}`, bob)).out).toBe(`${first} Approved done\n`);
    expect((await bank(`approvals reject ${second} --reason no`, bob)).out).toBe(`${second} Rejected\n`);
    expect(await bank(`approvals approve ${second}`, bob)).toMatchObject({
      code: 1,
      err: expect.stringContaining('409 approval_decided'),
    });
    expect(await bank(`approvals approve ${second}`)).toMatchObject({
      code: 1,
      err: expect.stringContaining('403 insufficient_scope'),
    });
  });

  it('days, balances, limits, value dates: a day is closed, shown, and printed, and what is left on an account is limited', async () => {
    const day = (ago: number) => new Date(Date.now() - ago * 86_400_000).toISOString().slice(0, 10);
    const { account_id, account_number } = await api.newAccount({ initial_deposit: 100 });
    expect((await bank('days list')).out).toBe('none\n');
    expect(await done(`deposit ${account_number} 12.50 --effective-date ${day(1)}`)).toMatchObject({
      effective_date: day(1),
    });
    expect((await bank(`balance ${account_number} --on ${day(1)}`)).out).toBe(
      `${account_number}  ${day(1)}  balance 12.50 USD\n`,
    );
    const closed = await bank(`days close ${day(1)}`);
    expect(closed).toMatchObject({
      code: 0,
      out: expect.stringMatching(
        new RegExp(`^${day(1)}  closed \\S+Z  key:\\w+  [0-9a-f]{64}\\n  \\w{3} (asset|liability) +opening `),
      ),
    });
    expect((await bank(`days show ${day(1)}`)).out).toBe(closed.out);
    expect(await done<{ date: string }[]>('days list --limit 1')).toMatchObject([{ date: day(1) }]);
    const lines = (await bank(`days show ${day(1)} --accounts json`)).out;
    const { accounts_sha256 } = await done<{ accounts_sha256: string }>(`days show ${day(1)}`);
    expect(createHash('sha256').update(lines).digest('hex')).toBe(accounts_sha256);
    expect(lines).toContain(
      `"account_number":"${account_number}","currency":"USD","class":"liability","opening":"0.00"`,
    );
    expect((await bank(`days show ${day(1)} --accounts csv`)).out).toMatch(
      new RegExp(`^account_id,account_number,[^]*\n${account_id},${account_number},USD,liability,0.00,12.50,`),
    );
    expect((await bank(`balances --on ${day(1)} --currency USD`)).out).toContain(`,${account_number},USD,12.50`);
    expect((await bank('balances --form json')).out).toContain(
      `"account_number":"${account_number}","currency":"USD","balance":"112.50"}`,
    );
    for (const [command, code, message] of [
      [`days close ${day(1)}`, 1, /^400 day_closed: /],
      [`days close ${day(0)}`, 1, /^400 day_not_closable: /],
      [`days show ${day(0)}`, 1, /^404 day_not_found: /],
      [`days show ${day(0)} --accounts csv`, 1, /^404 day_not_found: /],
      [`deposit ${account_number} 1 --effective-date ${day(1)}`, 1, /^400 day_closed: /],
      ['days close yesterday', 2, /must be a day such as/],
      ['balances --on 2026-02-30', 2, /must be a day such as/],
      [`limits ${account_number} --per-day-out 1,5`, 2, /must be an amount/],
    ] as const)
      expect(await bank(command), command).toMatchObject({ code, out: '', err: expect.stringMatching(message) });
    const limits = `limits ${account_number}`;
    expect((await bank(`${limits} --per-transaction 50 --minimum-balance 20`)).out).toBe(
      'minimum_balance  20.00 USD\nper_transaction  50.00 USD\nper_day_out  none\n',
    );
    expect(await done(`${limits} --per-day-out 60 --minimum-balance none`)).toEqual({
      account_id,
      currency: 'USD',
      per_transaction: 50,
      per_day_out: 60,
      out_today: 0,
    });
    expect((await bank(`withdraw ${account_number} 51`)).err).toMatch(/^400 limit_exceeded: .*per_transaction of /);
    await done(`withdraw ${account_number} 50`);
    expect((await bank(limits)).out).toMatch(/per_day_out {2}60\.00 USD\nout_today {2}50\.00 USD\n$/);
  });

  it('tail: prints new events until it is stopped; then the same ones again from an earlier moment', async () => {
    const { account_id } = await api.newAccount();
    const before = new Date();
    const child = spawn(process.execPath, [script, 'tail', 'transactions', '--account', account_id], {
      env: environment(),
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    let [out, err] = ['', ''];
    child.stdout.on('data', (chunk: Buffer) => (out += String(chunk)));
    child.stderr.on('data', (chunk: Buffer) => (err += String(chunk)));
    await eventually(async () => err.includes('following'));
    await (await api.newAccount({ initial_deposit: 3 }), api.transact(account_id, 'Deposit', 12.5));
    await eventually(async () => out.includes('\n'));
    child.kill('SIGINT');
    expect((await once(child, 'exit'))[0]).toBe(0);
    expect(out).toMatch(
      new RegExp(`^\\S+Z  transaction\\.completed   ${account_id}  Deposit 12\\.50 USD credit Completed 12\\.50\\n$`),
    );
    const tailed = await bank(
      `tail transactions --from ${before.toISOString()} --count 1 --account ${account_id} --json`,
    );
    expect(JSON.parse(tailed.out)).toMatchObject({
      data: { transaction: { account_id, amount: '12.50' }, sequence: 1 },
    });
    const [both, vague] = await Promise.all([
      bank(`tail transactions --from-beginning --from ${before.toISOString()}`),
      bank('tail transactions --from 31.01.2026'),
    ]);
    expect(both).toMatchObject({ code: 2, err: expect.stringContaining('cannot be used with') });
    expect(vague).toMatchObject({ code: 2, err: expect.stringContaining('must be a date or time such as') });
  });

  it('load: sends at a constant rate and reports outcomes', async () => {
    const [transfers, balances] = await Promise.all([
      done('load --seconds 1 --rate 40 --accounts 4'),
      done('load --seconds 1 --rate 40 --accounts 2 --kind balance'),
    ]);
    for (const summary of [transfers, balances])
      expect(summary).toMatchObject({
        sent: 40,
        completed: 40,
        outcomes: { Completed: 40 },
        p50_ms: expect.any(Number),
        p99_ms: expect.any(Number),
      });
  });

  it('webhooks listen: prints events and leaves no webhook behind', async () => {
    const listening = bank('webhooks listen --port 0 --types client.created --count 1 --json');
    await eventually(async () => (await api.get('/webhooks')).list().length === 1);
    const { client_id } = await api.client();
    const { code, out, err } = await listening;
    expect(code, err).toBe(0);
    expect(JSON.parse(out)).toMatchObject({ type: 'corebanking.client.created.v1', data: { client_id } });
    expect((await api.get('/webhooks')).list()).toEqual([]);
    expect(await bank('webhooks listen --port 0 --types nothing')).toMatchObject({
      code: 1,
      err: expect.stringContaining('must be one of transaction.completed'),
    });
  });

  it('verify-books: passes, as text and as JSON', async () => {
    expect(await bank('verify-books')).toMatchObject({ code: 0, out: 'the books balance\n' });
    expect(await done('verify-books')).toMatchObject({ state: 'passed', findings: [] });
  });

  it('env: prints what a shell needs, whatever characters it contains', async () => {
    const { out } = await bank('env', { BANK_API_KEY: `it's "$HOME" \`id\`` });
    const { stdout } = await promisify(execFile)('bash', ['-c', `${out} printf '%s\\n' "$BASE_URL" "$API_KEY"`]);
    expect(stdout).toBe(`${api.baseUrl}\nit's "$HOME" \`id\`\n`);
    expect(await bank('env', { BANK_TOKEN: 'x' })).toMatchObject({
      code: 2,
      out: '',
      err: expect.stringContaining('no API key'),
    });
  });

  it('help: of the bank, of a command, and of a part of a command', async () => {
    const names = [...readFileSync(source, 'utf8').matchAll(/^ {2}\[(?:\n {4})?'([\w-]+)',/gm)].map(
      ([, name = '']) => name,
    );
    const overview = await bank('--help');
    expect(overview.code).toBe(0);
    expect([...overview.out.matchAll(/^ {2}([a-z-]+) {2,}[A-Z]/gm)].map(([, name]) => name)).toEqual(names);
    expect(names.length).toBeGreaterThan(20);
    const [spoken, asked, part] = await Promise.all([bank('help keys'), bank('keys --help'), bank('help keys create')]);
    expect(spoken).toEqual(asked);
    expect(asked.out).toContain('API keys (scope keys:manage)');
    expect(part.out).toContain('--scopes <scopes...>');
    expect(await bank('balanse x')).toMatchObject({ code: 2, err: expect.stringContaining('Did you mean balance?') });
  });

  it('the exit code shows the kind of failure', async () => {
    const elsewhere = { BANK_URL: 'http://127.0.0.1:9' };
    const nowhere = { BANK_URL: '', BANK_API_KEY: '', LOCAL_DIR: '/nowhere' };
    const [revoke, scopes, count, events, noBank, silent, help] = await Promise.all([
      bank(`keys revoke ${unknownId('key')}`),
      bank('keys create x --scopes everything'),
      bank('seed --clients many'),
      bank('tail transactions', { KAFKA_BROKERS: '' }),
      bank('keys list', nowhere),
      bank('keys list', elsewhere),
      bank('seed --help'),
    ]);
    expect(revoke).toMatchObject({ code: 1, err: expect.stringContaining('404 api_key_not_found') });
    for (const wrong of [scopes, count])
      expect(wrong).toMatchObject({ code: 2, out: '', err: expect.stringContaining('--help tells more') });
    expect(events).toMatchObject({ code: 2, err: expect.stringContaining('KAFKA_BROKERS is not set') });
    expect(noBank).toMatchObject({ code: 2, err: expect.stringContaining('npm start') });
    expect(silent).toMatchObject({ code: 3, err: expect.stringContaining('no answer from http://127.0.0.1:9') });
    expect(help).toMatchObject({ code: 0, out: expect.stringContaining('Example:') });
  });
});
