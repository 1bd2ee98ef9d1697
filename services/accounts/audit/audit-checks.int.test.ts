import { afterAll, beforeAll, expect, it } from 'vitest';
import type { AuditCheck, AuditRecord } from '#libs/contracts/administration.ts';
import type { ReplyBody } from '#libs/contracts/envelope.ts';
import { messageType } from '#libs/contracts/messages.ts';
import { createPool, type Pool } from '#libs/postgres/pool.ts';
import { silent } from '#libs/postgres/test/test-database.ts';
import type { Harness } from '../test/harness.ts';
import { newClient, newId, startHarness } from '../test/harness.ts';
import { type AuditVerifier, createAuditVerifier, readLastAuditCheck } from './audit-checks.ts';
import { auditRules } from './verify-audit.ts';

let bank: Harness;
const pools: Pool[] = [];
let verifier: AuditVerifier;

/** Starts a separate process with the service's rights. */
function newVerifier(): AuditVerifier {
  const pool = createPool(
    { url: bank.pool.options.connectionString ?? '', application_name: 'accounts-verify', schema: 'accounts', max: 1 },
    silent,
  );
  pools.push(pool);
  return createAuditVerifier({
    pool,
    reads: bank.pool,
    now: () => new Date(),
    wakeRelay: () => undefined,
    logger: silent,
  });
}

beforeAll(async () => {
  bank = await startHarness();
  verifier = newVerifier();
  await newClient(bank);
});
afterAll(async () => {
  await Promise.all(pools.map((pool) => pool.end()));
  await bank.stop();
});

const verify = (verification_id: string, by = verifier): Promise<ReplyBody> =>
  by.verify({
    data: { verification_id },
    context: {
      message_id: verification_id,
      type: messageType('verify_audit'),
      source: '',
      time: new Date().toISOString(),
      subject: verification_id,
      request_id: 'req-1',
      actor: 'jwt:issuer|auditor',
      address: '192.0.2.1',
    },
  });
const underWay = (verification_id: string): AuditCheck => ({ verification_id, ended_at: null, findings: [] });

it('starts and replies immediately, then stores its findings in the audit log; a repeat returns them', async () => {
  expect(await readLastAuditCheck(bank.pool)).toBeNull();
  const id = newId('verification');
  expect(await verify(id)).toEqual({ ok: true, data: underWay(id) });
  await verifier.idle();
  const ended = await readLastAuditCheck(bank.pool);
  expect(ended).toEqual({ verification_id: id, ended_at: expect.stringMatching(/Z$/), findings: [] });
  expect(await verify(id)).toEqual({ ok: true, replayed: true, data: ended });
  const { rows } = await bank.owner.query<AuditRecord>("select * from audit where action = 'verify_audit'");
  expect(rows).toMatchObject([
    { resource_id: id, actor: 'jwt:issuer|auditor', outcome: 'success', request_id: 'req-1', address: '192.0.2.1' },
  ]);
});

it('runs one at a time over all processes, which all see it; an interrupted one leaves nothing behind', async () => {
  const before = await readLastAuditCheck(bank.pool);
  const blocker = await bank.owner.connect();
  await blocker.query('begin');
  await blocker.query('lock table audit_chain in access exclusive mode');
  const id = newId('verification');
  await verify(id);
  const rival = newVerifier();
  expect(await readLastAuditCheck(bank.pool)).toEqual(underWay(id));
  expect(await verify(id, rival)).toEqual({ ok: true, replayed: true, data: underWay(id) });
  for (const by of [rival, verifier])
    expect(await verify(newId('verification'), by)).toMatchObject({
      ok: false,
      refusal: { code: 'service_unavailable' },
    });
  await verifier.stop();
  await blocker.query('rollback');
  blocker.release();
  expect(await readLastAuditCheck(bank.pool)).toEqual(before);
  const next = newId('verification');
  expect(await verify(next, rival)).toEqual({ ok: true, data: underWay(next) });
  await rival.idle();
  expect(await readLastAuditCheck(bank.pool)).toMatchObject({ verification_id: next, findings: [] });
});

it('names the records that the owner changed by disabling the triggers', async () => {
  const { rows } = await bank.owner.query<{ audit_id: string }>(
    "select audit_id from audit where action = 'create_client' limit 1",
  );
  await bank.owner.query('alter table audit disable trigger all');
  await bank.owner.query("update audit set actor = 'jwt:issuer|alice' where audit_id = $1", [rows[0]?.audit_id]);
  await bank.owner.query('alter table audit enable trigger all');
  const id = newId('verification');
  await verify(id);
  await verifier.idle();
  expect(await readLastAuditCheck(bank.pool)).toMatchObject({
    verification_id: id,
    findings: [
      {
        rule: auditRules.records,
        rows: [
          {
            audit_id: rows[0]?.audit_id,
            finding: 'was changed, or its link was',
            chain: expect.anything(),
            sequence: expect.any(String),
          },
        ],
      },
    ],
  });
});
