import { setTimeout as sleep } from 'node:timers/promises';
import type { Bench, Row } from '../row.ts';

/** Faults of the broker and the database: killed, unavailable, without connections, without responses, locked. */

const brokerKilled: Row = {
  name: 'kill-broker',
  title: 'kill -9 of the broker, started again after 0-3 s',
  touches: ['kafka'],
  recoveryMs: 3000,
  async inject({ cluster, random }) {
    await cluster.broker.kill();
    await sleep(random.int(0, 3000));
    return cluster.broker.start();
  },
};

const awayMs = 60_000;

const brokerAway: Row = {
  name: 'broker-away',
  title: (lasts) => `the broker away for ${lasts(awayMs)}`,
  touches: ['kafka'],
  recoveryMs: 3000,
  async inject({ cluster, duration }) {
    await cluster.broker.stop();
    await sleep(duration(awayMs));
    return cluster.broker.start();
  },
};

const postgresKilled: Row = {
  name: 'kill-postgres',
  title: 'kill -9 of Postgres, started again after 0-3 s',
  touches: ['postgres'],
  recoveryMs: 5000,
  async inject({ cluster, random }) {
    await cluster.postgres.kill();
    await sleep(random.int(0, 3000));
    return cluster.postgres.start();
  },
};

const backendsTerminated: Row = {
  name: 'terminate-backends',
  title: 'all backends of the services terminated, five times',
  touches: ['postgres'],
  recoveryMs: 5000,
  async inject({ pool, random }) {
    for (let i = 0; i < 5; i++) {
      await pool.query(
        "select pg_terminate_backend(pid) from pg_stat_activity where datname = current_database() and application_name <> 'checker'",
      );
      await sleep(random.int(100, 900));
    }
  },
};

const lostCommits = 5;

/** COMMIT reaches the server and is executed, but its response does not arrive. */
const commitAnswerLost: Row = {
  name: 'lose-commit-answers',
  title: `COMMIT whose response is lost, ${lostCommits} times for each ledger and for accounts`,
  touches: ['ledger>postgres', 'accounts>postgres'],
  recoveryMs: 5000,
  async inject({ cluster, load, say }: Bench) {
    const links = ['ledger', 'ledger-2', 'accounts'].flatMap((name) => cluster.links.get(`${name}>postgres`) ?? []);
    const before = new Map(links.map((link) => [link, link.cuts]));
    for (const link of links) await link.set({ kind: 'cut_answers', which: 'commit', times: lostCommits });
    const until = performance.now() + 5000;
    const cuts = () => links.map((link) => link.cuts - (before.get(link) ?? 0));
    while (performance.now() < until && cuts().some((count) => count < lostCommits)) {
      void load.send(load.opening(1));
      await sleep(200);
    }
    for (const link of links) await link.heal();
    say(`answers to COMMIT lost: ${links.map((link, i) => `${link.name} ${cuts()[i]}`).join(', ')}`);
    if (cuts().every((count) => count === 0)) throw new Error('no answer to a COMMIT was cut');
  },
};

const lockedMs = 30_000;

const rowLocked: Row = {
  name: 'lock-rows',
  title: (lasts) => `rows of busy accounts locked for ${lasts(lockedMs)} by someone else`,
  touches: ['rows'],
  recoveryMs: 5000,
  async inject({ pool, accounts, duration }) {
    const client = await pool.connect();
    try {
      await client.query('set idle_in_transaction_session_timeout = 0');
      await client.query('begin');
      const { rowCount } = await client.query(
        "select from accounts where 'acc_' || replace(account_id::text, '-', '') = any($1) for update",
        [[accounts.hot, ...accounts.crossed.slice(0, 2)]],
      );
      if (rowCount !== 3) throw new Error(`${rowCount} rows were locked, not 3`);
      await sleep(duration(lockedMs));
      await client.query('rollback');
    } finally {
      client.release(true);
    }
  },
};

export const servers: Row[] = [
  brokerKilled,
  brokerAway,
  postgresKilled,
  backendsTerminated,
  commitAnswerLost,
  rowLocked,
];
