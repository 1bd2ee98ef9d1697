import { beforeAll, describe, expect, test } from 'vitest';
import type { Client } from '#libs/contracts/clients.ts';
import type { SearchHit } from '#libs/contracts/search.ts';
import { migrate } from '#libs/postgres/migrate.ts';
import { silent } from '#libs/postgres/test/test-database.ts';
import { refoldClients } from '../clients/folded.ts';
import { eraseClientRow } from '../erasure/erasure-store.ts';
import { migrations } from '../schema.ts';
import { corporate, newClient, retail, useAccounts } from '../test/harness.ts';

/** People are found however their names are typed: one row per name, by the search and by the filter of the list. */
const bank = useAccounts();

async function searched(q: string): Promise<string[]> {
  const reply = await bank.send('search_records', { q, kinds: ['client'] });
  return (reply as { data: SearchHit[] }).data.map(({ id }) => id);
}

async function listed(filter: object): Promise<string[]> {
  const reply = await bank.send('list_clients', { limit: 100, order: 'desc', ...filter });
  return (reply as { data: { items: Client[] } }).data.items.map(({ client_id }) => client_id);
}

interface Row {
  name: [first: string, last: string] | [company: string];
  found: string[];
  not?: string[];
}

const rows: Row[] = [
  // Apostrophes and hyphens, written, left out, or as a blank.
  {
    name: ['Conan', "O'Brien"],
    found: [
      "o'brien",
      'o’brien',
      'oʼbrien',
      'o´brien',
      'o`brien',
      'O＇BRIEN',
      'obrien',
      'o brien',
      'brien',
      'conan obr',
      'obrien conan',
    ],
    not: ['rien', 'conanob'],
  },
  { name: ['Rita', 'Dʼsouza'], found: ['dsouza', "d'souza", 'd’souza', 'souza rita', "D'SOUZA R"] },
  {
    name: ['Mary-Jane', 'Kariuki'],
    found: ['mary-jane', 'maryjane', 'mary jane', 'jane', 'mary‑jane', 'jane-mary', 'kariuki maryjane'],
  },
  { name: ['Maryjoan', 'Odhiambo'], found: ['mary-joan', 'mary joan', 'maryjoan'] },
  { name: ['Ines', 'De Santos'], found: ['de santos', 'desantos', 'ines desantos', 'santos'], not: ['desan'] },
  { name: ['Piet', 'Vandenberg'], found: ['van den berg', 'piet van den berg', 'van-den-berg', 'vandenb'] },
  {
    name: ['Йосип', 'Марʼяненко'],
    found: ["мар'яненко", 'мар’яненко', 'МАРʼЯНЕНКО', 'марʼян', 'маряненко', 'йосип', 'иосип'],
  },
  { name: ['Keola', 'Kaʻahumanu'], found: ["ka'ahumanu", 'ka‘ahumanu', 'kaahumanu', 'ahumanu'] },
  { name: ['זאב', 'ז׳בוטינסקי'], found: ["ז'בוטינסקי", 'ז’בוטינסקי', 'זבוטינסקי'] },
  {
    name: ['J.P. Murgan & Sohns 100%_x'],
    found: ['jp murgan', 'j.p. murgan', 'murgan sohns', 'sohns 100', 'J.P. Murgan & Sohns 100%_'],
    not: ['%', 'ohns'],
  },
  { name: ['AT&T Nairobi'], found: ['att', 'at&t', 'nairobi att'] },
  { name: ['!!!'], found: ['!!!', '!'] },
  { name: ['😀 Toys'], found: ['😀', '😀 toys', 'toys'] },
  // Letters of Latin alphabets.
  { name: ['Søren', 'Kjær'], found: ['kjaer', 'kjær', 'KJÆR', 'soren', 'soeren', 'sørén kjær'] },
  { name: ['Þór', 'Sigurðsson'], found: ['thor', 'þór', 'ÞÓR', 'sigurdsson', 'SIGURÐSSON'] },
  { name: ['Guðrún', 'Ægisdóttir'], found: ['gudrun', 'aegisdottir', 'ægis'] },
  { name: ['Paule', 'Œuvrard'], found: ['oeuvrard', 'œuvrard', 'OEUVRARD', 'ŒUVRARD'] },
  { name: ['Øystein', 'Lund'], found: ['oystein', 'oeystein', 'ØYSTEIN'] },
  { name: ['Łukasz', 'Świątek'], found: ['lukasz', 'swiatek', 'ŁUKASZ ŚWI'] },
  { name: ['Novak', 'Đoković'], found: ['dokovic', 'djokovic', 'Djoković', 'ĐOKOVIĆ'] },
  { name: ['Karmenu', 'Ħabib'], found: ['habib', 'ħabib'] },
  { name: ['Inger', 'Ŋala'], found: ['nala', 'ngala', 'ŋala'] },
  { name: ['Jörg', 'Groß'], found: ['jorg', 'joerg', 'gross', 'groß', 'GROẞ', 'JO\u0308RG'] },
  { name: ['Ines', 'Mueller-Lüdke'], found: ['müller', 'mueller', 'luedke', 'ludke', 'muellerl'] },
  { name: ['Işıl', 'Kırık'], found: ['isil', 'ISIL', 'IŞIL', 'kirik', 'KIRIK', 'kırık'] },
  { name: ['İlkay', 'Demir'], found: ['ilkay', 'İLKAY', 'ILKAY', 'ılkay'] },
  { name: ['Əli', 'Quliyev'], found: ['eli', 'ƏLİ'] },
  { name: ['Ɓala', 'Ƙwari'], found: ['bala', 'kwari', 'ƁALA'] },
  { name: ['Wanjikũ', 'Ngũgĩ'], found: ['wanjiku', 'ngugi', 'NGU\u0303GI\u0303'] },
  { name: ['Thị', 'Nguyễn'], found: ['nguyen', 'thi nguyen', 'NGUYỄN'] },
  // One name on Arabic, Persian, and Urdu keyboards.
  { name: ['علي', 'كريمي'], found: ['علي', 'علی', 'على', 'کریمی', 'كريمي', 'عَلِيّ'] },
  { name: ['فاطمة', 'الزهراء'], found: ['فاطمه', 'فاطمہ', 'فاطمۃ', 'الزهراء', 'الزھراء'] },
  { name: ['أحمد', 'آغا'], found: ['احمد', 'أَحْمَد', 'ٱحمد', 'اغا'] },
  { name: ['علی\u200cرضا', 'یوسفی'], found: ['علیرضا', 'علی رضا', 'علي رضا', 'رضا', 'يوسفي'] },
  { name: ['عبد الرحمن', 'خاں'], found: ['عبدالرحمن', 'عبد الرحمن', 'خان'] },
  { name: ['مكتب ١٢٣'], found: ['مکتب ۱۲۳', '123', '۱۲۳', 'مكتب 12'] },
  // Other scripts, and what they do not confuse.
  { name: ['Ὀδυσσεύς', 'Ελύτης'], found: ['οδυσσευς', 'ΟΔΥΣΣΕΥΣ', 'ελυτησ', 'Ελύτης'] },
  { name: ['Семён', 'Ёлкин'], found: ['семен', 'елкин', 'СЕМЁН'] },
  { name: ['शाहरुख', 'ख़ान'], found: ['खान', 'ख़ान', '\u0959ान'], not: ['खन', 'खाना'] },
  { name: ['小明', '欧阳'], found: ['欧阳', '欧阳小明', '小明欧阳', '小明', '欧'], not: ['阳'] },
  { name: ['葛\u{e0100}城', '辻'], found: ['葛城', '葛', '辻'] },
  { name: ['ガリレオ', 'ｻﾄｳ'], found: ['ｶﾞﾘﾚｵ', 'サトウ'], not: ['カリレオ'] },
  { name: ['민수', '김'], found: ['김', '\u1100\u1175\u11b7', '김민수'] },
  { name: ['შოთა', 'რუსთაველი'], found: ['ᲨᲝᲗᲐ', 'რუსთ'] },
];

const ids = new Map<Row, string>();
beforeAll(async () => {
  for (const row of rows) {
    const [first_name = '', last_name] = row.name;
    const client =
      last_name === undefined ? { ...corporate, company_name: first_name } : { ...retail, first_name, last_name };
    ids.set(row, await newClient(bank, client));
  }
});

const isForList = (q: string) => /[\p{L}\p{N}]/u.test(q);

describe.each(rows.map((row) => [row.name.join(' '), row] as const))('%s', (_, row) => {
  test.each(row.found)('is found by %s', async (q) => {
    // contract: clients-22
    const id = ids.get(row) ?? '';
    expect([q, await searched(q)]).toEqual([q, expect.arrayContaining([id])]);
    if (isForList(q)) expect([q, await listed({ q })]).toEqual([q, expect.arrayContaining([id])]);
  });
  for (const q of row.not ?? [])
    test(`is not found by ${q}`, async () => {
      const id = ids.get(row) ?? '';
      expect([...(await searched(q)), ...(isForList(q) ? await listed({ q }) : [])]).not.toContain(id);
    });
});

test('a name of combining marks alone is stored; a text without a word finds nothing', async () => {
  await newClient(bank, { ...retail, first_name: '\u0301', last_name: '\u0301' });
  for (const q of ['\u0301', 'ـ', "''", '\\', "o' | 'z"]) {
    expect([q, await searched(q)]).toEqual([q, []]);
    if (isForList(q)) expect([q, await listed({ q })]).toEqual([q, []]);
  }
});

test('an e-mail address is found in both forms of its domain, in any case, and with a lost plus', async () => {
  // contract: clients-21
  const id = await newClient(bank, { ...retail, email: 'Jörg+Bank@münchen.example' });
  for (const q of [
    'jörg+bank@münchen.example',
    'JÖRG+BANK@MÜNCHEN.EXAMPLE',
    'jo\u0308rg+bank@xn--mnchen-3ya.example',
    'Jörg+Bank@XN--MNCHEN-3YA.example',
    ' jörg bank@münchen.example ',
  ])
    expect([q, await searched(q), await listed({ email: q })]).toEqual([q, [id], [id]]);
  expect(await searched('jorg+bank@münchen.example')).toEqual([]);
});

test('a search compares as the field stores: trimmed, but not for an external_id', async () => {
  // contract: names-1
  const [inside, plain] = [' CRM 9 ', 'CRM 9'];
  const [odd, even] = [
    await newClient(bank, { ...retail, external_id: inside }),
    await newClient(bank, { ...corporate, external_id: plain, registration_number: ' REG 9 ' }),
  ];
  expect(new Set(await searched(inside))).toEqual(new Set([odd, even]));
  expect(await searched(plain)).toEqual([even]);
  expect([await listed({ external_id: inside }), await listed({ external_id: plain })]).toEqual([[odd], [even]]);
  for (const q of ['REG 9', ' reg 9 ', '\treg 9\n']) expect(await searched(q)).toEqual([even]);
});

test('a client that another version has stored is found after the migration, and after the next sweep', async () => {
  const stored = (id: string) =>
    bank.owner.query(
      'update clients set folding = 0, folded_name = null, folded_last_name = null, folded_words = null, folded_email = null, folded_registration = null where client_id = $1',
      [id],
    );
  const id = await newClient(bank, {
    ...retail,
    first_name: 'Ødegård',
    last_name: 'Refolded',
    email: 'refolded@example.com',
  });
  const isFound = async () => [await searched('odegard'), await listed({ email: 'Refolded@example.com' })];
  for (const fill of [
    () => migrate({ ...migrations, owner_url: bank.ownerUrl, ...bank.login }, silent),
    () => refoldClients(bank.pool),
  ]) {
    await stored(id);
    expect(await isFound()).toEqual([[], []]);
    await fill();
    expect(await isFound()).toEqual([[id], [id]]);
  }
  expect(await refoldClients(bank.pool)).toBe(0);
});

test('an erased client is no longer found by its former or present name', async () => {
  const id = await newClient(bank, { ...retail, first_name: 'Vanisha', last_name: 'Gone' });
  expect(await searched('vanisha')).toEqual([id]);
  await eraseClientRow(bank.owner, id, new Date().toISOString());
  expect(await refoldClients(bank.pool)).toBe(0);
  for (const q of ['vanisha', 'erased', '(erased)']) expect(await searched(q)).toEqual([]);
});
