import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { accountCount } from '../contenders/posting.ts';
import { pgbenchMissing, runPgbench } from '../pgbench.ts';
import { installed, notInstalled, type Offer, type Peer } from './peer.ts';

const vendored = 'vendor/scoville-pgsql-ulid';
const files = [`${vendored}/ulid-to-uuid.sql`, `${vendored}/uuid-to-ulid.sql`, 'pgledger.sql'];
const callers = [4, 8, 16, 32];

/** pgledger's SQL functions under pgbench: no HTTP, no validation, no events. */
export const pgledger: Peer = {
  name: "pgledger's SQL functions, pgbench without HTTP",
  missing: () => notInstalled('pgledger', 'pgledger.sql') ?? pgbenchMissing(),
  async start(world) {
    const url = await world.newDatabase('peer_pgledger');
    await world.withPool(url, 'public', async (pool) => {
      if ((await pool.query("select from pg_proc where proname = 'pgledger_create_transfer'")).rowCount === 0)
        for (const file of files) await pool.query(readFileSync(join(installed('pgledger'), file), 'utf8'));
      await pool.query(
        `insert into pgledger_accounts (id, name, currency, allow_negative_balance, allow_positive_balance, created_at, updated_at)
         select 'account_' || n, 'bench', 'USD', true, true, now(), now() from generate_series(0, ${accountCount}) n
         on conflict do nothing`,
      );
    });
    /** Account 0 is the hot one. */
    const offer = (name: string, from: string, to: string): Offer => ({
      connections: callers,
      async run({ connections, seconds }) {
        const script = join(world.local.path, `pgledger-${name}.sql`);
        writeFileSync(
          script,
          `\\set a random(1, :accounts)\n\\set b 1 + (:a + random(0, :accounts - 2)) % :accounts\n` +
            `select id from pgledger_create_transfer('account_' || ${from}::text, 'account_' || ${to}::text, 0.25);\n`,
        );
        const before = world.postgresCpu();
        const perSecond = await runPgbench(url, script, { accounts: accountCount }, seconds, connections);
        const cpuMicrosPerRequest = ((world.postgresCpu() - before) * 1e6) / (perSecond * Math.ceil(seconds));
        return { perSecond, cpuMicrosPerRequest, wrong: 0, unanswered: 0 };
      },
    });
    return {
      offers: { transfers: offer('transfers', ':a', ':b'), deposits: offer('deposits', ':a', '0') },
      stop: async () => undefined,
    };
  },
};
