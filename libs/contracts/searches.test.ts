import { expect, test } from 'vitest';
import { isScan } from './searches.ts';

test.each<[Record<string, unknown>, boolean]>([
  [{}, false],
  [{ from: '2026-01-01' }, false],
  [{ reference: 'x' }, false],
  [{ idempotency_key: 'x' }, false],
  [{ status: 'Failed' }, false],
  [{ status: 'Completed' }, true],
  [{ min_amount: '1' }, true],
  [{ max_amount: '1', from: '2026-01-01' }, true],
  [{ transaction_type: 'Deposit' }, true],
  [{ currency: 'KES' }, true],
  [{ actor: 'key:1' }, true],
  [{ request_id: 'r-1' }, true],
  [{ counterparty_account_id: 'acc_1' }, true],
  [{ metadata: { order: '17' }, from: '2026-01-01' }, true],
  [{ transaction_type: 'Deposit', account_id: 'acc_1' }, false],
  [{ min_amount: '1', transfer_id: 'trf_1' }, false],
])('a list of transactions by %j is a scan: %s', (filters, expected) => {
  expect(isScan('list_transactions', filters, undefined)).toBe(expected);
  expect(isScan('list_transactions', filters, 'cli_1')).toBe(false);
});

test('a list of transfers is a scan unless it has one account or one external_id; no other list is; sums are', () => {
  expect([
    isScan('list_transfers', {}, undefined),
    isScan('list_transfers', { account_id: 'acc_1' }, undefined),
    isScan('list_transfers', { external_id: 'x' }, undefined),
    isScan('list_clients', { client_type: 'Retail' }, undefined),
    isScan('get_trial_balance', {}, undefined),
    isScan('get_posting_statistics', {}, undefined),
    isScan('get_posting_totals', {}, undefined),
  ]).toEqual([true, false, false, false, true, true, true]);
});

test.each<[Record<string, unknown>, boolean]>([
  [{}, false],
  [{ actor: 'key:1' }, true],
  [{ actor: 'key:1', from: '2026-01-01' }, true],
  [{ actor: 'key:1', external_id: 'x' }, false],
  [{ actor: 'jwt:https://issuer.example|ada' }, false],
])('a list of batches by %j is a scan: %s', (filters, expected) => {
  expect(isScan('list_batches', filters, undefined)).toBe(expected);
});
