import { afterEach, describe, expect, test } from 'vitest';
import type { RestKey } from '../support/client.ts';
import { expectError, newKey } from '../support/client.ts';
import { skewedClock } from '../support/skewed-clock.ts';
import { eventually, together, useBank } from '../support/world.ts';

/**
 * Tests a host whose clock is two hours wrong: its process reports it and decides nothing. Others do in its place.
 */
const world = useBank({ gateways: 2, ledgers: 2, accounts: 2, env: { SPREAD_COMMANDS: 'true' } });

const nearMs = 60_000;
const isNear = (time: string) => Math.abs(Date.parse(time) - Date.now()) < nearMs;

async function startSkewed(name: string, hours: number): Promise<void> {
  const process = world.bank.process(name);
  await process.startWith(skewedClock(hours));
  await eventually(async () => {
    const response = await fetch(process.health_url);
    const { checks } = (await response.json()) as { checks: Record<string, { ok: boolean; reason?: string }> };
    return response.status === 503 && checks['clock']?.reason?.includes(hours > 0 ? 'ahead of' : 'behind');
  }, 45_000);
}

/** Reports whether the process has left its groups. */
async function hasLeft(name: string): Promise<boolean> {
  const response = await fetch(world.bank.process(name).health_url);
  const { checks } = (await response.json()) as { checks: Record<string, { ok: boolean }> };
  return checks['queries']?.ok === false && checks['commands']?.ok === false;
}

let skewed = '';
afterEach(async () => {
  await world.bank.process(skewed).restart();
  await eventually(async () => (await world.gateway(1).get('/')).status === 200);
});

describe.each([2, -2])('%i hours off', (hours) => {
  test('a gateway refuses every request, also with a token or key that is valid by the right clock, and does not affect others', async () => {
    skewed = 'gateway-2';
    const account = await world.api.newAccount({ initial_deposit: 10 });
    const token = await world.bank.token();
    const expiring: RestKey = await world.api.key({
      scopes: ['accounts:read'],
      expires_at: new Date(Date.now() + 3_600_000).toISOString(),
    });
    await startSkewed(skewed, hours);
    const wrong = world.gateway(1);
    const key = newKey();
    const body = { account_id: account.account_id, transaction_type: 'Deposit', amount: 5 };
    const refused = await eventually(async () => wrong.once(key, '/transactions', body));
    expectError(refused, 503, 'service_unavailable', /clock/);
    expect(refused.header('retry-after')).toBe('1');
    // Neither a token that was just issued nor a key that is valid for one hour is reported as invalid.
    for (const caller of [wrong.withToken(token), wrong.withKey(expiring.api_key ?? '')])
      expectError(await caller.get(`/accounts/${account.account_id}`), 503, 'service_unavailable', /clock/);
    expect((await world.api.once(key, '/transactions', body)).status).toBe(201);
  });

  test('a ledger decides nothing, and another one does in its place', async () => {
    // contract: idempotency-14
    skewed = 'ledger-2';
    const accounts = await together(24, () => world.api.newAccount({ initial_deposit: 10 }));
    await startSkewed(skewed, hours);
    await eventually(() => hasLeft(skewed));
    for (const { account_id } of accounts) {
      const deposit = { account_id, transaction_type: 'Deposit', amount: 5 };
      await eventually(async () => (await world.api.post('/transactions', deposit)).status === 201, 30_000);
      const entries = await eventually(() => world.api.entries(account_id));
      expect(entries.filter(({ created_at }) => !isNear(created_at))).toEqual([]);
    }
  });

  test('accounts decides nothing, and another process does in its place', async () => {
    skewed = 'accounts-2';
    await startSkewed(skewed, hours);
    await eventually(() => hasLeft(skewed));
    const clients = await together(12, () => eventually(() => world.api.client(), 30_000));
    const expires_at = new Date(Date.now() + 3_600_000).toISOString();
    for (const { client_id, created_at } of clients) {
      expect(isNear(created_at)).toBe(true);
      const account = await world.api.account(client_id, { initial_deposit: 1 });
      expect(isNear(account.created_at)).toBe(true);
    }
    const key: RestKey = await world.api.key({ scopes: ['accounts:read'], expires_at });
    expect((await world.api.get(`/admin/api-keys/${key.key_id}`)).data<RestKey>()).toMatchObject({
      status: 'active',
      expires_at,
    });
  });
});
