import { describe, expect, test } from 'vitest';
import type { Client } from '#libs/contracts/clients.ts';
import { computeEtag } from '#libs/contracts/etag.ts';
import type { Note } from '#libs/contracts/notes.ts';
import { corporate, newAccount, newClient, newId, readOutboxByKey, retail, useAccounts } from '../test/harness.ts';
import { clientFilters } from './client-store.ts';
import { nameQuery } from './folded.ts';

/** Tests the contract of PATCH of a client, its versions, and the filters of GET /clients. */
const bank = useAccounts();

const read = async (client_id: string) => ((await bank.send('get_client', { client_id })) as { data: Client }).data;

describe('names', () => {
  test('changes are audited with old and new values, and published by field name only', async () => {
    // contract: clients-24
    const client_id = await newClient(bank);
    const message_id = `cmd_${newId('client').slice(4)}`;
    const changes = { last_name: 'King', first_name: retail.first_name, email: 'king@example.com' };
    expect(await bank.send('update_client', { client_id, changes }, { message_id })).toMatchObject({
      ok: true,
      data: { first_name: 'Ada', last_name: 'King' },
    });
    const { rows } = await bank.owner.query(
      "select details from audit where resource_id = $1 and action = 'update_client'",
      [client_id],
    );
    expect(rows).toEqual([
      {
        details: {
          changed_fields: ['last_name', 'email'],
          before: { last_name: 'Lovelace' },
          after: { last_name: 'King' },
        },
      },
    ]);
    const events = (await readOutboxByKey(bank.pool, client_id)).filter(({ topic }) => topic === 'clients');
    expect(events.at(-1)?.payload).toMatchObject({ changed_fields: ['last_name', 'email'] });
    expect(JSON.stringify(events)).not.toMatch(/King|Lovelace/);
  });

  test('changes of company names are audited, too; a change of only contact fields has no names', async () => {
    // contract: clients-23
    const client_id = await newClient(bank, corporate);
    expect(
      await bank.send('update_client', {
        client_id,
        changes: { company_name: 'Engines', registration_number: 'AE-2' },
      }),
    ).toMatchObject({ ok: true, data: { company_name: 'Engines', registration_number: 'AE-2' } });
    await bank.send('update_client', { client_id, changes: { address: 'Turin' } });
    const { rows } = await bank.owner.query(
      "select details from audit where resource_id = $1 and action = 'update_client' order by created_at, audit_id",
      [client_id],
    );
    expect(rows.map(({ details }) => Object.keys(details as object).sort())).toEqual(
      expect.arrayContaining([['after', 'before', 'changed_fields'], ['changed_fields']]),
    );
  });

  test('names of the other client type are refused by name', async () => {
    const [person, company] = [await newClient(bank), await newClient(bank, corporate)];
    const unknown = (...fields: string[]) => ({
      ok: false,
      refusal: { code: 'unknown_field', errors: fields.map((field) => ({ field, code: 'unknown_field' })) },
    });
    expect(
      await bank.send('update_client', { client_id: person, changes: { company_name: 'x', registration_number: 'y' } }),
    ).toMatchObject(unknown('company_name', 'registration_number'));
    expect(
      await bank.send('update_client', { client_id: company, changes: { first_name: 'x', ussd_status: 'inactive' } }),
    ).toMatchObject(unknown('first_name', 'ussd_status'));
  });
});

describe('If-Match', () => {
  test('only the named version is changed; otherwise the refusal is version_mismatch, and nothing is written', async () => {
    const client_id = await newClient(bank, { ...retail, metadata: { b: '1', a: '2' } });
    const first = computeEtag(await read(client_id));
    const patch = (if_match: string[] | undefined, email: string) =>
      bank.send('update_client', { client_id, changes: { email }, if_match });
    expect(await patch(['"x"', first], 'b@example.com')).toMatchObject({ ok: true });
    const second = computeEtag(await read(client_id));
    expect(second).not.toBe(first);
    for (const stale of [[first], []])
      expect(await patch(stale, 'c@example.com')).toMatchObject({ ok: false, refusal: { code: 'version_mismatch' } });
    expect(computeEtag(await read(client_id))).toBe(second);
    expect(await patch(undefined, 'd@example.com')).toMatchObject({ ok: true });
  });

  test('a repeat of a change that was made is answered with the client, whatever version it names', async () => {
    // contract: clients-29
    const client_id = await newClient(bank, { ...retail, metadata: { b: '1', a: '2' } });
    const first = computeEtag(await read(client_id));
    const patch = (changes: object) => bank.send('update_client', { client_id, changes, if_match: [first] });
    const changes = { email: 'b@example.com', metadata: { a: '2', b: '1' } };
    const changed = await patch(changes);
    expect(await patch(changes)).toEqual(changed);
    const events = (await readOutboxByKey(bank.pool, client_id)).filter(({ topic }) => topic === 'clients');
    expect(events).toHaveLength(2);
    expect(await patch({ ...changes, address: 'x' })).toMatchObject({
      ok: false,
      refusal: { code: 'version_mismatch' },
    });
  });

  test('only one of ten concurrent changes of one version succeeds', async () => {
    const client_id = await newClient(bank);
    const if_match = [computeEtag(await read(client_id))];
    const replies = await Promise.all(
      Array.from({ length: 10 }, (_, i) =>
        bank.send('update_client', { client_id, changes: { address: `House ${i}` }, if_match }),
      ),
    );
    expect(replies.map((reply) => (reply?.ok ? 'done' : reply?.refusal.code)).sort()).toEqual([
      'done',
      ...Array<string>(9).fill('version_mismatch'),
    ]);
  });

  test('an unknown client is not found, even if a version is named', async () => {
    expect(
      await bank.send('update_client', { client_id: newId('client'), changes: { address: 'x' }, if_match: [] }),
    ).toMatchObject({ ok: false, refusal: { code: 'client_not_found' } });
  });
});

describe('GET /clients', () => {
  const found = async (filter: object, context = {}) => {
    const reply = await bank.send('list_clients', { limit: 100, order: 'desc', ...filter }, context);
    return (reply as { data: { items: Client[] } }).data.items.map(({ client_id }) => client_id);
  };

  test('email and registration number must match as a whole, ignoring case', async () => {
    // contract: clients-21
    const person = await newClient(bank, { ...retail, email: 'Grace.Hopper@Example.org' });
    const company = await newClient(bank, { ...corporate, registration_number: 'Ärzte-Öl 7' });
    expect([
      await found({ email: 'grace.hopper@example.ORG' }),
      await found({ email: 'grace.hopper@example.or' }),
    ]).toEqual([[person], []]);
    expect([
      await found({ registration_number: 'ÄRZTE-öl 7' }),
      await found({ registration_number: 'Arzte-Ol 7' }),
    ]).toEqual([[company], []]);
    expect(await found({ email: 'grace.hopper@example.org', client_type: 'Corporate' })).toEqual([]);
  });

  test.each([
    ['Zoë', 'Brønsted-Ørsted', ['zoe', 'ZOË', 'orsted zo', 'bron', 'brønsted z'], ['oe', 'zoe x', 'sted']],
    ['José', 'Müller', ['mull jos', 'JOSE MÜLLER', 'jose\u0301'], ['josef']],
    ['Nguyễn', 'Thị Minh', ['nguyen minh', 'thi min', 'mi ngu th'], ['hinh']],
    ['Ελένη', 'Παπαδάκη', ['ελενη', 'ΠΑΠΑΔΑΚΗ'], ['ενη']],
    ['محمّد', 'عليّ', ['محمد', 'عل محم'], ['حمد']],
    ['Straße', 'Weiß', ['strasse weiss'], ['trasse']],
    ['नमस्ते', 'कुमार', ['नम', 'कुमार नमस्ते'], ['मार']],
  ])('q finds %s %s by the beginnings of its words, in any order', async (first_name, last_name, found_by, not_by) => {
    // contract: clients-22
    const client_id = await newClient(bank, { ...retail, first_name, last_name });
    for (const q of found_by) expect(await found({ q }), q).toContain(client_id);
    for (const q of not_by) expect(await found({ q }), q).not.toContain(client_id);
  });

  test('q also searches companies, accepts special characters, and is paged', async () => {
    const ids: string[] = [];
    for (let i = 0; i < 5; i++)
      ids.push(await newClient(bank, { ...corporate, company_name: `O'Zwicky & Söhne (${i}) Ltd.` }));
    for (const q of ["zwicky's", "'zwicky':*", 'zwicky & | ! <->', 'sohne\\zwicky'])
      expect((await found({ q: q.replace("'s", '') })).length, q).toBe(5);
    const first = await bank.send('list_clients', { q: 'zwick', limit: 3, order: 'asc' });
    const { items, next } = (first as { data: { items: Client[]; next?: object } }).data;
    expect(items.map(({ client_id }) => client_id)).toEqual(ids.slice(0, 3));
    expect(await found({ q: 'zwick', order: 'asc', after: next })).toEqual(ids.slice(3));
  });

  test('q and the search of staff find names with words that are longer than a lexeme can be', async () => {
    // Decomposed, ㌖ has 18 bytes and 각 has 9. A lexeme has at most 2,046; of 2,048, Postgres stores none.
    for (const [company_name, ...queries] of [
      [`x${'㌖'.repeat(199)}`, `x${'㌖'.repeat(199)}`, 'x㌖'],
      [`${'x'.repeat(14)}${'㌖'.repeat(113)}`, 'xx'],
      ['각'.repeat(200), '각'.repeat(255), '각'],
    ] as [string, ...string[]][]) {
      const client_id = await newClient(bank, { ...corporate, company_name });
      for (const q of queries) {
        expect(await found({ q }), q).toContain(client_id);
        const hits = await bank.send('search_records', { q, kinds: ['client'] });
        expect(JSON.stringify(hits), q).toContain(client_id);
      }
    }
  });

  test('a bound caller finds only itself', async () => {
    const [own] = [
      await newClient(bank, { ...retail, last_name: 'Quux' }),
      await newClient(bank, { ...retail, last_name: 'Quux' }),
    ];
    expect(await found({ q: 'quux' }, { bound_client_id: own })).toEqual([own]);
  });

  test('each filter has an index', async () => {
    await bank.owner.query(
      `insert into clients (client_id, client_type, company_name, registration_number, email, contact_number, created_at, updated_at, folded_words, folded_email, folded_registration, folding)
       select 'cli_' || md5(n::text), 'Corporate', 'Company ' || md5(n::text), 'R-' || n, 'e' || n || '@example.com', '+1', now(), now(),
         array['company', md5(n::text)], 'e' || n || '@example.com', 'r-' || n, 1 from generate_series(1, 20000) n`,
    );
    await bank.owner.query('analyze clients');
    for (const [filter, value] of [
      [clientFilters.email, 'e77@example.com'],
      [clientFilters.registration_number, 'r-77'],
      [clientFilters.q, nameQuery('28dd2c79 comp')],
    ] as const) {
      const plan = await bank.pool.query(
        `explain (analyze, buffers, format json) select * from clients where ${filter.replace('?', '$1::text')} order by created_at desc, client_id desc limit 101`,
        [value],
      );
      const root = plan.rows[0]['QUERY PLAN'][0].Plan;
      expect([root['Actual Rows'], JSON.stringify(root).includes('Seq Scan')], filter).toEqual([1, false]);
    }
  });
});

describe('notes', () => {
  const add = (on: { client_id: string } | { account_id: string }, note: string, context = {}) => {
    const note_id = newId('note');
    const headers = { message_id: note_id, subject: note_id, ...context };
    return 'account_id' in on
      ? bank.send('add_account_note', { note_id, ...on, note }, headers)
      : bank.send('add_client_note', { note_id, ...on, note }, headers);
  };
  const notesOn = async (on: object) =>
    ((await bank.send('list_notes', { limit: 10, order: 'desc', ...on })) as { data: { items: Note[] } }).data.items;

  test('are stored separately for a client and each account, newest first, with their author, and are in no event or audit record', async () => {
    const client_id = await newClient(bank);
    const account_id = await newAccount(bank, client_id);
    expect(await add({ client_id }, 'first', { time: '2026-01-02T03:04:05.678Z' })).toMatchObject({
      ok: true,
      data: { client_id, account_id: null, note: 'first', actor: 'key:key_tester' },
    });
    await add({ client_id }, 'secret second', { time: '2026-01-02T03:04:06.678Z' });
    await add({ account_id }, 'of the account');
    expect((await notesOn({ client_id })).map(({ note }) => note)).toEqual(['secret second', 'first']);
    expect(await notesOn({ account_id })).toMatchObject([{ client_id, account_id, note: 'of the account' }]);
    const { rows } = await bank.owner.query(
      "select details::text from audit where action in ('add_client_note', 'add_account_note')",
    );
    expect(rows.length).toBeGreaterThanOrEqual(3);
    expect(JSON.stringify([rows, await readOutboxByKey(bank.pool, client_id)])).not.toContain('secret second');
    await expect(bank.pool.query("update notes set note = 'x'")).rejects.toThrow('permission denied');
    await expect(bank.pool.query('delete from notes')).rejects.toThrow('permission denied');
  });

  test('a repeat does not write a second note, and notes require an existing resource', async () => {
    const client_id = await newClient(bank);
    const note_id = newId('note');
    for (const replayed of [undefined, true])
      expect(
        await bank.send(
          'add_client_note',
          { note_id, client_id, note: 'once' },
          { message_id: note_id, fingerprint: 'a' },
        ),
      ).toMatchObject({ ok: true, ...(replayed && { replayed }) });
    expect(await notesOn({ client_id })).toHaveLength(1);
    const missing = { client: newId('client'), account: newId('account') };
    for (const [on, code] of [
      [{ client_id: missing.client }, 'client_not_found'],
      [{ account_id: missing.account }, 'account_not_found'],
    ] as const) {
      expect(await add(on, 'x')).toMatchObject({ ok: false, refusal: { code } });
      expect(await bank.send('list_notes', { ...on, limit: 5, order: 'desc' })).toMatchObject({
        ok: false,
        refusal: { code },
      });
    }
  });

  test('are not visible to callers bound to a client', async () => {
    const client_id = await newClient(bank);
    const bound = { bound_client_id: client_id };
    const refused = { ok: false, refusal: { code: 'insufficient_scope' } };
    expect(await add({ client_id }, 'mine', bound)).toMatchObject(refused);
    expect(await bank.send('list_notes', { client_id, limit: 5, order: 'desc' }, bound)).toMatchObject(refused);
  });
});
