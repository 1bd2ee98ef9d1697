import { describe, expect, it } from 'vitest';
import { corporate, expectError, newPhone, type RestClient, retail, unknownId } from '../support/client.ts';
import { useSharedBank } from '../support/world.ts';

/** Tests the contract of clients. */
const { api } = useSharedBank();

const withUssd = (phone: string, ussd_status = 'active') => ({ ...retail(), ussd_phone_number: phone, ussd_status });
const search = (phone: string) => api.get(`/clients/ussd/search?ussd_phone=${encodeURIComponent(phone)}`);

describe('Clients: fields', () => {
  it.each(Object.keys(retail()))('Retail requires %s', async (field) => {
    // contract: clients-2
    const error = expectError(
      await api.post('/clients', { ...retail(), [field]: undefined }),
      400,
      'validation_failed',
    );
    expect(error.errors?.map((violation) => violation.field)).toEqual([field]);
  });

  it.each(Object.keys(corporate()))('Corporate requires %s', async (field) => {
    // contract: clients-3
    expectError(await api.post('/clients', { ...corporate(), [field]: undefined }), 400, 'validation_failed');
  });

  it('address, ussd_phone_number, and ussd_status are optional for Retail; the default is inactive', async () => {
    // contract: clients-4
    expect(await api.client()).toMatchObject({ ussd_status: 'inactive', address: null, ussd_phone_number: null });
  });

  it('active requires a phone number', async () => {
    // contract: clients-4
    const error = expectError(
      await api.post('/clients', { ...retail(), ussd_status: 'active' }),
      400,
      'validation_failed',
    );
    expect(error.errors?.map(({ field }) => field)).toEqual(['ussd_phone_number']);
  });

  it('fields of the other client type and unknown fields are refused by name', async () => {
    // contract: errors-5, clients-5
    const foreign = expectError(
      await api.post('/clients', { ...corporate(), ussd_phone_number: newPhone(), first_name: 'A' }),
      400,
      'unknown_field',
    );
    expect(foreign.errors?.map(({ field }) => field).sort()).toEqual(['first_name', 'ussd_phone_number']);
    const company = expectError(await api.post('/clients', { ...retail(), company_name: 'A' }), 400, 'unknown_field');
    expect(company.errors?.map(({ field }) => field)).toEqual(['company_name']);
    for (const assigned of ['client_id', 'created_at', 'updated_at'])
      expectError(await api.post('/clients', { ...retail(), [assigned]: 'x' }), 400, 'unknown_field');
  });

  it('Corporate responses omit the USSD fields', async () => {
    // contract: clients-6
    const { client_id } = (await api.post('/clients', corporate())).data<RestClient>();
    const fields = Object.keys((await api.get(`/clients/${client_id}`)).data());
    expect(fields.filter((field) => field.startsWith('ussd'))).toEqual([]);
  });
});

describe('Clients: limits', () => {
  const accepted: [string, Record<string, unknown>, string, unknown][] = [
    ['names of 100 characters', { first_name: 'x'.repeat(100) }, 'first_name', 'x'.repeat(100)],
    ['100 characters of any script', { last_name: '\u{1F600}'.repeat(100) }, 'last_name', '\u{1F600}'.repeat(100)],
    ['names are trimmed', { first_name: '  Wanjikũ  ' }, 'first_name', 'Wanjikũ'],
    ['other scripts', { first_name: '愛', last_name: 'محمد' }, 'last_name', 'محمد'],
    ['lines in an address, CRLF as LF', { address: 'House 3\r\nNairobi\nKenya' }, 'address', 'House 3\nNairobi\nKenya'],
    [
      'a joiner between letters',
      { first_name: '\u0646\u0627\u0645\u0647\u200c\u0627\u06cc' },
      'first_name',
      '\u0646\u0627\u0645\u0647\u200c\u0627\u06cc',
    ],
    ['an address of 500', { address: 'a'.repeat(500) }, 'address', 'a'.repeat(500)],
    [
      'an e-mail address of 254',
      { email: `${'e'.repeat(64)}@${`${'d'.repeat(60)}.`.repeat(3)}com`.slice(0, 254) },
      'address',
      null,
    ],
  ];
  it.each(accepted)('accepts %s', async (_, fields, field, value) => {
    // contract: clients-7
    expect(await api.client(fields)).toMatchObject({ [field]: value });
  });

  it.each<[string, Record<string, unknown>]>([
    ['a name of 101', { first_name: 'x'.repeat(101) }],
    ['a name of blanks', { first_name: '   ' }],
    ['a control character', { first_name: 'A\u0007B' }],
    ['a line break in a name', { last_name: 'A\nB' }],
    ['an escape in the address', { address: 'A\u001bB' }],
    ['a name that writes backwards', { first_name: 'A\u202eB' }],
    ['a tag character', { first_name: 'A\u{e0041}' }],
    ['a noncharacter', { address: 'A\ufdd0' }],
    ['an unassigned code point', { last_name: 'A\u0378' }],
    ['a joiner at the end', { last_name: 'A\u200d' }],
    ['a name of nothing visible', { first_name: '\u3164\u200b' }],
    ['a C1 control character', { address: 'A\u0085B' }],
    ['an address of 501', { address: 'a'.repeat(501) }],
    ['an e-mail address of 255', { email: `${'e'.repeat(243)}@example.com` }],
    ['an e-mail address without @', { email: 'ada.example.com' }],
    ['an e-mail address without a domain', { email: 'ada@' }],
    ['a number as a name', { first_name: 12 }],
    ['a list as a name', { first_name: ['Ada'] }],
  ])('refuses %s', async (_, fields) => {
    // contract: clients-7, clients-8
    const error = expectError(await api.post('/clients', { ...retail(), ...fields }), 400, 'validation_failed');
    expect(error.errors?.map(({ field }) => field)).toEqual(Object.keys(fields));
  });

  it('company_name has 1 to 200 characters, registration_number 1 to 64', async () => {
    // contract: clients-7
    expect(
      (
        await api.post('/clients', {
          ...corporate(),
          company_name: 'c'.repeat(200),
          registration_number: 'r'.repeat(64),
        })
      ).status,
    ).toBe(201);
    for (const fields of [
      { company_name: 'c'.repeat(201) },
      { company_name: '' },
      { registration_number: 'r'.repeat(65) },
      { registration_number: ' ' },
    ]) {
      expectError(await api.post('/clients', { ...corporate(), ...fields }), 400, 'validation_failed');
    }
  });

  it.each([
    ['+254 700 000 002', '+254700000002'],
    ['+254 (700) 000.003', '+254700000003'],
    ['00254-700-000-002', '+254700000002'],
    ['+254 0700 000 002', '+254700000002'],
    ['\u202a+254\u2011700\u2011000002\u202c', '+254700000002'],
    ['+39 (0)6 1234 5678', '+390612345678'],
  ])('a phone number is normalized to E.164: %s', async (given, normalised) => {
    // contract: clients-13
    expect(await api.client({ contact_number: given })).toMatchObject({ contact_number: normalised });
  });

  it.each([
    '+123456',
    '+1234567890123456',
    'call me',
    '+25470000000x',
    '',
    '++254700000002',
    '(0)700 000 002',
    '0700 000 002',
    '+0700000002',
    '254700000002',
    '254700000002.0',
    '+25470000000299',
    '+1234567',
    '+999999999999999',
  ])('refuses %s as a phone number', async (given) => {
    expectError(await api.post('/clients', { ...retail(), contact_number: given }), 400, 'validation_failed');
  });
});

describe('Clients: USSD phone number', () => {
  it('an active number belongs to one client: duplicate_ussd_phone', async () => {
    // contract: clients-16
    const phone = newPhone();
    await api.client(withUssd(phone));
    expectError(await api.post('/clients', withUssd(phone)), 400, 'duplicate_ussd_phone');
    expectError(await api.post('/clients', withUssd(phone.replace('+', '00'))), 400, 'duplicate_ussd_phone');
    expect(await api.client(withUssd(phone, 'inactive'))).toMatchObject({ ussd_phone_number: phone });
  });

  it('only one of several concurrent requests for a number succeeds', async () => {
    // contract: clients-16
    const phone = newPhone();
    const answers = await Promise.all(Array.from({ length: 10 }, () => api.post('/clients', withUssd(phone))));
    expect(answers.map(({ status }) => status).sort()).toEqual([201, ...Array<number>(9).fill(400)]);
  });

  it('the search returns the active client, or else the newest inactive one', async () => {
    // contract: clients-17
    const phone = newPhone();
    await api.client(withUssd(phone, 'inactive'));
    const newest = await api.client(withUssd(phone, 'inactive'));
    expect((await search(phone)).data()).toEqual(newest);
    const active = await api.client(withUssd(phone));
    await api.client(withUssd(phone, 'inactive'));
    expect((await search(phone)).data()).toEqual(active);
  });

  it('a leading space in ?ussd_phone= (an unencoded +) is read as +', async () => {
    // contract: clients-19, clients-21
    const phone = newPhone();
    const client = await api.client(withUssd(phone));
    for (const written of [encodeURIComponent(phone), phone, `%20${phone.slice(1)}`, `00${phone.slice(1)}`]) {
      expect((await api.get(`/clients/ussd/search?ussd_phone=${written}`)).data()).toEqual(client);
      expect((await api.get(`/clients?ussd_phone=${written}`)).list()).toEqual([client]);
    }
  });

  it('an unencoded + in ?email=, and both forms of a domain, lead to the same client', async () => {
    // contract: clients-8, clients-19, clients-21
    const local = `Ada+${newPhone().slice(1)}`;
    const client = await api.client({ email: ` ${local}@münchen.example\n` });
    expect(client.email).toBe(`${local}@xn--mnchen-3ya.example`);
    for (const written of [
      `${local}@m%C3%BCnchen.example`,
      `${local.toLowerCase().replace('+', '%2B')}@XN--MNCHEN-3YA.example`,
      `${local}@MU%CC%88NCHEN.EXAMPLE%20`,
    ]) {
      expect((await api.get(`/clients?email=${written}`)).list()).toEqual([client]);
      expect((await api.get(`/admin/search?q=${written}`)).list()).toMatchObject([
        { id: client.client_id, matched: 'email' },
      ]);
    }
    const patched = await api.patch(`/clients/${client.client_id}`, { email: `${local}@xn--mnchen-3ya.example` });
    expect(patched.data()).toEqual(client);
    for (const email of ['a@xn--a.de', 'a@i❤.ws', 'a@-münchen.de', 'a@münchen', 'a\u200bb@c.de'])
      expectError(await api.patch(`/clients/${client.client_id}`, { email }), 400, 'validation_failed');
  });

  it('/clients/ussd/search: a missing or malformed parameter is 400, an unknown number 404', async () => {
    // contract: clients-18
    expectError(await api.get('/clients/ussd/search'), 400, 'validation_failed');
    expectError(await api.get('/clients/ussd/search?ussd_phone='), 400, 'validation_failed');
    expectError(await api.get('/clients/ussd/search?ussd_phone=abc'), 400, 'validation_failed');
    expectError(await search(newPhone()), 404, 'client_not_found');
  });
});

describe('Clients: PATCH /clients/:client_id', () => {
  it('changes contact fields and nothing else', async () => {
    // contract: clients-23
    const client = await api.client({ address: 'old' });
    const changes = { email: 'new@example.com', contact_number: '00254 711 111 111', address: 'new' };
    const answer = await api.patch(`/clients/${client.client_id}`, changes);
    expect(answer.status).toBe(200);
    const changed = answer.data<RestClient>();
    expect(changed).toEqual({ ...client, ...changes, contact_number: '+254711111111', updated_at: changed.updated_at });
    expect(changed.updated_at > client.updated_at).toBe(true);
    expect((await api.get(`/clients/${client.client_id}`)).data()).toEqual(changed);
  });

  it('sets the USSD phone number and ussd_status in both directions', async () => {
    // contract: clients-23
    const { client_id } = await api.client();
    const phone = newPhone();
    const patch = (changes: object) => api.patch(`/clients/${client_id}`, changes);
    expectError(await patch({ ussd_status: 'active' }), 400, 'validation_failed');
    expect((await patch({ ussd_phone_number: phone, ussd_status: 'active' })).data()).toMatchObject({
      ussd_phone_number: phone,
      ussd_status: 'active',
    });
    expect((await patch({ ussd_status: 'inactive' })).data()).toMatchObject({ ussd_status: 'inactive' });
    expect((await patch({ ussd_status: 'active' })).data()).toMatchObject({ ussd_status: 'active' });
    expectError(await patch({ ussd_phone_number: null }), 400, 'validation_failed');
  });

  it('a number that is active for another client is duplicate_ussd_phone', async () => {
    const phone = newPhone();
    await api.client(withUssd(phone));
    const second = await api.client(withUssd(phone, 'inactive'));
    expectError(
      await api.patch(`/clients/${second.client_id}`, { ussd_status: 'active' }),
      400,
      'duplicate_ussd_phone',
    );
    expect((await api.get(`/clients/${second.client_id}`)).data()).toEqual(second);
  });

  it('a client’s own credentials set another USSD phone as inactive only, and learn nothing from it about other clients', async () => {
    // contract: clients-26
    const [taken, free, inactive] = [newPhone(), newPhone(), newPhone()];
    const owner = await api.client(withUssd(taken));
    await api.client(withUssd(inactive, 'inactive'));
    const mine = newPhone();
    const { client_id } = await api.client(withUssd(mine));
    const path = `/clients/${client_id}`;
    const bound = api.withKey((await api.key({ scopes: ['clients:read', 'clients:write'], client_id })).api_key);
    const show = async (changes: object) => {
      const { status, text, headers } = await bound.patch(path, changes);
      const told = [...headers.keys()].filter((name) => name !== 'date').sort();
      const phones = new RegExp(`${[taken, free, inactive].map((phone) => `\\${phone}`).join('|')}`, 'g');
      return [status, told, text.replace(phones, 'N').replace(/"(updated_at|request_id)":"[^"]*"/g, '')];
    };
    const back = () => api.patch(path, { ussd_phone_number: mine, ussd_status: 'active' });
    for (const more of [{}, { ussd_status: 'inactive' }, { ussd_status: 'active' }]) {
      const seen = [];
      for (const ussd_phone_number of [free, taken, inactive]) {
        await back();
        seen.push(await show({ ussd_phone_number, ...more }));
      }
      expect(seen[1]).toEqual(seen[0]);
      expect(seen[2]).toEqual(seen[0]);
      expect(seen[0]?.[0]).toBe('ussd_status' in more && more.ussd_status === 'active' ? 403 : 200);
    }
    // Unchanged, it stays active; only the bank makes one active again.
    await back();
    for (const same of [
      { ussd_phone_number: mine },
      { ussd_phone_number: mine, ussd_status: 'active', address: 'Nairobi' },
    ])
      expect((await bound.patch(path, same)).data()).toMatchObject({ ussd_phone_number: mine, ussd_status: 'active' });
    expect((await bound.patch(path, { ussd_status: 'inactive' })).data()).toMatchObject({ ussd_status: 'inactive' });
    expectError(await bound.patch(path, { ussd_status: 'active' }), 403, 'insufficient_scope');
    expect((await bound.patch(path, { ussd_phone_number: free })).data()).toMatchObject({ ussd_status: 'inactive' });
    const search = (phone: string) => api.get(`/clients/ussd/search?ussd_phone=${encodeURIComponent(phone)}`);
    expect((await search(taken)).data()).toMatchObject({ client_id: owner.client_id });
    // Its true owner is not refused.
    const { client_id: true_owner } = await api.client(withUssd(free));
    expect((await search(free)).data()).toMatchObject({ client_id: true_owner });
  });

  it('changes names, with If-Match only if the ETag matches, and audits the old and the new name', async () => {
    // contract: clients-27
    const { client_id } = await api.client();
    const path = `/clients/${client_id}`;
    const seen = await api.get(path);
    const etag = seen.header('etag') ?? '';
    const changed = await api.send('PATCH', path, { body: { last_name: 'King' }, headers: { 'if-match': etag } });
    expect(changed.data()).toMatchObject({ first_name: 'Ada', last_name: 'King' });
    expect([changed.header('etag') === etag, (await api.get(path)).header('etag')]).toEqual([
      false,
      changed.header('etag'),
    ]);
    expectError(
      await api.send('PATCH', path, { body: { last_name: 'Byron' }, headers: { 'if-match': etag } }),
      412,
      'version_mismatch',
    );
    expect((await api.send('PATCH', path, { body: { last_name: 'Byron' }, headers: { 'if-match': '*' } })).status).toBe(
      200,
    );
    const { data: records } = (
      await api.get(`/admin/audit?resource_id=${client_id}&action=update_client&outcome=success&order=asc`)
    ).body as { data: { details: object }[] };
    expect(records[0]?.details).toMatchObject({ before: { last_name: 'Lovelace' }, after: { last_name: 'King' } });
    const bound = api.withKey((await api.key({ scopes: ['clients:read', 'clients:write'], client_id })).api_key);
    expectError(await bound.patch(path, { first_name: 'Augusta' }), 403, 'insufficient_scope');
    expect((await bound.patch(path, { address: 'London' })).status).toBe(200);
  });

  it('the client is found by email address, registration number, and beginnings of words of its names', async () => {
    // contract: clients-20, clients-22
    const word = `Zz${newPhone().slice(1)}`;
    const { client_id } = await api.client({ first_name: 'Zoë', last_name: word, email: `${word}@example.com` });
    const company = (
      await api.post('/clients', { ...corporate(), registration_number: `R ${word}` })
    ).data<RestClient>();
    const ids = async (query: string) =>
      (await api.get(`/clients?${query}`)).list<RestClient>().map((client) => client.client_id);
    for (const query of [`email=${word.toLowerCase()}%40EXAMPLE.com`, `q=${word.slice(0, -1)}+zo`, `q=ZOE%20${word}`])
      expect(await ids(query)).toEqual([client_id]);
    expect(await ids(`registration_number=r%20${word.toUpperCase()}`)).toEqual([company.client_id]);
    expect(await ids(`q=${word}x`)).toEqual([]);
    const irish = await api.client({ first_name: 'Mary-Jane', last_name: `Kjær O’${word}` });
    for (const query of [
      `q=O%27${word}`,
      `q=o${word}`,
      `q=maryjane+${word}`,
      `q=kjaer+o+${word}`,
      `q=mary+jane+o${word}`,
    ])
      expect(await ids(query), query).toEqual([irish.client_id]);
    for (const query of ['q=', 'q=-', 'q=%20', 'email=x', 'registration_number='])
      expectError(await api.get(`/clients?${query}`), 400, 'validation_failed');
  });

  it('client_type and unknown fields cannot be changed, nor USSD fields of Corporate', async () => {
    // contract: clients-23
    const { client_id } = await api.client();
    for (const field of ['client_type', 'company_name', 'client_id', 'nonsense'])
      expectError(await api.patch(`/clients/${client_id}`, { [field]: 'Retail' }), 400, 'unknown_field');
    const company = (await api.post('/clients', corporate())).data<RestClient>();
    expectError(
      await api.patch(`/clients/${company.client_id}`, { ussd_status: 'active', ussd_phone_number: newPhone() }),
      400,
      'unknown_field',
    );
    expect((await api.patch(`/clients/${company.client_id}`, { address: 'new' })).data()).toMatchObject({
      address: 'new',
    });
  });

  it('an unknown client is 404', async () => {
    expectError(await api.patch(`/clients/${unknownId('cli')}`, { address: 'x' }), 404, 'client_not_found');
  });
});
