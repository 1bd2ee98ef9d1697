import { setTimeout as sleep } from 'node:timers/promises';
import type { Logger } from 'pino';
import type { AuditRecord } from '#libs/contracts/audit.ts';
import { type MessageContext, type ReplyBody, refused } from '#libs/contracts/envelope.ts';
import { refusal } from '#libs/contracts/errors.ts';
import { auditId, formatId, idBits } from '#libs/contracts/ids.ts';
import type { Check } from '#libs/contracts/operations.ts';
import type { Finding } from '#libs/postgres/findings.ts';
import type { Pool, PoolClient, Queries } from '#libs/postgres/pool.ts';
import { transaction } from '#libs/postgres/transaction.ts';
import { buildAuditRecord } from './audit-record.ts';

/**
 * Checks of a service's data on request. Only one runs at a time over all processes of the service, and its result is
 * stored in a row of the service's table `verifications`.
 */
export interface Verified {
  action: 'verify_books' | 'verify_audit';
  /** Returns the violated rules. It may take minutes. */
  check(pool: Pool): Promise<Finding[]>;
  /** Writes the audit record of the requester in the open transaction. */
  audit(client: Queries, records: AuditRecord[]): Promise<unknown>;
  /** The error that is logged if a rule is violated. */
  broken: string;
}

/** The table in which the results are stored. */
export const verificationsTable = new URL('./verifications.sql', import.meta.url);

/** How long a request waits for another check that is starting or ending: it is not running, but has the lock. */
const waitMs = 2_000;
const pollMs = 20;

/** An advisory lock of the session that verifies, named by the table. It is released however the session ends. */
const lockClass = 4_711_001;

interface VerificationRow {
  verification_id: string;
  requested_by: string;
  started_at: string;
  ended_at: string | null;
  findings: Finding[] | null;
  is_held: boolean;
}

const columns = `verification_id, requested_by, started_at, ended_at, findings,
  exists (select from pg_locks where locktype = 'advisory' and database = (select oid from pg_database where datname = current_database())
    and classid = ${lockClass} and objid = 'verifications'::regclass::oid and objsubid = 2 and granted) as is_held`;

function toCheck({ verification_id, findings, is_held, ...row }: VerificationRow): Check {
  const ended = findings === null ? 'interrupted' : findings.length === 0 ? 'passed' : 'broken';
  return {
    verification_id: formatId('verification', verification_id.replaceAll('-', '')),
    ...row,
    state: row.ended_at === null && is_held ? 'running' : ended,
    findings: findings ?? [],
  };
}

/** Returns the first verification that `rest` of the query selects, or null if it selects none. */
async function readOne(pool: Pool, rest: string, values: unknown[] = []): Promise<Check | null> {
  const { rows } = await pool.query<VerificationRow>(`select ${columns} from verifications ${rest}`, values);
  return rows[0] ? toCheck(rows[0]) : null;
}

const lastFirst = 'order by started_at desc limit 1';

/** Returns the verification that started last, or null if there has been none. */
export const readLastVerification = (pool: Pool): Promise<Check | null> => readOne(pool, lastFirst);

/** Returns the result of the last verification that came to one, or null if none has. */
export const readLastResult = (pool: Pool): Promise<Check | null> =>
  readOne(pool, `where findings is not null ${lastFirst}`);

const readVerification = (pool: Pool, id: string): Promise<Check | null> =>
  readOne(pool, 'where verification_id = $1', [idBits(id)]);

export interface Verifier {
  /**
   * Starts a verification and replies immediately. A repeat, or a second request while one is running, gets the
   * running one.
   */
  verify(command: { data: { verification_id: string }; context: MessageContext }): Promise<ReplyBody>;
  /** Resolves when this process runs no verification. */
  idle(): Promise<void>;
  /** Cancels the running verification. */
  stop(): Promise<void>;
}

export interface VerifierOptions {
  /** A separate pool of two connections with a name of its own, so that a check does not block reads. */
  pool: Pool;
  reads: Pool;
  /** Returns the bank's time in ms since 1970. */
  now: () => number;
  logger: Logger;
}

export function createVerifier(verified: Verified, { pool, reads, now, logger }: VerifierOptions): Verifier {
  let running: Promise<void> = Promise.resolve();
  let holder: PoolClient | undefined;

  const run = async (client: PoolClient, id: string, request_id: string): Promise<void> => {
    const about = { verification_id: id, command_id: id, request_id };
    try {
      const findings = await verified.check(pool);
      if (findings.length > 0) logger.error({ ...about, rules: findings.map(({ rule }) => rule) }, verified.broken);
      await end(pool, id, findings);
    } catch (error) {
      logger.warn({ ...about, err: error }, 'a verification did not finish');
      await end(pool, id, null).catch(() => undefined);
    } finally {
      holder = undefined;
      // Closing the session releases the lock in any state.
      client.release(true);
    }
  };

  return {
    async verify({ data: { verification_id: id }, context }) {
      const known = await readVerification(reads, id);
      if (known) return { ok: true, replayed: true, data: known };
      const until = performance.now() + waitMs;
      let client: PoolClient | undefined;
      while (client === undefined) {
        // First, because a running check needs both connections of the pool.
        const last = await readLastVerification(reads);
        if (last?.state === 'running') return { ok: true, data: last };
        if (performance.now() > until)
          return refused(refusal('service_unavailable', 'another check is starting or ending; repeat the request'));
        client = await lock(pool);
        if (client === undefined) await sleep(pollMs);
      }
      holder = client;
      try {
        await begin(verified, pool, id, context, new Date(now()).toISOString());
      } catch (error) {
        holder = undefined;
        client.release(true);
        throw error;
      }
      running = run(client, id, context.request_id);
      return { ok: true, data: await readVerification(reads, id) };
    },
    idle: () => running,
    async stop() {
      if (!holder) return;
      await reads
        .query('select pg_terminate_backend(pid) from pg_stat_activity where application_name = $1', [
          pool.options.application_name,
        ])
        .catch(() => undefined);
      await running;
    },
  };
}

/** Returns a connection that holds the lock, or undefined if another process does. */
async function lock(pool: Pool): Promise<PoolClient | undefined> {
  const client = await pool.connect();
  try {
    const { rows } = await client.query<{ taken: boolean }>(
      "select pg_try_advisory_lock($1, 'verifications'::regclass::oid::int4) as taken",
      [lockClass],
    );
    if (rows[0]?.taken) return client;
    client.release();
    return undefined;
  } catch (error) {
    client.release(true);
    throw error;
  }
}

/** Writes the row and the audit record of the requester in one transaction. */
function begin({ action, audit }: Verified, pool: Pool, id: string, context: MessageContext, now: string) {
  const audit_id = auditId(`${action} ${context.message_id}`);
  const record = { ...buildAuditRecord(context, { ok: true, data: null }, {}, now), audit_id, action, resource_id: id };
  return transaction(pool, async (client) => {
    await client.query('insert into verifications (verification_id, requested_by) values ($1, $2)', [
      idBits(id),
      record.actor,
    ]);
    await audit(client, [record]);
  });
}

/** `findings`: null if the verification did not finish. */
async function end(pool: Pool, id: string, findings: Finding[] | null): Promise<void> {
  const json =
    findings && JSON.stringify(findings, (_, value: unknown) => (typeof value === 'bigint' ? value.toString() : value));
  await pool.query('update verifications set ended_at = clock_timestamp(), findings = $2 where verification_id = $1', [
    idBits(id),
    json,
  ]);
}
