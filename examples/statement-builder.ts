import pg from 'pg';
import { accountPositions, createConsumer } from '../clients/consumer/index.ts';
import { consume, settings } from './settings.ts';

/**
 * Maintains statements in its own Postgres table at DATABASE_URL: one line for each entry of an
 * account, exactly once and without gaps, however often events are delivered and whenever the
 * process is killed. Lines and positions are written in one transaction.
 */
const { kafka, groupId, topicPrefix, databaseUrl } = settings('statement-builder');
const pool = new pg.Pool({ connectionString: databaseUrl, max: 4 });
// Connections that break while idle are replaced.
pool.on('error', () => undefined);
await pool.query(`create schema if not exists statements;
create table if not exists statements.lines (
  account_id text, sequence bigint, transaction_id text not null, direction text not null, amount numeric not null, balance_after numeric not null,
  booked_at timestamptz not null, primary key (account_id, sequence))`);
const positions = accountPositions('statements.positions');
await positions.create(pool);

const consumer = createConsumer({
  kafka,
  groupId,
  topicPrefix,
  parallelism: 4,
  store: positions.store(pool),
  onGap: ({ account_id, from, to }) => {
    throw new Error(
      `entries ${from} to ${to} of ${account_id} were never delivered: read the topic from a moment before them`,
    );
  },
  handlers: {
    'corebanking.transaction.completed.v1': async (event) => {
      const { transaction, sequence, balance_after, entries } = event.data;
      const { account_id, transaction_id, direction, amount } = transaction;
      const booked_at = entries.find((entry) => entry.account_id === account_id)?.created_at;
      const db = await pool.connect();
      try {
        await db.query('begin');
        if (await positions.claim(db, event)) {
          await db.query('insert into statements.lines values ($1, $2, $3, $4, $5, $6, $7)', [
            account_id,
            sequence,
            transaction_id,
            direction,
            amount,
            balance_after,
            booked_at,
          ]);
        }
        await db.query('commit');
        db.release();
      } catch (error) {
        // The connection may be in any state, so it is closed, and the database rolls back.
        db.release(true);
        throw error;
      }
    },
  },
});
await consume(consumer, () => pool.end());
