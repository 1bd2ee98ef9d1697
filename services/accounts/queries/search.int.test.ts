import { expect, test } from 'vitest';
import type { MessageContext } from '#libs/contracts/envelope.ts';
import type { SearchHit, SearchKind } from '#libs/contracts/search.ts';
import { nameQuery } from '../clients/folded.ts';
import { corporate, newAccount, newClient, newId, retail, useAccounts } from '../test/harness.ts';
import { accountSearch, clientSearch, clientSearchFor, wordSearch } from './search.ts';

const bank = useAccounts();

const everything: SearchKind[] = ['client', 'account', 'audit_record'];

async function search(q: string, kinds = everything, context: Partial<MessageContext> = {}): Promise<SearchHit[]> {
  const reply = await bank.send('search_records', { q, kinds }, context);
  if (!reply?.ok) throw new Error(JSON.stringify(reply));
  return reply.data as SearchHit[];
}
const hitIds = (hits: SearchHit[]) => hits.map(({ id }) => id).sort();

test('finds a client by id, by the beginning of either name in any script and case, and by both phone numbers', async () => {
  const zoe = await newClient(bank, {
    ...retail,
    first_name: 'Zoë',
    last_name: 'Ólafsdóttir',
    contact_number: '+3545550001',
    ussd_phone_number: '+3545550002',
  });
  const greek = await newClient(bank, { ...retail, first_name: 'Οδυσσέας', last_name: 'Ελύτης' });
  const chinese = await newClient(bank, { ...retail, first_name: '小明', last_name: '王' });
  const company = await newClient(bank, { ...corporate, company_name: 'Straße & Söhne 100%_x' });
  for (const q of [
    zoe,
    'zoë',
    'ZOË ÓLAFS',
    'ólafsdóttir zoë',
    'O\u0301LAFS',
    '+3545550001',
    '354 555-0001',
    '003545550002',
  ])
    expect(hitIds(await search(q)), q).toEqual([zoe]);
  for (const q of ['ΟΔΥΣΣΈΑΣ', 'οδυσσέας ε', 'ελύτησ']) expect(hitIds(await search(q)), q).toEqual([greek]);
  for (const q of ['王', '小明']) expect(hitIds(await search(q)), q).toEqual([chinese]);
  for (const q of ['STRASSE & s', 'straße', 'Straße & Söhne 100%_'])
    expect(hitIds(await search(q)), q).toEqual([company]);
  for (const q of ['%', '_oë', 'afsdóttir', 'cli_', '\u{10FFFF}']) expect(await search(q), q).toEqual([]);
  const [hit] = await search('zoë');
  expect(hit).toMatchObject({
    kind: 'client',
    title: 'Zoë Ólafsdóttir',
    subtitle: 'Retail, +3545550001',
    matched: 'name',
  });
  expect(await search('zoë', ['account'])).toEqual([]);
});

test('finds a client by common notations: any word of a name, email, registration number, a phone number without country code', async () => {
  const ada = await newClient(bank, {
    ...retail,
    first_name: 'Ada Augusta',
    last_name: 'Lôvelace',
    email: 'Ada.L@Example.com',
    contact_number: '+254712345678',
  });
  const company = await newClient(bank, {
    ...corporate,
    company_name: 'The Analytical Engines Company',
    registration_number: 'C-1842/x',
    contact_number: '+441234567890',
  });
  for (const q of ['augusta', 'lovelace aug', 'ada.l@example.COM', '0712 345 678', '(0)712-345678', '+254 712 345678'])
    expect(hitIds(await search(q)), q).toEqual([ada]);
  for (const q of ['engines', 'company analyt', 'c-1842/X']) expect(hitIds(await search(q)), q).toEqual([company]);
  const russian = await newClient(bank, { ...retail, contact_number: '+79123456789' });
  const reply = await bank.send('search_records', { q: '8 912 345-67-89', phone: '+79123456789', kinds: ['client'] });
  expect(reply?.ok && hitIds(reply.data as SearchHit[])).toEqual([russian]);
  for (const q of ['345678', '+712345678']) expect(hitIds(await search(q, ['client'])), q).toEqual([]);
  expect((await search('ada.l@example.com'))[0]).toMatchObject({ matched: 'email' });
  expect((await search('C-1842/x'))[0]).toMatchObject({ matched: 'registration_number' });
});

test('finds a client and an account by exactly their external_id', async () => {
  const client_id = await newClient(bank, { ...retail, external_id: 'CRM 7/a' });
  const account_id = await newAccount(bank, client_id, { external_id: 'OLD-7' });
  for (const [q, kind, id] of [
    ['CRM 7/a', 'client', client_id],
    ['OLD-7', 'account', account_id],
  ] as const) {
    expect(await search(q), q).toMatchObject([{ kind, id, matched: 'external_id' }]);
    expect(await search(q.slice(0, -1)), q).toEqual([]);
  }
  expect(await search('old-7')).toEqual([]);
});

test('finds an account by its digits only, and by its number with a blank', async () => {
  const account_id = await newAccount(bank, await newClient(bank));
  const { rows } = await bank.pool.query<{ account_number: string }>(
    'select account_number from accounts where account_id = $1',
    [account_id],
  );
  const [prefix = '', digits = ''] = rows[0]?.account_number.split('-') ?? [];
  for (const q of [digits, `${digits.slice(0, 4)} ${digits.slice(4)}`, `${prefix.toLowerCase()} ${digits}`])
    expect(hitIds(await search(q, ['account'])), q).toEqual([account_id]);
});

test('finds an open account by id and number, and audit records by request id', async () => {
  const account_id = await newAccount(bank, await newClient(bank));
  const { rows } = await bank.pool.query<{ account_number: string }>(
    'select account_number from accounts where account_id = $1',
    [account_id],
  );
  const number = rows[0]?.account_number ?? '';
  for (const q of [account_id, number, number.toLowerCase()])
    expect(await search(q), q).toMatchObject([
      { kind: 'account', id: account_id, title: number, subtitle: 'Savings, USD, Active' },
    ]);
  expect(await search(account_id, ['client', 'audit_record'])).toEqual([]);
  const client_id = newId('client');
  await bank.send(
    'create_client',
    { client_id, client: retail },
    { message_id: client_id, request_id: 'a request of mine' },
  );
  expect(await search('a request of mine')).toMatchObject([
    { kind: 'audit_record', title: 'create_client', matched: 'request_id' },
  ]);
});

test('finds at most twenty of a hundred thousand, each by an index', async () => {
  for (let from = 1; from <= 100_000; from += 10_000)
    await bank.owner.query(
      `insert into clients (client_id, client_type, first_name, last_name, email, contact_number, created_at, updated_at, folded_name, folded_last_name, folded_words, folded_email, folding)
     select 'cli_' || md5('many' || n), 'Retail', 'Many' || n % 1000, 'Names' || n, 'a@example.com', '+99900' || n % 50000, now(), now(),
       'many' || n % 1000 || ' names' || n, 'names' || n || ' many' || n % 1000, array['many' || n % 1000, 'names' || n], 'a@example.com', 1000 from generate_series($1::int, $1::int + 9999) n`,
      [from],
    );
  await bank.owner.query('analyze clients');
  expect(await search('many')).toHaveLength(20);
  expect(await search('names777', ['client'])).toHaveLength(20);
  expect(await search('+999007777')).toHaveLength(2);
  for (const q of ['m', 'names9', '+999007777', `cli_${'1'.repeat(32)}`]) {
    const plan = await bank.pool.query(`explain (analyze, buffers, format json) ${clientSearch}`, clientSearchFor(q));
    const root = plan.rows[0]['QUERY PLAN'][0].Plan;
    expect(root['Shared Hit Blocks'] + root['Shared Read Blocks'], q).toBeLessThan(300);
    expect(JSON.stringify(root), q).not.toContain('Seq Scan');
  }
  // Neither a word that nobody has: the planner expects many of every beginning if all words that it knows are frequent.
  await bank.owner.query(
    "update clients set folded_words = array['many' || (n % 5), 'names'] from (select client_id, row_number() over () as n from clients) c where c.client_id = clients.client_id",
  );
  await bank.owner.query('vacuum analyze clients');
  const words = await bank.pool.query(`explain (analyze, buffers, format json) ${wordSearch}`, [nameQuery('zanzibar')]);
  expect(JSON.stringify(words.rows)).not.toContain('Seq Scan');
  await bank.owner.query(
    `insert into accounts (account_id, client_id, account_number, account_type, currency, status, external_id, created_at, updated_at, state)
     select 'acc_' || md5('many' || n), 'cli_' || md5('many' || n), 'SAV-' || 10000 + n, 'Savings', 'USD', 'Active', 'CORE-' || n, now(), now(), 'open' from generate_series(1, 20000) n`,
  );
  await bank.owner.query('analyze accounts');
  const plan = await bank.pool.query(`explain (format json) ${accountSearch}`, ['CORE-8', ['CORE-8'], ['CORE-8']]);
  expect(JSON.stringify(plan.rows)).not.toContain('Seq Scan');
}, 240_000);
