import { beforeAll, expect, test } from 'vitest';
import type { AuditRecord } from '#libs/contracts/audit.ts';
import { readOutbox } from '#libs/postgres/outbox/test/test-outbox.ts';
import { messageFor, newClient, newId, readOutboxByKey, useAccounts } from '../test/harness.ts';
import { publishHeads } from './audit-heads.ts';
import { auditRules, checkAudit, verifyAudit } from './verify-audit.ts';

/** Tests that a check of the audit log detects changes that the owner made by disabling the triggers. */
const bank = useAccounts();
let mine: string[];
const [recordsRule = '', linksRule, linkedRule] = auditRules;
const record = (n: number): AuditRecord => ({
  audit_id: newId('audit'),
  created_at: '2026-01-02T03:04:05.678Z',
  actor: 'jwt:issuer|eve',
  action: 'list_audit',
  resource_id: null,
  outcome: 'insufficient_scope',
  request_id: `r-${n}`,
  details: { n, text: 'x"\u00e9' },
  address: '192.0.2.1',
});

beforeAll(async () => {
  const records = Array.from({ length: 200 }, (_, n) => record(n));
  mine = records.map(({ audit_id }) => audit_id);
  const messages = records.map((one) => messageFor('record_audit', one, { subject: one.actor }));
  // The writers run concurrently, and some write the same records: chains must not fork, and a repeat must not add a
  // link.
  const processes = [bank, bank.process(), bank.process(), bank.process()];
  await Promise.all(
    processes.map((process, i) =>
      Promise.all([process.handleCommands(messages.slice(40 * i, 40 * i + 80)), newClient(bank), newClient(bank)]),
    ),
  );
});

test('every record has exactly one link, however many writers run concurrently', async () => {
  expect(await verifyAudit(bank.pool)).toEqual([]);
  const { rows } = await bank.pool.query(
    'select count(*)::int as records, (select count(*)::int from audit_chain) as links, (select count(distinct chain)::int from audit_chain) as chains from audit',
  );
  expect(rows[0]).toMatchObject({ records: 200 + 8, links: 200 + 8 });
  expect(rows[0]?.chains).toBeGreaterThan(1);
});

/** Returns the findings after the owner's change with disabled triggers, which is then rolled back. */
async function found(statement: string, values: unknown[] = []) {
  const client = await bank.owner.connect();
  try {
    await client.query('begin');
    await client.query('alter table audit disable trigger all; alter table audit_chain disable trigger all');
    await client.query(statement, values.length > 0 ? values : undefined);
    return await checkAudit(client);
  } finally {
    await client.query('rollback');
    client.release();
  }
}

test.each<[string, string, string]>([
  ['who did it', "actor = 'jwt:issuer|alice'", recordsRule],
  ['what was done', 'details = details || \'{"n": 7000}\'', recordsRule],
  ['when', "created_at = created_at + interval '1 microsecond'", recordsRule],
  ['from where', 'address = null', recordsRule],
])('a change of %s is found, and the record named', async (_what, change, rule) => {
  // contract: audit-10
  const findings = await found(`update audit set ${change} where audit_id = $1`, [mine[7]]);
  expect(findings).toMatchObject([{ rule, rows: [{ audit_id: mine[7], finding: 'was changed, or its link was' }] }]);
});

test('a removed record is named; if its link is removed too, the gap and the next link are named', async () => {
  expect(await found('delete from audit where audit_id = $1', [mine[7]])).toMatchObject([
    { rule: recordsRule, rows: [{ audit_id: mine[7], finding: 'is missing' }] },
  ]);
  const id =
    (
      await bank.pool.query<{ audit_id: string }>(
        'select audit_id from audit_chain l where exists (select from audit_chain n where n.chain = l.chain and n.sequence = l.sequence + 1) limit 1',
      )
    ).rows[0]?.audit_id ?? '';
  expect(
    (await found(`delete from audit where audit_id = '${id}'; delete from audit_chain where audit_id = '${id}'`)).map(
      ({ rule }) => rule,
    ),
  ).toEqual([recordsRule, linksRule]);
});

test('an inserted record is named, and so is one that replaces another', async () => {
  const put = `insert into audit select 'aud_forged', created_at, 'jwt:issuer|alice', action, resource_id, outcome, request_id, details, address from audit where audit_id = '${mine[7]}'`;
  expect(await found(put)).toMatchObject([{ rule: linkedRule, rows: [{ audit_id: 'aud_forged' }] }]);
  expect(
    await found(
      `${put}; update audit_chain set audit_id = 'aud_forged' where audit_id = '${mine[7]}'; delete from audit where audit_id = '${mine[7]}'`,
    ),
  ).toMatchObject([{ rule: recordsRule, rows: [{ audit_id: 'aud_forged' }] }]);
});

test('the service’s role cannot write a link, and nobody can change one', async () => {
  await expect(bank.pool.query("insert into audit_chain values (0, 999, 'x', '')")).rejects.toThrow(
    /permission denied/,
  );
  await expect(bank.owner.query('delete from audit_chain')).rejects.toThrow(/append-only/);
});

test('heads are published with an id derived from their content, and again only after a change', async () => {
  // contract: audit-11
  const id = await publishHeads(bank.pool);
  expect(id).toMatch(/^[0-9a-f]{32}$/);
  expect(await publishHeads(bank.pool, id)).toBeUndefined();
  const [event] = await readOutboxByKey(bank.pool, 'audit-chain');
  const { rows } = await bank.pool.query(
    'select chain, max(sequence)::int as sequence from audit_chain group by chain order by chain',
  );
  expect(event).toMatchObject({ topic: 'audit', type: 'corebanking.audit.head.v1', payload: { heads: rows } });
  // Another process publishes the same bytes.
  expect(await publishHeads(bank.pool)).toBe(id);
  const [first, again] = (await readOutbox(bank.pool)).filter(({ key }) => key === 'audit-chain');
  expect(again).toEqual({ ...first, batch_id: again?.batch_id });
  expect(first?.time).toMatch(/^20\d\d-.*\.\d{3}Z$/);
  await newClient(bank);
  expect(await publishHeads(bank.pool, id)).not.toBe(id);
});
