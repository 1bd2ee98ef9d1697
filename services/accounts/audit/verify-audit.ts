import type { Logger } from 'pino';
import { type EventData, events } from '#libs/contracts/events.ts';
import { topicName } from '#libs/contracts/topics.ts';
import type { KafkaClient } from '#libs/kafka/client.ts';
import { readToEnd } from '#libs/kafka/consume/read-to-end.ts';
import type { Pool, Queries } from '#libs/postgres/pool.ts';
import { transaction } from '#libs/postgres/transaction.ts';

/** What must hold of the audit, in words. */
export const auditRules = {
  records: 'each audit record is what it was when it was linked, and none is missing',
  links: 'the chains of audit records have no gap, and no link that does not follow from the one before',
  linked: 'no audit record is without its link',
} as const;
export const headsRule = 'the chains of audit records hold every head that was published on the topic audit';

const shownRows = 20;
const query_timeout = 3_600_000;

/** What the trigger link_audit has computed, said once more here: of an owner's changed function nothing is taken on trust. */
const hash = `sha256(previous || convert_to(jsonb_build_array(
    a.audit_id, to_char(a.created_at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US'), a.actor, a.action,
    a.resource_id, a.outcome, a.request_id, a.details, a.address)::text, 'UTF8'))`;

const links = `select chain, sequence, audit_id, hash, lag(hash, 1, ''::bytea) over own as previous, lag(sequence, 1, 0::bigint) over own as before
  from audit_chain window own as (partition by chain order by sequence)`;

const queries: Record<string, string> = {
  [auditRules.records]: `select l.chain, l.sequence, l.audit_id, case when a.audit_id is null then 'is missing' else 'was changed, or its link was' end as finding
    from (${links}) l left join audit a using (audit_id) where a.audit_id is null or l.hash <> ${hash}`,
  [auditRules.links]: `select chain, sequence, before from (${links}) l where sequence <> before + 1`,
  [auditRules.linked]: 'select a.audit_id, a.actor, a.action, a.created_at from audit a left join audit_chain l using (audit_id) where l.audit_id is null',
};

export interface AuditFinding {
  rule: string;
  /** The first rows that break it. */
  rows: Record<string, unknown>[];
}

/** Every rule of the audit that does not hold, in one snapshot. Finds what the owner has done past the triggers. */
export async function verifyAudit(pool: Pool): Promise<AuditFinding[]> {
  return transaction(pool, checkAudit, 'read only snapshot');
}

export async function checkAudit(client: Queries): Promise<AuditFinding[]> {
  await client.query('set local statement_timeout = 0');
  const findings: AuditFinding[] = [];
  for (const [rule, text] of Object.entries(queries)) {
    const { rows } = await client.query<Record<string, unknown>>({ text: `${text} limit ${shownRows}`, query_timeout });
    if (rows.length > 0) findings.push({ rule, rows });
  }
  return findings;
}

type Head = EventData<'corebanking.audit.head.v1'>['heads'][number];

/** Compares the chains with the heads that were published: an audit that was written anew as a whole, or cut, is found too. */
export async function verifyHeads(pool: Pool, kafka: KafkaClient, prefix: string, logger: Logger): Promise<AuditFinding[]> {
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
    groupId: `${prefix}verify-audit`, topics: [topicName(prefix, 'audit')], idleMs: 60_000, logger,
    take: async (messages) => {
      const told = messages.filter(({ headers }) => headers['ce_type'] === 'corebanking.audit.head.v1');
      const heads = told.flatMap(({ value }) => events['corebanking.audit.head.v1'].data.parse(JSON.parse(String(value))).heads);
      if (heads.length > 0) await compare(heads);
    },
  });
  return rows.length > 0 ? [{ rule: headsRule, rows }] : [];
}
