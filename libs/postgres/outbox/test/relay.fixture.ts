/**
 * A relay in a process of its own, which relay.int.test.ts kills or stops. It "publishes" into the table published,
 * which shows the order over several processes. argv: database URL, name, behaviour.
 */
import { createPool } from '../../pool.ts';
import { silent } from '../../test/test-database.ts';
import type { PublishedEvent } from '../outbox-messages.ts';
import { Relay } from '../relay.ts';

const [url = '', name = '', behaviour = ''] = process.argv.slice(2);
const options = { url, application_name: name, schema: 'public', max: 3 };
const broker = createPool(options, silent);

async function publishAll(messages: PublishedEvent[]): Promise<void> {
  await broker.query(
    'insert into published (relay, ce_id, key, value) select $1, unnest($2::text[]), unnest($3::text[]), unnest($4::text[])',
    [name, messages.map((m) => m.headers['ce_id']), messages.map((m) => m.key), messages.map((m) => m.value)],
  );
  if (behaviour === 'die-before-mark') process.kill(process.pid, 'SIGKILL');
}

const relay = new Relay({
  pool: createPool(options, silent),
  publisher: { publishAll },
  schema: 'public',
  topicName: (topic) => topic,
  source: 'test',
  logger: silent,
});
relay.start();
process.on('message', () => relay.wake());
const report = setInterval(() => {
  if (!relay.active()) return;
  clearInterval(report);
  process.send?.('active');
}, 20);
process.on('disconnect', () => process.exit());
