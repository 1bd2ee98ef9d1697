import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { ReplyBody } from '#libs/contracts/envelope.ts';
import { formatId, idBits } from '#libs/contracts/ids.ts';
import { freshBits, type LedgerHarness, startLedger } from '../test/harness.ts';

let ledger: LedgerHarness;
beforeAll(async () => {
  ledger = await startLedger();
});
afterAll(() => ledger?.stop());

const later = '2100-01-01T00:00:00.000Z';
const earlier = '2020-01-01T00:00:00.000Z';

async function readOwner(account_id: string): Promise<string> {
  const { rows } = await ledger.owner.query<{ client_id: string }>(
    'select client_id from accounts where account_id = $1',
    [idBits(account_id)],
  );
  return formatId('client', (rows[0]?.client_id ?? '').replaceAll('-', ''));
}

async function deactivate(account_id: string): Promise<void> {
  const transition_id = formatId('transition', freshBits());
  const data = { transition_id, account_id, status: 'Inactive' as const };
  const context = ledger.testContext(transition_id, { message_id: transition_id });
  const [reply] = await ledger.book([{ name: 'change_ledger_account_status', data, context }]);
  if (!reply?.ok) throw new Error(JSON.stringify(reply));
}

const check = (client_id: string, kept_since: string): Promise<ReplyBody> =>
  ledger.ask({ name: 'check_erasure', data: { client_id, kept_since } });

const refusedFor = (account_id: string, reasons: string[]) => ({
  ok: false,
  refusal: { code: 'erasure_refused', details: { accounts: [{ account_id, reasons }] } },
});

describe('the check of an erasure', () => {
  it('names each account that is not Inactive, has money, or was posted to within the retention period', async () => {
    const account_id = await ledger.open('Savings', '10');
    const client_id = await readOwner(account_id);
    expect(await check(client_id, earlier)).toMatchObject(
      refusedFor(account_id, ['not_inactive', 'has_money', 'within_retention']),
    );
    await ledger.book([ledger.cash('Withdrawal', account_id, '10')]);
    await deactivate(account_id);
    expect(await check(client_id, earlier)).toMatchObject(refusedFor(account_id, ['within_retention']));
    expect(await check(client_id, later)).toEqual({ ok: true, data: {} });
  });

  it('takes the time of the opening for an account without postings, and that of the last posting for others', async () => {
    const [unused, used] = [await ledger.open('Savings', '0'), await ledger.open('Savings', '0')];
    const { rows } = await ledger.owner.query<{ client_id: string }>(
      'update accounts set client_id = (select client_id from accounts where account_id = $1), created_at = $3 where account_id = any($2) returning client_id',
      [idBits(used), [unused, used].map(idBits), earlier],
    );
    const client_id = formatId('client', (rows[0]?.client_id ?? '').replaceAll('-', ''));
    await ledger.book([ledger.cash('Deposit', used, '1')]);
    await ledger.book([ledger.cash('Withdrawal', used, '1')]);
    await deactivate(unused);
    await deactivate(used);
    expect(await check(client_id, '2021-01-01T00:00:00.000Z')).toMatchObject(refusedFor(used, ['within_retention']));
  });

  it('allows the erasure of a client without accounts', async () => {
    expect(await check(formatId('client', freshBits()), earlier)).toEqual({ ok: true, data: {} });
  });
});

it.each([
  "description = '(erased)'",
  'idempotency_key = null',
  'metadata = \'{"erased":"(erased)"}\'',
  'amount_minor = amount_minor',
])('no transaction can be changed, even by the owner: %s', async (change) => {
  // contract: audit-14, double-entry-11
  await ledger.open('Savings', '1');
  await expect(ledger.owner.query(`update transactions set ${change}`)).rejects.toThrow(/append-only/);
  await expect(ledger.reads.query(`update transactions set ${change}`)).rejects.toThrow(/permission denied/);
});
