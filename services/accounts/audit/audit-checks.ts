import type { Logger } from 'pino';
import type { AuditCheck, AuditRecord } from '#libs/contracts/administration.ts';
import type { MessageContext, ReplyBody } from '#libs/contracts/envelope.ts';
import { refusal } from '#libs/contracts/errors.ts';
import { auditId } from '#libs/contracts/ids.ts';
import type { MessageData } from '#libs/contracts/messages.ts';
import type { Pool, PoolClient } from '#libs/postgres/pool.ts';
import { recordAudits } from './audit.ts';
import { checkAudit } from './verify-audit.ts';

/**
 * Checks of the audit on demand, as parts of verifications (contract: POST /admin/verifications): one at a time
 * over all processes. The result is stored in the audit itself.
 */

const action = 'verify_audit';
/** An advisory lock of the session that checks. It is released when the session ends, for whatever reason. */
const lockKey = 4_711_002;
/** The name of that session, which contains the verification id, so that every process sees what is running. */
const sessionName = (verification_id: string): string => `accounts verifies ${verification_id}`;

interface VerifyAuditCommand {
  data: MessageData<'verify_audit'>;
  context: MessageContext;
}

export interface AuditVerifier {
  /** Starts a check and replies immediately. A repeat gets the existing one. */
  verify(command: VerifyAuditCommand): Promise<ReplyBody>;
  /** Resolves when this process runs no check. */
  idle(): Promise<void>;
  /** Cancels the running check. */
  stop(): Promise<void>;
}

export interface AuditVerifierOptions {
  /** A separate connection, so that a check that takes minutes does not block others. */
  pool: Pool;
  reads: Pool;
  now: () => Date;
  wakeRelay(): void;
  logger: Logger;
}

/** Returns the running check, otherwise the one that ended last; null if there has been none. */
export async function readLastAuditCheck(pool: Pool): Promise<AuditCheck | null> {
  return (await readRunning(pool)) ?? (await readEnded(pool)) ?? null;
}

async function readRunning(pool: Pool): Promise<AuditCheck | undefined> {
  const { rows } = await pool.query<{ verification_id: string }>(
    `select substr(application_name, length($1) + 1) as verification_id from pg_stat_activity
      where datname = current_database() and usename = current_user and starts_with(application_name, $1) limit 1`,
    [sessionName('ver_').slice(0, -'ver_'.length)],
  );
  return rows[0] && { verification_id: rows[0].verification_id, ended_at: null, findings: [] };
}

async function readEnded(pool: Pool, id?: string): Promise<AuditCheck | undefined> {
  const { rows } = await pool.query<AuditCheck>(
    `select resource_id as verification_id, created_at as ended_at, details -> 'findings' as findings from audit
      where action = $1 and outcome = 'success' ${id === undefined ? '' : 'and resource_id = $2'} order by created_at desc, audit_id desc limit 1`,
    id === undefined ? [action] : [action, id],
  );
  return rows[0];
}

export function createAuditVerifier({ pool, reads, now, wakeRelay, logger }: AuditVerifierOptions): AuditVerifier {
  let running: Promise<void> = Promise.resolve();
  let holder: string | undefined;

  const run = async (client: PoolClient, id: string, { actor, request_id, address }: MessageContext): Promise<void> => {
    const about = { verification_id: id, request_id };
    try {
      await client.query('begin isolation level repeatable read read only');
      const findings = await checkAudit(client);
      await client.query('commit');
      if (findings.length > 0)
        logger.error({ ...about, rules: findings.map(({ rule }) => rule) }, 'the audit log was changed');
      const details = JSON.parse(
        JSON.stringify({ findings }, (_, value: unknown) => (typeof value === 'bigint' ? value.toString() : value)),
      ) as object;
      const record: AuditRecord = {
        audit_id: auditId(`${action} ${id}`),
        created_at: now().toISOString(),
        actor: actor || 'system',
        action,
        resource_id: id,
        outcome: 'success',
        request_id,
        details: { ...details },
        address: address ?? null,
      };
      await recordAudits(reads, [record]);
      wakeRelay();
    } catch (error) {
      logger.warn({ ...about, err: error }, 'a check of the audit did not finish');
    } finally {
      holder = undefined;
      await unlock(client, pool.options.application_name ?? '');
    }
  };

  return {
    async verify({ data: { verification_id: id }, context }) {
      const ended = await readEnded(reads, id);
      if (ended) return { ok: true, replayed: true, data: ended };
      const other = await readRunning(reads);
      if (other?.verification_id === id) return { ok: true, replayed: true, data: other };
      const client = other || holder !== undefined ? undefined : await lock(pool, id);
      if (!client)
        return {
          ok: false,
          refusal: refusal(
            'service_unavailable',
            'another check of the audit is under way; the request can be repeated',
          ),
        };
      holder = id;
      running = run(client, id, context);
      return { ok: true, data: { verification_id: id, ended_at: null, findings: [] } };
    },
    idle: () => running,
    async stop() {
      if (holder === undefined) return;
      await reads
        .query(
          'select pg_terminate_backend(pid) from pg_stat_activity where application_name = $1 and usename = current_user',
          [sessionName(holder)],
        )
        .catch(() => undefined);
      await running;
    },
  };
}

/** Returns a session with that name that holds the lock, or undefined if another one does. */
async function lock(pool: Pool, id: string): Promise<PoolClient | undefined> {
  const client = await pool.connect();
  try {
    const { rows } = await client.query<{ taken: boolean }>(
      "select pg_try_advisory_lock($1::int8) as taken, set_config('application_name', $2, false)",
      [lockKey, sessionName(id)],
    );
    if (rows[0]?.taken) return client;
    client.release(true);
    return undefined;
  } catch (error) {
    client.release(true);
    throw error;
  }
}

/**
 * Releases lock and name before closing the session, because the server shows the name of a closed session for
 * a moment.
 */
async function unlock(client: PoolClient, application_name: string): Promise<void> {
  try {
    await client.query('rollback');
    await client.query("select pg_advisory_unlock($1::int8), set_config('application_name', $2, false)", [
      lockKey,
      application_name,
    ]);
  } catch {
    // The session has ended, which released lock and name.
  } finally {
    client.release(true);
  }
}
