import { afterAll, expect, test } from 'vitest';
import type { Position } from '#libs/contracts/message-fields.ts';
import { isTime, type List, readPage, Where } from './keyset.ts';
import { createPool } from './pool.ts';
import { createTestDatabase, silent } from './test/test-database.ts';

const database = await createTestDatabase();
const pool = createPool({ url: database.url, application_name: 'keyset', schema: 'public' }, silent);
await pool.query('create table things (id int, made_at timestamptz, kind text, primary key (made_at, id))');
await pool.query(
  "insert into things select n, timestamptz '2026-01-01' + n / 7 * interval '1 second', case n % 3 when 0 then 'c' else 'ab' end from generate_series(1, 50) n",
);
afterAll(async () => {
  await pool.end();
  await database.drop();
});

interface Thing {
  id: number;
  made_at: string;
}

const things: List<Thing, number> = {
  order: ['made_at', 'id'],
  values: ({ at, id }) => (isTime(at) ? [at, id] : undefined),
  position: ({ made_at, id }) => ({ at: made_at, id: String(id) }),
  item: ({ id }) => id,
  select: (where, order, limit) => `select id, made_at from things where ${where} order by ${order} limit ${limit}`,
};

test.each(['asc', 'desc'] as const)(
  'pages %s return every row once in order although times are equal; the last one has no next',
  async (order) => {
    const found: number[] = [];
    let after: Position | undefined;
    do {
      const page = await readPage(
        pool,
        new Where('id > 0')
          .equal({ kind: 'ab', made_at: undefined })
          .between('made_at', '2026-01-01T00:00:00.000Z', undefined),
        things,
        { limit: 4, order, after },
      );
      found.push(...(page?.items ?? []));
      after = page?.next;
    } while (after);
    const all = Array.from({ length: 50 }, (_, i) => i + 1).filter((id) => id % 3 !== 0);
    expect(found).toEqual(order === 'asc' ? all : all.reverse());
  },
);

test('a page needs no conditions; a position of another list is refused', async () => {
  expect(await readPage(pool, new Where(), things, { limit: 50, order: 'asc' })).toEqual({ items: expect.any(Array) });
  for (const at of ['', '7', '9999-99-99T99:99:99.999Z'])
    expect(
      await readPage(pool, new Where(), things, { limit: 5, order: 'asc', after: { at, id: '1' } }),
    ).toBeUndefined();
});
