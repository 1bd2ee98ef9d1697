import { setTimeout as sleep } from 'node:timers/promises';
import { pino } from 'pino';
import { createPool } from '#libs/postgres/pool.ts';

/** A minimal relay of a contender's outbox. It deletes rows as fast as they are written, without sending them. */
const { DATABASE_URL = '' } = process.env;
const pool = createPool(
  { url: DATABASE_URL, application_name: 'bench relay', schema: 'public', max: 1, statement_timeout_ms: 60_000 },
  pino({ level: 'warn' }),
);
let running = true;
process.once('SIGTERM', () => {
  running = false;
});
while (running) {
  const { rowCount } = await pool.query(
    'with taken as (delete from outbox where position in (select position from outbox order by position limit 1000 for update skip locked) returning payload) select payload from taken',
  );
  if (rowCount === 0) await sleep(50);
}
await pool.end();
