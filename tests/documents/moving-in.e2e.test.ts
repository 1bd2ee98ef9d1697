import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer, request } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { RestAccount } from '../support/client.ts';
import { useBank } from '../support/world.ts';

/**
 * Runs `npm run bank -- import` and the commands of docs/moving-in.md, and compares their output
 * with the document.
 */
const world = useBank();
const { api } = world;
const root = join(import.meta.dirname, '..', '..');
const script = join(root, 'cli', 'bank.ts');

let folder = '';
beforeEach(() => void (folder = mkdtempSync(join(tmpdir(), 'moving-in-'))));
afterEach(() => rmSync(folder, { recursive: true }));

const environment = (changes: Record<string, string> = {}) => ({
  ...process.env,
  BANK_URL: api.baseUrl,
  BANK_API_KEY: world.bank.api_key,
  ...changes,
});

function run(
  file: string,
  parameters: string[],
  changes?: Record<string, string>,
): Promise<{ code: number; out: string; err: string }> {
  return new Promise((resolve) => {
    execFile(file, parameters, { cwd: folder, env: environment(changes), timeout: 60_000 }, (error, out, err) =>
      resolve({ code: error ? Number(error.code) : 0, out, err }),
    );
  });
}

const bank = (parameters: string, changes?: Record<string, string>) =>
  run(process.execPath, [script, ...parameters.split(' ')], changes);
const both = 'import --clients clients.csv --accounts accounts.csv';
const put = (name: string, lines: string[]) => writeFileSync(join(folder, name), `${lines.join('\n')}\n`);
const readLines = (name: string) => readFileSync(join(folder, name), 'utf8').trimEnd().split('\n');
const counts = async () =>
  (
    await world.sql(
      'select (select count(*)::int from accounts.clients) as clients, (select count(*)::int from accounts.accounts) as accounts, (select count(*)::int from transactions) as transactions',
    )
  )[0];
const accountNamed = async (name: string) => (await api.get(`/accounts?external_id=${name}`)).list<RestAccount>()[0];

/** A proxy in front of the bank that drops the responses to account openings after the first `limit`. */
async function loseAnswersAfter(limit: number): Promise<{ url: string; answerLost: Promise<void>; close: () => void }> {
  const lost = Promise.withResolvers<void>();
  let openings = 0;
  const server = createServer((asked, reply) => {
    const isLost = asked.method === 'POST' && asked.url === '/accounts' && ++openings > limit;
    const { method = '', headers } = asked;
    const sent = request(`${api.baseUrl}${asked.url}`, { method, headers }, (answer) => {
      if (isLost) return lost.resolve();
      reply.writeHead(answer.statusCode ?? 500, answer.headers);
      answer.pipe(reply);
    });
    // The killed import leaves unfinished requests.
    sent.on('error', () => reply.destroy());
    asked.pipe(sent);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    answerLost: lost.promise,
    close() {
      server.closeAllConnections();
      server.close();
    },
  };
}

const clientHeader = 'external_id,client_type,first_name,last_name,email,contact_number';
const accountHeader = 'external_id,client_external_id,account_number,account_type,currency,opening_balance';
const client = (name: string) => `${name},Retail,Amina,Otieno,amina@example.org,+254700000001`;

it('docs/moving-in.md: its commands print the documented output, and the bank matches the files', async () => {
  const text = readFileSync(join(root, 'docs', 'moving-in.md'), 'utf8');
  const [clients = '', accounts = '', refused = ''] = [...text.matchAll(/```csv\n([^`]*)```/g)].map(
    ([, block]) => block,
  );
  writeFileSync(join(folder, 'clients.csv'), clients);
  writeFileSync(join(folder, 'accounts.csv'), accounts);
  let key = '';
  let shown = 0;
  const before = await counts();
  for (const [, commands = '', answer] of text.matchAll(/```sh\n([^`]*)```\n(?:```text\n([^`]*)```)?/g)) {
    for (const command of commands.trimEnd().split('\n')) {
      const isDry = command.endsWith('--dry-run');
      const isOurs = command.startsWith('npm run bank -- ');
      const done = isOurs
        ? await bank(
            command.slice('npm run bank -- '.length),
            isDry ? { BANK_URL: 'http://127.0.0.1:9' } : key === '' ? {} : { BANK_API_KEY: key },
          )
        : await run('bash', ['-c', command]);
      expect(done.code, done.err).toBe(isDry ? 1 : 0);
      if (command.includes('keys create')) key = done.out.trim();
      else if (isOurs) expect([done.out, ++shown]).toEqual([answer, shown]);
      if (!isDry) continue;
      expect(await counts()).toEqual(before);
      expect(readFileSync(join(folder, 'clients.refused.csv'), 'utf8')).toBe(refused);
      expect(done.err).toContain('refused rows: clients.refused.csv');
    }
  }
  expect(shown).toBe(3);
  expect(existsSync(join(folder, 'clients.refused.csv'))).toBe(false);
  expect(await accountNamed('A-1')).toMatchObject({ account_number: 'SAV-00017', balance: 1500.75, status: 'Active' });
  expect(await accountNamed('A-4')).toMatchObject({ account_number: 'CUR-00403', balance: 0, status: 'Frozen' });
  expect((await api.get('/clients?external_id=C-1')).list()).toMatchObject([
    { contact_number: '+254700000001', address: '12 Kenyatta Avenue, Nairobi', metadata: { branch: 'Nairobi 3' } },
  ]);
  for (const [name, amount] of [
    ['A-1', 1500.75],
    ['A-2', 20000],
  ] as const)
    expect((await api.get(`/transactions?account_id=${(await accountNamed(name))?.account_id}`)).list()).toMatchObject([
      { amount, description: 'Opening balance', status: 'Completed' },
    ]);
  expect(JSON.parse(readFileSync(join(folder, 'accounts.report.json'), 'utf8'))).toMatchObject({
    books_before: {},
    clients: { rows: 3, already_there: 3 },
    accounts: { rows: 5 },
    currencies: [
      { currency: 'KES', deposits_in_books: '1580.75', loans_in_books: '20000.00', agrees: true },
      { currency: 'USD', agrees: true },
    ],
  });
});

it('does not keep the rows in memory, and prints the progress on stderr', async () => {
  put('clients.csv', [clientHeader, ...Array.from({ length: 70_000 }, (_, n) => client(`C-${n}`))]);
  const { code, out, err } = await run(process.execPath, [
    // Keeping the rows of the file would need more than 48 MB.
    '--max-old-space-size=40',
    ...[script, 'import', '--clients', 'clients.csv', '--dry-run'],
  ]);
  expect(code, err).toBe(0);
  expect(out).toBe('clients: 70000 rows, 70000 valid, 0 refused\n');
  expect(err).toMatch(/clients: 35000 of 70000\n[^]*clients: 70000 of 70000\n/);
});

describe('bank import', () => {
  it('continues after a kill, and adds nothing when it is repeated, even with another API key', async () => {
    const [names, before] = [Array.from({ length: 75 }, (_, index) => `R-${index}`), await counts()];
    put('clients.csv', [clientHeader, ...names.map(client)]);
    put('accounts.csv', [accountHeader, ...names.map((name) => `${name},${name},,Savings,KES,0.25`)]);
    const { url, answerLost, close } = await loseAnswersAfter(20);
    const child = spawn(process.execPath, [script, ...both.split(' ')], {
      cwd: folder,
      env: environment({ BANK_URL: url }),
      stdio: 'ignore',
    });
    await answerLost;
    child.kill('SIGKILL');
    await once(child, 'exit');
    close();
    const again = await bank(both);
    expect(again.code, again.err).toBe(0);
    expect(again.out).toMatch(/\nKES: 75 accounts, deposits 18\.75, loans 0\.00; the books match\n$/);
    const after = await counts();
    expect(after).toEqual({
      clients: Number(before?.['clients']) + 75,
      accounts: Number(before?.['accounts']) + 75,
      transactions: Number(before?.['transactions']) + 75,
    });
    const other = (
      await bank(
        'keys create other --scopes clients:read clients:write accounts:read accounts:write accounts:import transactions:write books:read',
      )
    ).out.trim();
    for (const key of [world.bank.api_key, other]) {
      expect(await bank(both, { BANK_API_KEY: key })).toMatchObject({
        code: 0,
        out: expect.stringMatching(
          /^clients: 75 rows, 0 imported, 75 already existed, 0 refused\naccounts: 75 rows, 0 imported, 75 already existed, 0 refused\nKES: .*the books match\n$/,
        ),
      });
    }
    expect(await counts()).toEqual(after);
  }, 180_000);

  it('writes every refused row with its reason to a file that can be corrected and imported', async () => {
    put('clients.csv', [
      clientHeader,
      client('X-1'),
      client('X-1'),
      'X-2,Retail,Amina,,amina@example.org,+254700000001',
      'X-3,Retail',
      client('é'),
    ]);
    put('accounts.csv', [
      accountHeader,
      'Y-1,X-1,SAV-7001,Savings,KES,10.05',
      'Y-2,X-1,SAV-7001,Savings,KES,1',
      'Y-3,X-2,,Savings,KES,1',
      'Y-4,X-1,,Savings,KES,10.005',
      'Y-5,X-1,,Savings,KES,-1',
      'Y-6,X-1,CHK-7002,Savings,KES,1',
      'Y-7,X-1,,Savings,KES,"1,000.00"',
      'Y-8,,,Savings,KES,1',
      'Y-9,X-1,,Savings,XXX,1',
      'Y-10,X-1,SAV-7003,Savings,KES,1',
      ',,,,,',
      'Y-11,X-1,,Savings,KES,1.500',
      'Y-12,X-1,,Savings,JPY,1500.0',
      ',,,,,',
    ]);
    await api.post('/accounts', {
      client_id: (await api.client()).client_id,
      account_type: 'Savings',
      currency: 'KES',
      account_number: 'SAV-7003',
    });
    const first = await bank(`${both} --json`);
    expect(first).toMatchObject({
      code: 1,
      err: expect.stringMatching(/refused rows: clients\.refused\.csv, accounts\.refused\.csv\n$/),
    });
    expect(JSON.parse(first.out)).toMatchObject({
      clients: { rows: 5, imported: 1, refused: 4 },
      accounts: { rows: 12, imported: 1, refused: 11 },
      currencies: [{ currency: 'KES', accounts: 1, deposits: '10.05', agrees: true }],
    });
    const reasons = (name: string) =>
      readLines(name)
        .slice(1)
        .sort()
        .map((line) => line.replace(/^(\w-\d+|é).*?,(\d+),"?(?=\D)(.*?)"?$/, '$1 $2 $3'));
    expect(reasons('clients.refused.csv')).toEqual([
      'X-1 3 external_id is that of line 2',
      'X-2 4 validation_failed: last_name is required',
      'X-3 5 has 2 values, but the first line has 6 names',
      'é 6 external_id must have 1 to 128 printable ASCII characters',
    ]);
    expect(reasons('accounts.refused.csv')).toEqual([
      expect.stringContaining(
        '11 duplicate_account_number: Duplicate Account Number: an account with the number SAV-7003 already exists',
      ),
      'Y-11 13 opening_balance has more decimal places than KES has: a point never groups digits',
      'Y-12 14 opening_balance has more decimal places than JPY has: a point never groups digits',
      'Y-2 3 account_number is that of line 2',
      'Y-3 4 client_external_id: no client of the bank has it',
      expect.stringContaining('5 invalid_amount_precision: opening_balance has more decimal places than KES has'),
      expect.stringMatching(/^Y-5 6 opening_balance must be an amount not below 0/),
      expect.stringContaining('account_number must begin with SAV-'),
      expect.stringMatching(/^Y-7 .*opening_balance must be an amount/),
      'Y-8 9 client_external_id is required',
      expect.stringContaining('unsupported_currency'),
    ]);
    put('corrected.csv', [
      ...readLines('accounts.refused.csv').slice(0, 1),
      ...readLines('accounts.refused.csv')
        .filter((line) => line.startsWith('Y-4'))
        .map((line) => line.replace('10.005', '10.01')),
    ]);
    expect(await bank('import --accounts corrected.csv')).toMatchObject({
      code: 0,
      out: 'accounts: 1 rows, 1 imported, 0 already existed, 0 refused\nKES: 1 accounts, deposits 10.01, loans 0.00; the books match\n',
    });
    put('changed.csv', [accountHeader, 'Y-1,X-1,SAV-7001,Savings,KES,11']);
    expect((await bank('import --accounts changed.csv')).code).toBe(1);
    expect(readLines('changed.refused.csv')[1]).toBe(
      'Y-1,X-1,SAV-7001,Savings,KES,11,2,duplicate_external_id: the bank has it with another balance',
    );
    expect(await accountNamed('Y-1')).toMatchObject({ balance: 10.05 });
  });

  it('reports that the books differ if other callers have posted during the import', async () => {
    put('clients.csv', [clientHeader, client('D-1')]);
    put('accounts.csv', [accountHeader, 'D-1,D-1,,Current,USD,5']);
    expect((await bank(both)).code).toBe(0);
    await api.transact((await accountNamed('D-1'))?.account_id ?? '', 'Deposit', 3);
    expect(await bank(both)).toMatchObject({
      code: 1,
      out: expect.stringContaining(
        'USD: 1 accounts, deposits 5.00, loans 0.00; the books have deposits 8.00, loans 0.00\n',
      ),
      err: expect.stringContaining('the books differ'),
    });
  });

  it('sends nothing if the file as a whole is invalid', async () => {
    const before = await counts();
    put('clients.csv', [clientHeader, client('W-1')]);
    const wrong: [string[], string][] = [
      [[accountHeader.replace('currency', 'curency')], 'accounts.csv: unknown column curency: known are external_id'],
      [['external_id,client_external_id,account_type'], 'column currency is missing'],
      [[`${accountHeader},currency`], 'column currency is repeated'],
      [[accountHeader, 'W-1,W-1,,"Savings,KES,1'], 'line 2: has a quotation mark that is not closed'],
    ];
    for (const [lines, message] of wrong) {
      put('accounts.csv', lines);
      expect(await bank(both)).toMatchObject({ code: 2, out: '', err: expect.stringContaining(message) });
    }
    expect(await bank('import --clients nowhere.csv')).toMatchObject({
      code: 2,
      err: expect.stringContaining('nowhere.csv'),
    });
    expect(await bank('import')).toMatchObject({
      code: 2,
      err: expect.stringContaining('--clients, --accounts, or both are needed'),
    });
    expect(await bank('import --clients clients.csv', { BANK_API_KEY: 'cbk_live_x' })).toMatchObject({
      code: 1,
      err: expect.stringContaining('401'),
    });
    expect(await counts()).toEqual(before);
  });
});
