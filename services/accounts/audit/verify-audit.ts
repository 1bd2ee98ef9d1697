import type { Logger } from 'pino';
import { type EventData, events } from '#libs/contracts/events.ts';
import { topicName } from '#libs/contracts/topics.ts';
import type { KafkaClient } from '#libs/kafka/client.ts';
import { readToEnd } from '#libs/kafka/consume/read-to-end.ts';
import { type Finding, findBroken } from '#libs/postgres/findings.ts';
import type { Pool, Queries } from '#libs/postgres/pool.ts';
import { transaction } from '#libs/postgres/transaction.ts';
import type { Verified } from '#libs/service/verifications.ts';
import { writeAudit } from './audit.ts';

export const headsRule = 'the chains of audit records hold every head that was published on the topic audit';

const shownRows = 20;

/** Computes the same as the trigger link_audit, but independently of its functions, which an owner may have changed. */
const hash = `sha256(previous || convert_to(jsonb_build_array(
    a.audit_id, to_char(a.created_at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US'), a.actor, a.action,
    a.resource_id, a.outcome, a.request_id, encode(l.details_digest, 'hex'), a.address)::text, 'UTF8'))`;
const digest = `sha256(convert_to(a.salt::text || a.details::text, 'UTF8'))`;
/** The details were replaced by an erasure of the same client, which has its own record. */
const isErased = `exists (select from audit e where a.details = jsonb_build_object('erased_by', e.audit_id)
    and e.action = 'erase_client' and e.outcome = 'success' and e.resource_id = a.resource_id)`;
const isChanged = `l.hash <> ${hash} or (l.details_digest is distinct from ${digest} and not ${isErased})`;

const links = `select chain, sequence, audit_id, hash, details_digest, lag(hash, 1, ''::bytea) over own as previous, lag(sequence, 1, 0::bigint) over own as before
  from audit_chain window own as (partition by chain order by sequence)`;

/** The rules of the audit, as they are described in findings, each with the query for the rows that violate it. */
const rules: Record<string, string> = {
  'each audit record is what it was when it was linked, but for details that an erasure has replaced, and none is missing': `
    select l.chain, l.sequence, l.audit_id, case when a.audit_id is null then 'is missing' else 'was changed, or its link was' end as finding
    from (${links}) l left join audit a using (audit_id) where a.audit_id is null or ${isChanged}`,
  'the chains of audit records have no gap, and no link that does not follow from the one before': `
    select chain, sequence, before from (${links}) l where sequence <> before + 1`,
  'no audit record is without its link': `
    select a.audit_id, a.actor, a.action, a.created_at from audit a left join audit_chain l using (audit_id) where l.audit_id is null`,
};

export const auditRules = Object.keys(rules);

/**
 * Returns every violated rule of the audit, from one snapshot. It also finds changes that the owner made by
 * bypassing the triggers.
 */
export async function verifyAudit(pool: Pool): Promise<Finding[]> {
  return transaction(pool, checkAudit, 'read only snapshot');
}

export function checkAudit(client: Queries): Promise<Finding[]> {
  return findBroken(client, rules);
}

/** The verification of the audit (libs/service/verifications.ts). */
export const ofAudit: Verified = {
  action: 'verify_audit',
  check: verifyAudit,
  audit: writeAudit,
  broken: 'the audit log was changed',
};

type Head = EventData<'corebanking.audit.head.v1'>['heads'][number];

/**
 * Compares the chains with the published heads, which also reveals an audit that was rewritten or truncated as
 * a whole.
 */
export async function verifyHeads(pool: Pool, kafka: KafkaClient, prefix: string, logger: Logger): Promise<Finding[]> {
  const rows: Record<string, unknown>[] = [];
  const compare = async (heads: Head[]): Promise<void> => {
    const { rows: wrong } = await pool.query(
      `select h.* from jsonb_to_recordset($1::jsonb) as h (chain int, sequence int8, audit_id text, hash text)
        left join audit_chain l on l.chain = h.chain and l.sequence = h.sequence where l.hash is distinct from decode(h.hash, 'hex')`,
      [JSON.stringify(heads)],
    );
    rows.push(...wrong.slice(0, shownRows - rows.length));
  };
  await readToEnd(kafka, {
    topics: [topicName(prefix, 'audit')],
    idleMs: 60_000,
    logger,
    take: async (messages) => {
      const published = messages.filter(({ headers }) => headers['ce_type'] === 'corebanking.audit.head.v1');
      const heads = published.flatMap(
        ({ value }) => events['corebanking.audit.head.v1'].data.parse(JSON.parse(String(value))).heads,
      );
      if (heads.length > 0) await compare(heads);
    },
  });
  return rows.length > 0 ? [{ rule: headsRule, rows }] : [];
}
