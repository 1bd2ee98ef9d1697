import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { source, toHeaders } from '#libs/contracts/envelope.ts';
import { messageType } from '#libs/contracts/messages.ts';
import { topicName } from '#libs/contracts/topics.ts';
import type { Pool } from '#libs/postgres/pool.ts';
import { createPool } from '#libs/postgres/pool.ts';
import { silent } from '#libs/postgres/test/test-database.ts';
import { closerLock } from '../../services/ledger/rows.ts';
import type { Cluster } from '../../tests/faults/cluster.ts';
import { startCluster } from '../../tests/faults/cluster.ts';
import { listPids } from '../../tests/faults/processes.ts';
import { createRandom } from '../../tests/faults/random.ts';
import { Api, newKey } from '../../tests/support/client.ts';
import { eventually } from '../../tests/support/eventually.ts';
import { publish } from '../../tests/support/kafka.ts';
import { alerts, dashboards, rulesFile } from '../../tests/support/rules.ts';
import { skewedClock } from '../../tests/support/skewed-clock.ts';
import { migrateService } from '../../tools/local/bank.ts';
import { trySignal } from '../../tools/local/child.ts';
import { alertTests } from './alert-times.ts';
import type { Check, Part } from './check.ts';
import { expect, run } from './check.ts';
import type { Prometheus } from './prometheus.ts';
import { noPrometheus, startPrometheus } from './prometheus.ts';

/** A running bank that Prometheus scrapes, and the parts of it that the faults affect. */
interface Scene {
  cluster: Cluster;
  pool: Pool;
  /** The first gateway, and the second. */
  api: Api;
  second: Api;
  client_id: string;
  account_id: string;
}

interface Fault {
  name: string;
  /** The alerts that it must trigger. */
  fires: string[];
  /** Starts the fault; may continue until `over` is aborted. */
  inject(scene: Scene, over: AbortSignal): Promise<void>;
  undo?(scene: Scene): Promise<void>;
}

const deposit = ({ account_id }: Scene, api: Api) =>
  api.post('/transactions', { account_id, transaction_type: 'Deposit', amount: 1 }).then(
    ({ status }) => status,
    () => 0,
  );
const ledgers = ({ cluster }: Scene) => cluster.nodes.filter((node) => node.kind === 'ledger' && node.running());
const stall = (pids: number[], signal: 'SIGSTOP' | 'SIGCONT') => pids.forEach((pid) => trySignal(pid, signal));
const lagMessages = 2_500;

const faults: Fault[] = [
  {
    name: 'the books are not checked for two days',
    fires: ['BankBooksUnchecked'],
    async inject({ api, pool }) {
      await api.post('/admin/verifications');
      await eventually(
        async () => (await pool.query('select from verifications where ended_at is not null')).rowCount === 1,
        firesWithinMs,
      );
      await pool.query("update verifications set ended_at = ended_at - interval '2 days'");
    },
    undo: async ({ pool }) =>
      void (await pool.query("update verifications set ended_at = ended_at + interval '2 days'")),
  },
  {
    name: 'a day that was closed an hour ago cannot be calculated',
    fires: ['BankDayWithoutTotals'],
    async inject({ pool }, over) {
      const holder = await pool.connect();
      await holder.query(`select pg_advisory_lock(${closerLock})`);
      await holder.query(
        "insert into closed_days (date, closed_at, closed_by, time_zone) values (current_date - 1, now() - interval '1 hour', 'check', 'UTC')",
      );
      while (!over.aborted) await sleep(500);
      holder.release(true);
    },
  },
  {
    name: 'a busy account is locked repeatedly',
    fires: ['BankLockWaits', 'BankLatencyBurnsFast', 'BankLatencyBurnsSlowly'],
    async inject({ pool, account_id }, over) {
      while (!over.aborted) {
        const client = await pool.connect();
        await client.query('begin');
        await client.query('select from accounts where account_id = $1::uuid for update', [account_id.slice(4)]);
        await sleep(1_500);
        await client.query('commit');
        client.release();
        await sleep(100);
      }
    },
  },
  {
    name: 'all ledgers are killed with openings and 2,500 queries pending',
    fires: [
      'BankServiceDown',
      'BankBreakerOpen',
      'BankCommandsStuck',
      'BankConsumerLag',
      'BankSagasStuck',
      'BankAvailabilityBurnsFast',
      'BankAvailabilityBurnsSlowly',
    ],
    async inject(scene) {
      const { cluster, api, client_id } = scene;
      await Promise.all(ledgers(scene).map((ledger) => ledger.kill()));
      void api.post('/accounts', { client_id, account_type: 'Savings', currency: 'USD' }).catch(() => undefined);
      const now = new Date().toISOString();
      // The responses to these are not used.
      const headers = toHeaders({
        message_id: 'qry_check',
        type: messageType('get_ledger_accounts'),
        source: source.gateway,
        time: now,
        subject: '',
        request_id: 'check',
        actor: '',
      });
      const query = {
        topic: topicName(cluster.topicPrefix, 'ledger.queries'),
        key: null,
        value: JSON.stringify({ account_ids: [] }),
        headers,
      };
      await publish(
        { kafka_brokers: cluster.brokers, topic_prefix: cluster.topicPrefix },
        Array.from({ length: lagMessages }, (_, i) => ({ ...query, partition: i % 12 })),
      );
    },
    undo: ({ cluster }) => cluster.restore(),
  },
  {
    name: 'an unreadable message',
    fires: ['BankDeadLetters'],
    inject: ({ cluster }) =>
      publish({ kafka_brokers: cluster.brokers, topic_prefix: cluster.topicPrefix }, [
        {
          topic: topicName(cluster.topicPrefix, 'ledger.commands'),
          partition: 0,
          key: null,
          value: 'no JSON',
          headers: {},
        },
      ]),
  },
  {
    name: 'a command and the state of a key without a valid signature',
    fires: ['BankForgedMessages'],
    async inject({ cluster }) {
      const forged = (['ledger.commands', 'api-keys'] as const).map((name) => ({
        topic: topicName(cluster.topicPrefix, name),
        partition: 0,
        key: 'forged',
        value: '{}',
        headers: {},
      }));
      // Prometheus counts no increase for the first value of a series.
      for (let round = 0; round < 2; round++) {
        await publish({ kafka_brokers: cluster.brokers, topic_prefix: cluster.topicPrefix }, forged, {
          asTheyAre: true,
        });
        await sleep(15_000);
      }
    },
  },
  {
    name: "a right of the ledger's role is revoked",
    fires: ['BankExecutionFailing', 'BankProcessNotReady'],
    inject: async ({ pool }) =>
      void (await pool.query(
        "do $$ begin execute format('revoke insert on transactions from %I', current_database() || '_ledger'); end $$",
      )),
    undo: async ({ pool }) =>
      void (await pool.query(
        "do $$ begin execute format('grant insert on transactions to %I', current_database() || '_ledger'); end $$",
      )),
  },
  {
    name: 'the lease of the relay is held by a process that does not publish',
    fires: ['BankNoRelay', 'BankOutboxStuck'],
    inject: async ({ pool }) =>
      void (await pool.query(
        "update outbox_lease set holder = 'check', expires_at = clock_timestamp() + interval '1 hour'",
      )),
    undo: async ({ pool }) => void (await pool.query('update outbox_lease set expires_at = clock_timestamp()')),
  },
  {
    name: 'a balance is changed by hand, then the books are checked',
    fires: ['BankBooksDiffer', 'BankBooksBroken'],
    async inject({ pool, api }) {
      await pool.query(
        "update accounts set balance_minor = balance_minor + 7 where account_number = (select min(account_number) from accounts where account_type = 'Vault')",
      );
      await api.post('/admin/verifications');
    },
    undo: async ({ pool }) =>
      void (await pool.query(
        "update accounts set balance_minor = balance_minor - 7 where account_number = (select min(account_number) from accounts where account_type = 'Vault')",
      )),
  },
  {
    name: 'Postgres is frozen',
    fires: ['BankPostgresAway'],
    inject: async ({ cluster }) => stall(listPids(cluster.postgres), 'SIGSTOP'),
    undo: async ({ cluster }) => stall(listPids(cluster.postgres), 'SIGCONT'),
  },
  {
    name: 'the broker is killed',
    fires: ['BankKafkaAway'],
    inject: ({ cluster }) => cluster.broker.kill(),
    undo: ({ cluster }) => cluster.restore(),
  },
  {
    name: 'the clock of a gateway is an hour ahead',
    fires: ['BankClockWrong', 'BankShedsLoad'],
    async inject(scene, over) {
      const gateway = scene.cluster.node('gateway-2');
      await gateway.stop();
      gateway.start(skewedClock(1));
      while (!over.aborted) {
        await deposit(scene, scene.second);
        await sleep(50);
      }
    },
    async undo({ cluster }) {
      await cluster.node('gateway-2').stop();
      await cluster.restore();
    },
  },
  {
    name: 'a stranger tries credentials, and a caller exceeds its scopes',
    fires: ['BankCredentialStuffing', 'BankScopeProbing', 'BankKeysCreated'],
    async inject({ api }, over) {
      const reader = api.withKey((await api.key({ scopes: ['clients:read'] })).api_key);
      while (!over.aborted) {
        await api.withKey('cbk_live_guess').get('/accounts');
        await reader.get('/accounts');
        await sleep(100);
      }
    },
  },
  {
    name: 'a customer repeatedly pays into a frozen account',
    fires: ['BankDestinationRefusals'],
    async inject({ api, client_id }, over) {
      const [from, to] = [
        await api.account(client_id, { initial_deposit: 100 }),
        await api.newAccount({ status: 'Frozen' }),
      ];
      const customer = api.withKey((await api.key({ scopes: ['transfers:write'], client_id })).api_key);
      while (!over.aborted) {
        await customer.post('/transfers', {
          from_account_id: from.account_id,
          to_account_id: to.account_id,
          amount: 1,
        });
        await sleep(200);
      }
    },
  },
  {
    name: 'a gateway is frozen for three seconds',
    fires: ['BankEventLoopBlocked'],
    async inject({ cluster }, over) {
      const pids = [cluster.node('gateway').pid()];
      while (!over.aborted) {
        stall(pids, 'SIGSTOP');
        await sleep(2_000);
        stall(pids, 'SIGCONT');
        await sleep(3_000);
      }
    },
  },
];

/**
 * Alerts that this check does not trigger: downloads need a person who has signed in with a browser, and the bank has
 * no webhook.
 */
const byHand = new Set([
  'BankExports',
  'BankWebhooksLate',
  'BankWebhookBlocked',
  'BankWebhookDisabled',
  'BankEventsUnreadable',
]);

const firesWithinMs = 600_000;

/**
 * Triggers every alert by its fault in a running bank. Before the first fault no alert is active
 * except the one that reports missing checks of the books.
 */
export const alertRules: Part = {
  name: 'alerts',
  needsEngine: false,
  planted: { defect: 'faults that are not injected', foundBy: 'every alert was triggered', says: /^never true: / },
  async run(check) {
    const missing = noPrometheus();
    if (missing !== undefined) return check.skip('alerts', missing);
    await check.step(
      'promtool takes the rules',
      async () => (await run('promtool', ['check', 'rules', rulesFile])).stdout.match(/\d+ rules found/)?.[0],
    );
    await check.step('in promtool, each alert is silent, then pending for its `for`, then fires', () =>
      waitOutAlerts(check.dir),
    );
    const scene = await check.step('a bank with two gateways and two ledgers', () => openScene(check));
    const stopLoad = load(scene);
    check.onEnd(stopLoad);
    const targets = scene.cluster.nodes
      .filter((node) => node.running())
      .map(({ healthUrl }) => new URL(healthUrl).host);
    const prometheus = await startPrometheus(join(check.dir, 'prometheus'), targets, rulesFile);
    check.onEnd(() => prometheus.stop());
    await check.step('without a fault, only the alert for unchecked books stays active', async () => {
      await eventually(
        async () => (await prometheus.query('count(corebanking_build_info)'))[0]?.value === targets.length,
        firesWithinMs,
      );
      await sleep(15_000);
      let fired: string[] = [];
      // A machine under other load may be slow by itself, and its broker may be unavailable for a
      // moment.
      await eventually(async () => {
        const names = alerts.map(({ name }) => name).filter((name) => !name.startsWith('BankLatency'));
        fired = await firing(prometheus, names);
        return fired.every((name) => name === 'BankBooksUnchecked');
      }, firesWithinMs).catch(() => {
        throw new Error(`true without a fault: ${fired.join(', ')}`);
      });
    });
    const fired = new Set<string>();
    for (const fault of check.selfTest ? [] : faults)
      await check.step(fault.name, () => suffer(fault, scene, prometheus, fired));
    await check.step('every alert was triggered', async () => {
      const silentOnes = alerts.filter(({ name }) => !fired.has(name) && !byHand.has(name)).map(({ name }) => name);
      if (silentOnes.length > 0) throw new Error(`never true: ${silentOnes.join(', ')}`);
    });
    await check.step('every query of the dashboards returns data', () => askDashboards(scene, prometheus));
  },
};

/**
 * Resolves with the number of queries. Everything that panels count must have happened, by the faults and by a repeated
 * request.
 */
async function askDashboards({ api, account_id }: Scene, prometheus: Prometheus): Promise<string> {
  const [key, deposit] = [newKey(), { account_id, transaction_type: 'Deposit', amount: 1 }];
  for (let i = 0; i < 2; i++) await api.once(key, '/transactions', deposit);
  const queries = dashboards.flatMap(([file, { panels }]) =>
    panels.flatMap(({ title, targets }) => targets.map(({ expr }) => ({ panel: `${file}: ${title}`, expr }))),
  );
  const unanswered = async (misspell: (expr: string) => string = (expr) => expr): Promise<string[]> => {
    const empty: string[] = [];
    for (const { panel, expr } of queries) {
      const answer = await prometheus.query(misspell(expr).replaceAll('$__rate_interval', '1h'));
      if (!answer.some(({ value }) => Number.isFinite(value))) empty.push(panel);
    }
    return empty;
  };
  let empty: string[] = [];
  // The repeated request is scraped within a few seconds.
  await eventually(async () => (empty = await unanswered()).length === 0, firesWithinMs).catch(() => {
    throw new Error(`no data: ${empty.join(', ')}`);
  });
  const misspelled = await unanswered((expr) => expr.replaceAll(/\b(corebanking|nodejs|process)(?=[_:])/g, '$1x'));
  expect(misspelled.length === queries.length, 'a query with a misspelled metric has an answer');
  return `${queries.length} queries`;
}

/** Resolves with the number of alerts. */
async function waitOutAlerts(dir: string): Promise<string> {
  const [right, early] = [join(dir, 'alerts.json'), join(dir, 'early.json')];
  writeFileSync(right, JSON.stringify(alertTests()));
  // The shortened times must fail. Otherwise the tests might compare nothing.
  writeFileSync(early, JSON.stringify(alertTests(1)));
  await run('promtool', ['test', 'rules', right]);
  const { stdout, stderr } = await run('promtool', ['test', 'rules', early], { codes: [1] });
  const found = (stdout + stderr).match(/exp: /g)?.length;
  expect(found === alerts.length, `${found} of ${alerts.length} alerts were found to wait a second too long`);
  return `${found} alerts`;
}

async function openScene(check: Check): Promise<Scene> {
  const cluster = await startCluster(join(check.dir, 'bank'), createRandom('alerts'));
  check.onEnd(() => cluster.stop());
  await migrateService('webhooks', cluster.nodeSettings('webhooks'));
  cluster.node('webhooks').start();
  await cluster.node('webhooks').ready();
  const pool = createPool({ url: cluster.databaseUrl, application_name: 'check', schema: 'ledger', max: 3 }, silent);
  check.onEnd(() => pool.end());
  const [api, second] = cluster.gateways.map(
    ({ baseUrl }) =>
      new Api(
        () => baseUrl,
        () => ({ 'x-api-key': cluster.apiKey }),
      ),
  ) as [Api, Api];
  const { client_id } = await api.client();
  const { account_id } = await api.account(client_id);
  return { cluster, pool, api, second, client_id, account_id };
}

/** Sends twenty deposits and reads per second, regardless of their outcome. Returns a function that stops them. */
function load(scene: Scene): () => Promise<void> {
  const timer = setInterval(() => {
    void deposit(scene, scene.api);
    void scene.api.get(`/accounts/${scene.account_id}`).catch(() => undefined);
  }, 100);
  return async () => clearInterval(timer);
}

async function firing(prometheus: Prometheus, names: string[]): Promise<string[]> {
  const found = await Promise.all(
    alerts
      .filter(({ name }) => names.includes(name))
      .map(async ({ name, expr }) => ((await prometheus.query(expr)).length > 0 ? [name] : [])),
  );
  return found.flat();
}

/** Resolves when every expression of the fault has been true, with the time that this took. */
async function suffer(
  { fires, inject, undo }: Fault,
  scene: Scene,
  prometheus: Prometheus,
  fired: Set<string>,
): Promise<string> {
  const over = new AbortController();
  const begun = performance.now();
  const times = new Map<string, string>();
  const injecting = inject(scene, over.signal);
  injecting.catch(() => undefined);
  try {
    await eventually(async () => {
      for (const name of await firing(
        prometheus,
        fires.filter((name) => !times.has(name)),
      ))
        times.set(name, `${name} ${((performance.now() - begun) / 1000).toFixed(0)} s`);
      return times.size === fires.length;
    }, firesWithinMs).catch(() => {
      throw new Error(
        `not true: ${fires.filter((name) => !times.has(name)).join(', ')}; true: ${[...times.values()].join(', ') || 'none'}`,
      );
    });
    for (const name of fires) fired.add(name);
  } finally {
    over.abort();
    await injecting;
    await undo?.(scene);
  }
  return [...times.values()].join(', ');
}
