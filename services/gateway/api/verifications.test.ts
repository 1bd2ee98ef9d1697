import { expect, test } from 'vitest';
import type { Check } from '#libs/contracts/operations.ts';
import { type Answer, ok, refused, type Service, useTestCaller } from '../test/test-app.ts';
import { combineChecks } from './operations.ts';

const start = useTestCaller();
const [begun, first, second] = ['2026-01-02T03:04:05.000Z', '2026-01-02T03:04:06.000Z', '2026-01-02T03:04:07.000Z'];
const finding = (rule: string) => ({ rule, rows: [{ n: '1' }] });
const books: Check = {
  verification_id: 'ver_1',
  requested_by: 'key:k',
  started_at: begun,
  ended_at: first,
  state: 'passed',
  findings: [],
};
const audit: Check = { ...books, ended_at: second };
const both = { covers: ['books', 'audit'] };

test.each<[string, Check, Check | null | undefined, object]>([
  ['both have passed', books, audit, { ...both, state: 'passed', ended_at: second, findings: [] }],
  [
    'the audit is broken',
    books,
    { ...audit, findings: [finding('audit')] },
    { ...both, state: 'broken', findings: [finding('audit')] },
  ],
  [
    'the books are broken',
    { ...books, state: 'broken', findings: [finding('books')] },
    audit,
    { ...both, state: 'broken', findings: [finding('books')] },
  ],
  [
    'both are broken',
    { ...books, state: 'broken', findings: [finding('books')] },
    { ...audit, findings: [finding('audit')] },
    { ...both, state: 'broken', findings: [finding('books'), finding('audit')] },
  ],
  [
    'the audit is under way',
    books,
    { ...audit, state: 'running', ended_at: null },
    { ...both, state: 'running', ended_at: null },
  ],
  [
    'the books are under way',
    { ...books, state: 'running', ended_at: null },
    audit,
    { ...both, state: 'running', ended_at: null },
  ],
  [
    'the books came to no end',
    { ...books, state: 'interrupted', ended_at: null },
    audit,
    { ...both, state: 'interrupted', ended_at: null },
  ],
  ['the audit came to no end', books, { ...audit, state: 'interrupted' }, { covers: ['books'], state: 'passed' }],
  ['the audit was never checked', books, null, { covers: ['books'], state: 'passed', ended_at: first }],
  ['accounts does not answer', books, undefined, { covers: ['books'], state: 'passed' }],
  [
    'the audit was checked for another one',
    books,
    { ...audit, verification_id: 'ver_2' },
    { covers: ['books'], state: 'passed', findings: [] },
  ],
  [
    'the audit was found broken by an earlier one',
    books,
    { ...audit, verification_id: 'ver_0', state: 'broken', findings: [finding('audit')] },
    { ...both, state: 'broken', findings: [finding('audit')] },
  ],
])('%s', (_, ofBooks, ofAudit, expected) => {
  expect(combineChecks(ofBooks, ofAudit)).toMatchObject(expected);
});

/** A bank whose ledger's verification passed, and whose accounts sends this reply. */
const bank =
  (answer: (verification_id: unknown) => Answer): Service =>
  ({ name, data }) =>
    name === 'verify_books'
      ? ok({ ...books, verification_id: data['verification_id'] })
      : name === 'verify_audit'
        ? answer(data['verification_id'])
        : 'no_reply';

test('POST /admin/verifications makes accounts check the audit under the verification’s id, and returns the findings', async () => {
  const { call, sent } = await start(
    bank((verification_id) => ok({ ...audit, verification_id, findings: [finding('audit')] })),
  );
  const { status, body } = await call('POST', '/admin/verifications', {});
  expect([status, body.data]).toMatchObject([200, { ...both, state: 'broken', findings: [finding('audit')] }]);
  expect(sent.map(({ topic, value }) => [topic, JSON.parse(String(value))])).toEqual(
    ['ledger', 'accounts'].map((service) => [
      `test.${service}.queries`,
      { verification_id: body.data.verification_id },
    ]),
  );
});

test.each<[string, Answer]>([
  ['checks another one', refused('service_unavailable')],
  ['is silent', 'no_reply'],
])('if accounts %s, the response covers only the books', async (_, answer) => {
  const { call } = await start(bank(() => answer));
  const { status, body } = await call('POST', '/admin/verifications', {});
  expect([status, body.data]).toMatchObject([200, { covers: ['books'], state: 'passed' }]);
});

test('GET /admin/operations returns both checks as one', async () => {
  const outbox = { rows: 0, oldest_age_ms: 0 };
  const { call } = await start(({ name }) =>
    ok(
      name === 'get_ledger_operations'
        ? { outbox, last_verification: books, tills_different: 0 }
        : { outbox, dead_letters_open: 0, last_audit_check: { ...audit, findings: [finding('audit')] } },
    ),
  );
  expect((await call('GET', '/admin/operations')).body.data.last_verification).toMatchObject({
    ...both,
    state: 'broken',
    findings: [finding('audit')],
  });
});
