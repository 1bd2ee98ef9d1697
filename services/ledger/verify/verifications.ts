import type { Logger } from 'pino';
import type { BookCheck } from '#libs/contracts/administration.ts';
import type { MessageContext, ReplyBody } from '#libs/contracts/envelope.ts';
import { refusal } from '#libs/contracts/errors.ts';
import { auditId, idBits } from '#libs/contracts/ids.ts';
import type { MessageData } from '#libs/contracts/messages.ts';
import type { Finding } from '#libs/postgres/findings.ts';
import type { Pool, PoolClient } from '#libs/postgres/pool.ts';
import { transaction } from '#libs/postgres/transaction.ts';
import { insertAudits } from '../audit/audit-sender.ts';
import { prefixed } from '../rows.ts';
import { verifyBooks } from './verify-books.ts';

/**
 * Verifications of the books on request. Only one runs at a time over all ledgers, and its result is stored in
 * a row.
 */

/** An advisory lock of the session that verifies. It is released however the session ends. */
const lockKey = 4_711_001;

interface VerificationRow {
  verification_id: string;
  requested_by: string;
  started_at: string;
  ended_at: string | null;
  findings: Finding[] | null;
  is_held: boolean;
}

const columns = `verification_id, requested_by, started_at, ended_at, findings,
  exists (select from pg_locks where locktype = 'advisory' and database = (select oid from pg_database where datname = current_database()) and objid = ${lockKey} and classid = 0 and objsubid = 1 and granted) as is_held`;

function verificationOf({ verification_id, findings, is_held, ...row }: VerificationRow): BookCheck {
  const ended = findings === null ? 'interrupted' : findings.length === 0 ? 'passed' : 'broken';
  return {
    verification_id: prefixed('ver', verification_id),
    ...row,
    state: row.ended_at === null && is_held ? 'running' : ended,
    findings: findings ?? [],
  };
}

/** Returns the verification that started last, or null if there has been none. */
export async function readLastVerification(pool: Pool): Promise<BookCheck | null> {
  const { rows } = await pool.query<VerificationRow>(
    `select ${columns} from verifications order by started_at desc limit 1`,
  );
  return rows[0] ? verificationOf(rows[0]) : null;
}

async function readVerification(pool: Pool, id: string): Promise<BookCheck | undefined> {
  const { rows } = await pool.query<VerificationRow>(
    `select ${columns} from verifications where verification_id = $1`,
    [idBits(id)],
  );
  return rows[0] && verificationOf(rows[0]);
}

export interface VerifyCommand {
  name: 'verify_books';
  data: MessageData<'verify_books'>;
  context: MessageContext;
}

export interface Verifier {
  /**
   * Starts a verification and replies immediately. A repeat, or a second request while one is running, gets the
   * running one.
   */
  verify(command: VerifyCommand): Promise<ReplyBody>;
  /** Resolves when this process runs no verification. */
  idle(): Promise<void>;
  /** Cancels the running verification. */
  stop(): Promise<void>;
}

export interface VerifierOptions {
  /** A separate pool of two connections, so that a check that takes minutes does not block reads. */
  pool: Pool;
  reads: Pool;
  /** Returns the bank's time in ms since 1970. */
  now: () => number;
  logger: Logger;
}

export function createVerifier({ pool, reads, now, logger }: VerifierOptions): Verifier {
  let running: Promise<void> = Promise.resolve();
  let holder: PoolClient | undefined;

  const run = async (client: PoolClient, id: string, request_id: string): Promise<void> => {
    const about = { verification_id: id, command_id: id, request_id };
    try {
      const findings = await verifyBooks(pool);
      if (findings.length > 0)
        logger.error({ ...about, rules: findings.map(({ rule }) => rule) }, 'the books do not balance');
      await end(pool, id, findings);
    } catch (error) {
      logger.warn({ ...about, err: error }, 'a verification of the books did not finish');
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
      const client = await lock(pool);
      const other = client ? undefined : await readLastVerification(reads);
      if (other?.state === 'running') return { ok: true, data: other };
      if (!client)
        return {
          ok: false,
          refusal: refusal('service_unavailable', 'another check is starting or ending; repeat the request'),
        };
      holder = client;
      try {
        await begin(pool, id, context, new Date(now()).toISOString());
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
    const { rows } = await client.query<{ taken: boolean }>('select pg_try_advisory_lock($1::int8) as taken', [
      lockKey,
    ]);
    if (rows[0]?.taken) return client;
    client.release();
    return undefined;
  } catch (error) {
    client.release(true);
    throw error;
  }
}

/** Writes the row and the audit record of the requester in one transaction. */
function begin(pool: Pool, id: string, context: MessageContext, now: string): Promise<void> {
  const { actor, request_id, message_id, address = null } = context;
  const made = { audit_id: auditId(message_id), created_at: now, actor: actor || 'system', request_id };
  const record = { ...made, action: 'verify_books', resource_id: id, outcome: 'success', details: {}, address };
  return transaction(pool, async (client) => {
    await client.query('insert into verifications (verification_id, requested_by) values ($1, $2)', [
      idBits(id),
      actor || 'system',
    ]);
    await insertAudits(client, [record]);
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
