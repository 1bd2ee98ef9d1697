import { afterAll, beforeAll, expect, it } from 'vitest';
import type { AuditRecord } from '#libs/contracts/audit.ts';
import type { ReplyBody } from '#libs/contracts/envelope.ts';
import { messageType } from '#libs/contracts/messages.ts';
import { createPool, type Pool } from '#libs/postgres/pool.ts';
import { silent } from '#libs/postgres/test/test-database.ts';
import { createVerifier, readLastVerification, type Verifier } from '#libs/service/verifications.ts';
import { newClient, newId, useAccounts } from '../test/harness.ts';
import { auditRules, ofAudit } from './verify-audit.ts';

/** Tests the verification of the audit with the service's rights. services/ledger/verify tests what both have in common. */

const bank = useAccounts();
let pool: Pool;
let verifier: Verifier;

beforeAll(async () => {
  const url = bank.pool.options.connectionString ?? '';
  pool = createPool({ url, application_name: 'accounts verifies', schema: 'accounts', max: 2 }, silent);
  verifier = createVerifier(ofAudit, { pool, reads: bank.pool, now: Date.now, logger: silent });
  await newClient(bank);
});
afterAll(async () => {
  await pool.end();
});

const verify = (verification_id: string): Promise<ReplyBody> =>
  verifier.verify({
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

it('starts and replies immediately, then stores its findings; a repeat returns them; the requester is audited', async () => {
  expect(await readLastVerification(bank.pool)).toBeNull();
  const id = newId('verification');
  expect(await verify(id)).toMatchObject({ ok: true, data: { verification_id: id } });
  await verifier.idle();
  const ended = await readLastVerification(bank.pool);
  expect(ended).toMatchObject({ verification_id: id, state: 'passed', findings: [] });
  expect(await verify(id)).toEqual({ ok: true, replayed: true, data: ended });
  const { rows } = await bank.owner.query<AuditRecord>("select * from audit where action = 'verify_audit'");
  expect(rows).toMatchObject([
    { resource_id: id, actor: 'jwt:issuer|auditor', outcome: 'success', request_id: 'req-1', address: '192.0.2.1' },
  ]);
});

it('names the records that the owner changed by disabling the triggers', async () => {
  const { rows } = await bank.owner.query<{ audit_id: string }>(
    "select audit_id from audit where action = 'create_client' limit 1",
  );
  await bank.owner.query('alter table audit disable trigger all');
  await bank.owner.query("update audit set actor = 'jwt:issuer|alice' where audit_id = $1", [rows[0]?.audit_id]);
  await bank.owner.query('alter table audit enable trigger all');
  await verify(newId('verification'));
  await verifier.idle();
  expect(await readLastVerification(bank.pool)).toMatchObject({
    state: 'broken',
    findings: [
      {
        rule: auditRules[0],
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
