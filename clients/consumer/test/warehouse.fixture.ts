import pg from 'pg';
import { createConsumer, type Reconciliation, reconcile } from '../index.ts';
import { insertEntry, warehouseStore } from './warehouse.ts';

/**
 * A warehouse as README.md shows it, as a process: stores entries in the database of the argument, reconciles each closed
 * day, and prints the day, the positions, and the result as a line of JSON.
 */
const [url, brokers = '', topicPrefix = '', baseUrl = '', apiKey = ''] = process.argv.slice(2);
const pool = new pg.Pool({ connectionString: url, max: 4 });
const consumer = createConsumer({
  kafka: { brokers: brokers.split(',') },
  groupId: `${topicPrefix}warehouse`,
  topicPrefix,
  retry: { maxPauseMs: 500 },
  handlers: {
    'corebanking.transaction.completed.v1': ({ data: { transaction, sequence } }) =>
      insertEntry(pool, { ...transaction, sequence, effective_date: transaction.effective_date ?? '' }),
    'corebanking.day.closed.v1': async ({ data: day }) => {
      const store = warehouseStore(pool, { positions: () => consumer.positions() });
      const result: Reconciliation = await reconcile(day, store, { baseUrl, apiKey });
      if (result.state === 'behind') throw new Error('not consumed yet');
      const positions = [...(await consumer.positions())].map(([partition, offset]) => [partition, Number(offset)]);
      console.log(JSON.stringify({ day, positions, result }));
    },
  },
});
process.once('SIGTERM', () => void consumer.stop().then(() => pool.end()));
await consumer.start();
