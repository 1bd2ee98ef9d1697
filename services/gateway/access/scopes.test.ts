import { readFileSync } from 'node:fs';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { endpoints } from '#libs/contracts/endpoints.ts';
import { bankScopes, scopes } from '#libs/contracts/scopes.ts';
import { ids, testCaller } from '../test/test-app.ts';

/**
 * The scopes of each endpoint, written by hand a second time, so that a change of the endpoints table that grants a
 * permission must also be made here. An empty list means any authenticated caller; of scopes with `or`, one is
 * sufficient.
 */
const table: Record<string, string[]> = {
  'POST /admin/day-closings': ['books:close'],
  'GET /admin/day-closings': ['books:read'],
  'GET /admin/day-closings/:date': ['books:read'],
  'GET /admin/day-closings/:date/accounts': ['books:read'],
  'GET /admin/balances': ['books:read'],
  'GET /': [],
  'GET /clients': ['clients:read'],
  'GET /clients/ussd/search': ['clients:read'],
  'GET /clients/:client_id': ['clients:read'],
  'POST /clients': ['clients:write'],
  'PATCH /clients/:client_id': ['clients:write'],
  'POST /clients/:client_id/notes': ['clients:write'],
  'GET /clients/:client_id/notes': ['clients:read'],
  'POST /accounts/:account_id/notes': ['accounts:write'],
  'GET /accounts/:account_id/notes': ['accounts:read'],
  'GET /accounts': ['accounts:read'],
  'GET /accounts/number/:accountNumber/balance': ['accounts:read'],
  'GET /accounts/:account_id': ['accounts:read'],
  'POST /accounts': ['accounts:write'],
  'POST /accounts/:account_id/status-transitions': ['accounts:status'],
  'GET /accounts/:account_id/status-transitions': ['accounts:read'],
  'GET /accounts/:account_id/limits': ['accounts:limits or accounts:read'],
  'PUT /accounts/:account_id/limits': ['accounts:limits'],
  'GET /accounts/:account_id/entries': ['transactions:read'],
  'GET /accounts/:account_id/balance': ['accounts:read'],
  'GET /accounts/:account_id/days': ['transactions:read'],
  'GET /accounts/:account_id/statement': ['transactions:read'],
  'GET /transactions': ['transactions:read'],
  'GET /transactions/:transaction_id': ['transactions:read'],
  'POST /transactions': ['transactions:write'],
  'POST /transactions/:transaction_id/reversal': ['transactions:reverse'],
  'GET /transfers': ['transactions:read'],
  'GET /transfers/:transfer_id': ['transactions:read'],
  'POST /transfers': ['transfers:write'],
  'POST /admin/clients/:client_id/erasure': ['clients:erase'],
  'GET /accounts/:account_id/holds': ['transactions:read'],
  'GET /holds/:hold_id': ['transactions:read'],
  'POST /accounts/:account_id/holds': ['holds:write'],
  // The destination of the money determines further scopes.
  'POST /holds/:hold_id/capture': ['holds:write'],
  'POST /holds/:hold_id/release': ['holds:write'],
  // The items of a batch determine which of them, or both.
  'POST /batches': ['transactions:write or transfers:write'],
  'GET /batches': ['transactions:read'],
  'GET /batches/:batch_id': ['transactions:read'],
  'GET /events': ['transactions:read'],
  'POST /webhooks': ['webhooks:manage'],
  'GET /webhooks': ['webhooks:manage'],
  'GET /webhooks/:webhook_id': ['webhooks:manage'],
  'PATCH /webhooks/:webhook_id': ['webhooks:manage'],
  'DELETE /webhooks/:webhook_id': ['webhooks:manage'],
  'POST /webhooks/:webhook_id/secret-rotation': ['webhooks:manage'],
  'POST /webhooks/:webhook_id/test': ['webhooks:manage'],
  'POST /webhooks/:webhook_id/replay': ['webhooks:manage'],
  'GET /webhooks/:webhook_id/deliveries': ['webhooks:manage'],
  'POST /webhooks/:webhook_id/deliveries/:delivery_id/redelivery': ['webhooks:manage'],
  'POST /webhooks/:webhook_id/deliveries/:delivery_id/skip': ['webhooks:manage'],
  'POST /admin/api-keys': ['keys:manage'],
  'GET /admin/api-keys': ['keys:manage'],
  'GET /admin/api-keys/:key_id': ['keys:manage'],
  'POST /admin/api-keys/:key_id/rotation': ['keys:manage'],
  'POST /admin/api-keys/:key_id/revocation': ['keys:manage'],
  'GET /admin/trial-balance': ['books:read'],
  'GET /admin/system-accounts': ['books:read'],
  'GET /admin/search': [],
  'GET /admin/transactions/:transaction_id/timeline': ['audit:read', 'transactions:read'],
  'GET /admin/posting-statistics': ['books:read'],
  'GET /admin/posting-totals': ['books:read'],
  'GET /admin/cash-days': ['books:read'],
  'GET /admin/approval-rules': [],
  // Persons only.
  'GET /admin/staff-names': [],
  // Of another person: books:read.
  'GET /admin/staff-day': [],
  'GET /tills': [],
  'GET /tills/:till_id': [],
  'POST /tills': ['transactions:write'],
  'POST /tills/:till_id/closing': ['transactions:write'],
  'GET /admin/operations': ['books:read'],
  'POST /admin/verifications': ['books:read'],
  'GET /admin/audit': ['audit:read'],
  'GET /admin/audit/actors': ['audit:read'],
  'GET /admin/dead-letters': ['ops:manage'],
  'GET /admin/dead-letters/:dead_letter_id': ['ops:manage', 'clients:read'],
  'POST /admin/dead-letters/:dead_letter_id/redrive': ['ops:manage'],
  'POST /admin/dead-letters/:dead_letter_id/drop': ['ops:manage'],
  // The subject of the approval determines further scopes.
  'GET /admin/approvals': [],
  'GET /admin/approvals/:approval_id': [],
  'POST /admin/approvals/:approval_id/approval': ['approvals:write'],
  'POST /admin/approvals/:approval_id/rejection': ['approvals:write'],
  // For people only.
  'POST /admin/sign-ins': [],
  'POST /admin/sign-outs': [],
  'POST /admin/activities': [],
};

/** Scopes that a credential bound to one client never has, even if they were granted. */
const ofTheBank = [
  'transactions:write',
  'transactions:reverse',
  'holds:write',
  'accounts:status',
  'accounts:import',
  'accounts:limits',
  'clients:erase',
  'keys:manage',
  'audit:read',
  'books:read',
  'books:close',
  'ops:manage',
  'approvals:write',
];

/** The other endpoints that refuse a credential bound to one client. */
const notForBound = [
  'GET /admin/approval-rules',
  'GET /admin/staff-names',
  'GET /admin/staff-day',
  'GET /tills',
  'GET /tills/:till_id',
  'POST /clients',
  'POST /clients/:client_id/notes',
  'GET /clients/:client_id/notes',
  'POST /accounts/:account_id/notes',
  'GET /accounts/:account_id/notes',
  'GET /accounts/:account_id/limits',
  'GET /admin/search',
  'POST /admin/sign-ins',
  'POST /admin/sign-outs',
  'POST /admin/activities',
];

let caller: Awaited<ReturnType<typeof testCaller>>;
beforeAll(async () => {
  caller = await testCaller(() => 'not_sent');
});
afterAll(() => caller.app.close());

test('endpoints of the bank are known as such', () => {
  // This one is for a value of a field, not for an endpoint.
  const ofFields = ['transactions:backdate'];
  expect(bankScopes.toSorted()).toEqual(
    scopes.filter((scope) => ofTheBank.includes(scope) || ofFields.includes(scope)).toSorted(),
  );
});

test('the chapter about permission names every scope, and those that a bound credential cannot have', () => {
  // contract: permission-22, permission-25
  const chapter = readFileSync(new URL('../../../docs/contract/permission.md', import.meta.url), 'utf8');
  const namesIn = (form: RegExp) =>
    [...(form.exec(chapter)?.[0] ?? '').matchAll(/`([a-z]+:[a-z]+)`/g)].map(([, name]) => name).toSorted();
  expect(namesIn(/^\| scope [^]*?\n\n/m)).toEqual(scopes.toSorted());
  expect(namesIn(/\*\*permission-25\*\*[^]*?(?=\n-)/)).toEqual(bankScopes.toSorted());
});

test('every endpoint is in the table', () => {
  expect(
    Object.values(endpoints)
      .map(({ method, path }) => `${method} ${path}`)
      .sort(),
  ).toEqual(Object.keys(table).sort());
});

describe.each(Object.entries(table))('%s', (route, needed) => {
  const [method = '', path = ''] = route.split(' ');
  const url = path
    .replace(':client_id', ids.client)
    .replace(':account_id', ids.account)
    .replace(':transaction_id', ids.transaction)
    .replace(/:\w+/, 'x');

  async function isRefused(state: { scopes: string[]; client_id?: string }): Promise<boolean> {
    const { call, keyHeader } = caller;
    // The scopes are asked for before a body is read, so this one is not seen to be malformed.
    const { status, body } = await call(method as 'GET', url, method === 'GET' ? undefined : '{', keyHeader(state));
    return status === 403 && body.code === 'insufficient_scope';
  }

  test(needed.length === 0 ? 'is for every caller' : `needs ${needed.join(' and ')}, and nothing else`, async () => {
    const sufficient = needed.map((scope) => scope.split(' or '));
    for (const index of [0, -1])
      expect(await isRefused({ scopes: sufficient.map((any) => any.at(index) as string) })).toBe(false);
    for (const any of sufficient)
      expect(await isRefused({ scopes: scopes.filter((other) => !any.includes(other)) })).toBe(true);
  });

  test('refuses a bound credential if its scope or the endpoint is the bank’s, whatever the body', async () => {
    expect(await isRefused({ scopes: [...scopes], client_id: ids.client })).toBe(
      needed.some((scope) => ofTheBank.includes(scope)) || notForBound.includes(route),
    );
  });
});
