import { beforeAll, describe, expect, it } from 'vitest';
import type { RestAccount, RestTransaction, RestTransfer } from '../support/client.ts';
import { everyEndpoint, expectNothingDone, expectRefused, expectViolations, named } from '../support/hostile.ts';
import { useBank } from '../support/world.ts';

/** Hostile input: query parameters, ids in paths, and paths themselves. */
const world = useBank();
const { api } = world;

let account: RestAccount;
let transaction: RestTransaction;
let transfer: RestTransfer;
beforeAll(async () => {
  account = await api.newAccount({ initial_deposit: 10 });
  transaction = await api.transact(account.account_id, 'Deposit', 1, { reference: "O'Brien; -- %_\\" });
  transfer = await api.transfer(account.account_id, (await api.newAccount()).account_id, 1);
});

const lists = [
  '/clients',
  '/accounts',
  '/transactions',
  '/transfers',
  '/admin/api-keys',
  '/accounts/:id/entries',
  '/accounts/:id/status-transitions',
  '/accounts/:id/holds',
  '/webhooks',
  '/admin/audit',
  '/admin/dead-letters',
  '/admin/approvals',
];
const fill = (path: string) => path.replace(':id', account.account_id);
const reads = everyEndpoint.filter(({ method }) => method === 'GET').map(({ path }) => path);

describe('query parameters', () => {
  expectNothingDone(world);

  it.each(reads)('GET %s refuses an unknown parameter by name', async (path) => {
    const needed = path.endsWith('/ussd/search')
      ? 'ussd_phone=%2B254700000001&'
      : path.endsWith('/search')
        ? 'q=x&'
        : path.endsWith('/posting-statistics')
          ? 'currency=USD&'
          : path.endsWith('/staff-names')
            ? 'actors=key:x&'
            : '';
    for (const [query, name] of [
      ['x=1', 'x'],
      ['x', 'x'],
      ['x=', 'x'],
      ['=1', ''],
      ['limit[]=1', 'limit[]'],
      ['limit[a]=1', 'limit[a]'],
      ['limit[$gt]=1', 'limit[$gt]'],
      ['Limit=1', 'Limit'],
      ['limit%20=1', 'limit '],
      ['%00=1', '\u0000'],
      ['__proto__=1', '__proto__'],
      ['__proto__[x]=1', '__proto__[x]'],
      ['constructor=1', 'constructor'],
      ['toString=1', 'toString'],
      ['hasOwnProperty=1', 'hasOwnProperty'],
      ['%F0%9F%92%B0=1', '\u{1F4B0}'],
      ['%zz=1', '%zz'],
    ] as const) {
      expectViolations(await api.get(`${path}?${needed}${query}`), [[name, 'unknown_parameter']]);
    }
  });

  it.each(lists)('GET %s validates limit, order, and cursor', async (list) => {
    const path = fill(list);
    const wrong = {
      limit: [
        '',
        '0',
        '-1',
        '501',
        '1e2',
        '1.0',
        '+1',
        '%2b1',
        '%201',
        '1%20',
        '0x10',
        '00001',
        '1,2',
        'x',
        'NaN',
        '%D9%A3',
        '\uff11',
        '9'.repeat(400),
        '1?order=asc',
        '1;order=asc',
      ],
      order: ['', 'ASC', 'Desc', 'random', 'asc;', 'asc,desc', 'toString', "asc' --"],
    };
    for (const [name, values] of Object.entries(wrong)) {
      for (const value of values)
        expectViolations(await api.get(`${path}?${name}=${encodeURI(decodeURI(value))}`), [
          [name, 'validation_failed'],
        ]);
    }
    for (const cursor of [
      '',
      'x',
      'abc',
      'e30',
      'bnVsbA',
      'AAAAAAAAAAAAAAAAAAAAAAAAAA',
      '%25',
      '%F0%9F%92%B0',
      '../..',
      "'",
      'A'.repeat(2000),
    ]) {
      expectViolations(await api.get(`${path}?cursor=${cursor}`), [['cursor', 'invalid_cursor']]);
    }
    expectViolations(await api.get(`${path}?cursor=${'A'.repeat(10_000)}`), [['cursor', 'validation_failed']]);
    expectViolations(await api.get(`${path}?limit=0&order=up&nonsense=1`), [
      ['limit', 'validation_failed'],
      ['order', 'validation_failed'],
      ['nonsense', 'unknown_parameter'],
    ]);
  });

  it.each(['limit=1&limit=2', 'limit=1&limit=1', 'limit=1&%6c%69%6d%69%74=1', 'limit=&limit'])(
    'repeated parameters are refused: %s',
    async (query) => {
      for (const path of lists)
        expectViolations(await api.get(`${fill(path)}?${query}`), [['limit', 'validation_failed']]);
    },
  );

  it('a cursor is valid only for its list, filters, and order, and only unchanged', async () => {
    const { next = '' } = await api.get('/transactions?limit=1');
    const cursor = new URL(next, 'http://x').searchParams.get('cursor') ?? '';
    expect((await api.get(`/transactions?limit=1&cursor=${cursor}`)).status).toBe(200);
    const flipped = (at: number) =>
      cursor.slice(0, at) + (cursor.charAt(at) === 'A' ? 'B' : 'A') + cursor.slice(at + 1);
    for (const query of [
      `order=asc&cursor=${cursor}`,
      `status=Completed&cursor=${cursor}`,
      `cursor=${flipped(0)}`,
      `cursor=${flipped(30)}`,
      `cursor=${cursor}=`,
      `cursor=${cursor}A`,
      `cursor=%20${cursor}`,
      `cursor=${cursor.slice(0, -2)}`,
    ]) {
      expectRefused(await api.get(`/transactions?${query}`), 400, 'invalid_cursor');
    }
    for (const path of ['/transfers', '/accounts', '/clients', `/accounts/${account.account_id}/entries`])
      expectRefused(await api.get(`${path}?cursor=${cursor}`), 400, 'invalid_cursor');
  });

  it.each<[string, string, string, string[]]>([
    ['/clients', 'client_type', 'validation_failed', ['', 'retail', 'Retail%20', "Retail'", '%00', 'toString']],
    [
      '/clients',
      'ussd_phone',
      'validation_failed',
      [
        '',
        '%00',
        '%zz',
        '%C0%AF',
        '%ED%A0%80',
        '123456',
        '1234567890123456',
        '%2B2547x',
        "1234567'--",
        '1234567%0a',
        '%D9%A1%D9%A2%D9%A3%D9%A4%D9%A5%D9%A6%D9%A7%D9%A8',
        '%EF%BC%912345678',
      ],
    ],
    ['/clients/ussd/search', 'ussd_phone', 'validation_failed', ['', '+', '%00', 'x', "' or 1=1--"]],
    ['/accounts', 'account_type', 'validation_failed', ['', 'savings', 'Teller', 'Vault', 'System']],
    ['/accounts', 'status', 'validation_failed', ['', 'active', 'opening', 'Closed']],
    [
      '/accounts',
      'currency',
      'unsupported_currency',
      ['', 'usd', 'US', 'XXX', 'USD%20', "USD'", '%F0%9F%92%B0', 'toString'],
    ],
    ['/transactions', 'transaction_type', 'validation_failed', ['', 'deposit', 'LoanPayment', 'Loan%00Payment']],
    ['/transactions', 'status', 'validation_failed', ['', 'completed', 'Reversed']],
    ['/transactions', 'reference', 'validation_failed', ['%00', 'a%00b', 'x'.repeat(101)]],
    ['/transactions', 'idempotency_key', 'validation_failed', ['%00', 'x'.repeat(256)]],
    [
      '/transactions',
      'min_amount',
      'invalid_amount',
      [
        '',
        '-1',
        '-0.01',
        'x',
        'NaN',
        'Infinity',
        '.5',
        '1.',
        '0x10',
        '1e31',
        '1e400',
        '1,5',
        '%D9%A3',
        '9'.repeat(41),
        "1'",
      ],
    ],
    ['/transactions', 'max_amount', 'invalid_amount', ['', '-1e2', '1e-31', '1_000']],
    ...['/transactions', '/transfers'].flatMap((path) =>
      ['from', 'to'].map((name): [string, string, string, string[]] => [
        path,
        name,
        'validation_failed',
        [
          '',
          'now',
          'infinity',
          '-infinity',
          'epoch',
          'today',
          '0',
          '1767225600',
          '2026',
          '2026-1-1',
          '2026-13-01',
          '2026-00-01',
          '2026-01-00',
          '2026-02-30',
          '2025-02-29',
          '2026-01-01T00:00:00',
          '2026-01-01T25:00:00Z',
          '2026-01-01T00:60:00Z',
          '2026-01-01T00:00:60Z',
          '2026-01-01T00:00:00%2B24:00',
          '2026-01-01T00:00:00%2B99:99',
          '0000-01-01',
          '0000-12-31T23:59:59Z',
          '0001-01-01T00:00:00%2B00:01',
          '9999-12-31T23:59:59-00:01',
          '%2B012026-01-01',
          '-002026-01-01',
          '2026-W01',
          '20260101',
          '%EF%BC%92026-01-01',
          '2026-01-01%00',
          "2026-01-01'",
        ],
      ]),
    ),
  ])('GET %s?%s= is %s', async (path, name, code, values) => {
    for (const value of values)
      expectViolations(await api.get(`${path}?${name}=${value}`), [
        [name, value.includes('%00') ? 'validation_failed' : code],
      ]);
  });

  it('accepts values at the limits', async () => {
    for (const query of [
      '',
      '&',
      '&&',
      'limit=500',
      'limit=1',
      'from=0001-01-01&to=9999-12-31T23:59:59.999999999Z',
      'from=2024-02-29',
      'from=2026-01-01T00:00:00+00:00',
      'from=2026-01-02&to=2026-01-01',
      'min_amount=1e30',
      'max_amount=1e-30',
      `min_amount=${'9'.repeat(40)}`,
      'min_amount=0.00000001',
      'min_amount=-0',
      'transaction_type=Loan+Payment',
      `reference=${'%F0%9F%92%B0'.repeat(50)}`,
    ]) {
      expect((await api.get(`/transactions?${query}`)).status, query).toBe(200);
    }
  });

  it.each(
    [
      "' or '1'='1",
      "'; drop table transactions;--",
      '%',
      '_',
      '\\',
      '*',
      '{{7*7}}',
      '${7*7}',
      '$1',
      '%s%n',
      '<script>',
      '\u202e',
      'null',
      '00000000',
      '\u0001',
      'x'.repeat(10_000),
    ].map((text, index) => [index, text] as const),
  )('a filter that is not an id finds nothing (%i)', async (_, text) => {
    const value = encodeURIComponent(text);
    for (const query of [
      '/accounts?client_id=',
      '/transactions?account_id=',
      '/transactions?transfer_id=',
      '/transfers?account_id=',
    ]) {
      const answer = await api.get(query + value);
      expect([answer.status, answer.text]).toEqual([200, '{"status":"success","data":[]}']);
    }
    if (text.length <= 100)
      expect((await api.get(`/transactions?reference=${value}`)).text).toBe('{"status":"success","data":[]}');
  });

  it('a reference of special characters is matched literally, not as a pattern', async () => {
    expect(
      (await api.get(`/transactions?reference=${encodeURIComponent(transaction.reference ?? '')}`)).list(),
    ).toEqual([transaction]);
    // A reference is stored without the blanks around it.
    expect(
      (await api.get(`/transactions?reference=${encodeURIComponent(` ${transaction.reference}\n`)}`)).list(),
    ).toEqual([transaction]);
    for (const pattern of ['O%', 'O_Brien; -- %_\\', "o'brien; -- %_\\", "O'Brien; -- %_"])
      expect((await api.get(`/transactions?reference=${encodeURIComponent(pattern)}`)).list()).toEqual([]);
  });
});

describe('ids in paths: a text that is not exactly an id is unknown', () => {
  expectNothingDone(world);
  const odd = [
    '%00',
    '%0a',
    '%20',
    '%',
    '%2',
    '%zz',
    '%C0%AF',
    '%FF%FE',
    '%ED%A0%80',
    '%2f',
    '..%2f..%2fetc%2fpasswd',
    '%2e%2e%2f',
    '+',
    '*',
    ':id',
    '__proto__',
    'constructor',
    'null',
    '0',
    '-1',
    "'",
    "'%20or%20'1'='1",
    '%22',
    '%3Cscript%3E',
    '$%7B7*7%7D',
    '%7B%7B7*7%7D%7D',
    '%F0%9F%92%B0',
    '%E2%80%AE',
    ';',
    'a;b',
    ',',
    '~',
    'x'.repeat(10_240),
    '%41'.repeat(10_000),
  ];

  it.each(named(odd))('%s', async (_, id) => {
    for (const [path, code] of [
      ['/clients/@', 'client'],
      ['/accounts/@', 'account'],
      ['/accounts/@/entries', 'account'],
      ['/accounts/@/status-transitions', 'account'],
      ['/accounts/number/@/balance', 'account'],
      ['/transactions/@', 'transaction'],
      ['/transfers/@', 'transfer'],
      ['/admin/api-keys/@', 'api_key'],
    ] as const) {
      const { message } = expectRefused(await api.get(path.replace('@', () => id)), 404, `${code}_not_found`);
      expect(message.length).toBeLessThan(200);
    }
    for (const [path, body, code] of [
      ['/transactions/@/reversal', { reason: 'x' }, 'transaction'],
      ['/accounts/@/status-transitions', { status: 'Active' }, 'account'],
      ['/admin/api-keys/@/rotation', {}, 'api_key'],
      ['/admin/api-keys/@/revocation', {}, 'api_key'],
    ] as const) {
      expectRefused(
        await api.post(
          path.replace('@', () => id),
          body,
        ),
        404,
        `${code}_not_found`,
      );
    }
  });

  it('ids in other letters, with additions, or of another kind', async () => {
    const changed = (id: string) => [
      id.toUpperCase(),
      id.slice(0, 4).toUpperCase() + id.slice(4),
      `${id}%00`,
      `${id}%20`,
      `%20${id}`,
      `${id}%0a`,
      `${id}%2f`,
      id.slice(0, -1),
      `${id}0`,
      `${id.slice(0, -1)}g`,
      `${id.slice(0, -1)}%EF%BC%91`,
      id.replace('_', '-'),
      id.replace('_', '%5f%5f'),
      `${id}.json`,
    ];
    for (const id of [...changed(account.account_id), transaction.transaction_id])
      expectRefused(await api.get(`/accounts/${id}`), 404, 'account_not_found');
    for (const id of [...changed(transaction.transaction_id), transfer.transfer_id, account.account_id])
      expectRefused(await api.get(`/transactions/${id}`), 404, 'transaction_not_found');
    for (const id of [...changed(transfer.transfer_id), transaction.transaction_id])
      expectRefused(await api.get(`/transfers/${id}`), 404, 'transfer_not_found');
    for (const id of [...changed(account.client_id), 'ussd'])
      expectRefused(await api.get(`/clients/${id}`), 404, 'client_not_found');
    const number = account.account_number;
    for (const other of [
      number.toLowerCase(),
      `${number}%20`,
      number.slice(0, -1),
      `${number}0`,
      number.replace('-', '%E2%80%90'),
      number.replace('-', ''),
      'TLR-USD',
      'VLT-USD',
      'VLT-USD%2F0',
    ])
      expectRefused(await api.get(`/accounts/number/${other}/balance`), 404, 'account_not_found');
    const encoded = [...account.account_id].map((c) => `%${c.charCodeAt(0).toString(16)}`).join('');
    expect((await api.get(`/accounts/${encoded}`)).data()).toEqual(
      (await api.get(`/accounts/${account.account_id}`)).data(),
    );
  });
});

describe('paths', () => {
  it.each(
    [
      '/Clients',
      '/CLIENTS',
      '/clients;x=1',
      '/clients.json',
      '/clients%2f',
      '/clients%00',
      '/clients%20',
      '/v1/clients',
      '//clients',
      '/./%2e/clients%2f..',
      '/clients//',
      '/clients/ussd/Search',
      '/clients/ussd/search/',
      '/accounts//balance',
      '/transactions/x/reversal/',
      '/admin',
      '/admin/',
      '/Admin/api-keys',
      '/.env',
      '/.git/config',
      '/package.json',
      '/metrics',
      '/livez',
      '/readyz',
      '/healthz',
      '/favicon.ico',
      '/docs2',
      '/docs/nope',
      '/%',
      '/%zz',
      '/%00',
      '/\u{1F4B0}',
      `/${'a/'.repeat(5000)}`,
    ].map((path) => [path.slice(0, 40), path] as const),
  )('%s is not a route', async (_, path) => {
    const answer = await api.get(path);
    expect(answer.status, answer.text).toBe(404);
    expect(['route_not_found', 'client_not_found', 'account_not_found']).toContain(expectRefused(answer, 404).code);
    expectRefused(await api.with({}).get(path), 401, 'missing_credentials');
  });

  it.each(
    [
      'nope',
      'nope.js',
      '..%2f..%2f..%2fpackage.json',
      '..%2fpackage.json',
      '%2e%2e%2f%2e%2e%2fpackage.json',
      '..%5c..%5cpackage.json',
      '%00',
      '%zz',
      '.env',
      'swagger-ui.css%00',
      'x'.repeat(5000),
    ].map((path) => [path.slice(0, 40), path] as const),
  )('/docs/static/%s is not a file', async (_, path) => {
    const answer = await api.with({}).get(`/docs/static/${path}`);
    expect([400, 401, 403, 404], answer.text).toContain(answer.status);
    expectRefused(answer, answer.status);
  });
});
