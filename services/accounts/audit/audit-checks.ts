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
 * Checks of the audit on demand, as parts of verifications (contract: POST /admin/verifications):
 * one at a time over all processes. What was found is kept in the audit itself.
 */

const action = 'verify_audit';
/** Held by the session that checks, and free again when that session ends, however it does. */
const lockKey = 4_711_002;
/** That session's name, with the id of the verification: so every process sees what is under way. */
const sessionName = (verification_id: string): string => `accounts verifies ${verification_id}`;

interface VerifyAuditCommand {
  data: MessageData<'verify_audit'>;
  context: MessageContext;
}

export interface AuditVerifier {
  /** Begins a check and answers at once; a repeat is answered with the one there is. */
  verify(command: VerifyAuditCommand): Promise<ReplyBody>;
  /** Resolves when no check of this process is under way. */
  idle(): Promise<void>;
  /** Gives up the one that runs. */
  stop(): Promise<void>;
}

export interface AuditVerifierOptions {
  /** A connection of its own, so that a check of minutes takes none from the rest. */
  pool: Pool;
  reads: Pool;
  now: () => Date;
  wakeRelay(): void;
  logger: Logger;
}

/** The check that is under way, else the one that ended last; null where there never was one. */
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
        logger.error({ ...about, rules: findings.map(({ rule }) => rule) }, 'the audit is not what it was');
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
      logger.warn({ ...about, err: error }, 'a check of the audit came to no end');
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

/** A session of that name that holds the lock; undefined where another one does. */
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
 * Gives lock and name back before the session is closed: a server shows a closed session's name for
 * a moment longer.
 */
async function unlock(client: PoolClient, application_name: string): Promise<void> {
  try {
    await client.query('rollback');
    await client.query("select pg_advisory_unlock($1::int8), set_config('application_name', $2, false)", [
      lockKey,
      application_name,
    ]);
  } catch {
    // The session has ended, and with it both.
  } finally {
    client.release(true);
  }
}
