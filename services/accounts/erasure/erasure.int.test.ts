import { randomBytes } from 'node:crypto';
import { beforeEach, describe, expect, test } from 'vitest';
import type { AuditRecord } from '#libs/contracts/audit.ts';
import type { ReplyBody } from '#libs/contracts/envelope.ts';
import { erasureSchema } from '#libs/contracts/erasure.ts';
import type { MessageData } from '#libs/contracts/messages.ts';
import { readOutbox } from '#libs/postgres/outbox/test/test-outbox.ts';
import { verifyAudit } from '../audit/verify-audit.ts';
import {
  corporate,
  ledgerReply,
  messageFor,
  newAccount,
  newClient,
  newId,
  openAccountCommand,
  readOutboxByKey,
  retail,
  useAccounts,
} from '../test/harness.ts';

const bank = useAccounts();
beforeEach(() => {
  bank.deps.retention = { years: 0, eventsDays: 400, outboxHours: 24 };
});

const replyCode = (reply: ReplyBody | undefined) => (reply?.ok === false ? reply.refusal.code : reply?.ok);
const erasedByLedger: ReplyBody = { ok: true, data: {} };

async function changeStatus(account_id: string, status: 'Active' | 'Inactive', note: string | null = null) {
  const transition_id = newId('transition');
  const data = { transition_id, account_id, status, reason: null, note };
  const reply = await bank.send('change_account_status', data, { message_id: transition_id });
  const from_status = status === 'Active' ? 'Inactive' : 'Active';
  const result = {
    account_id,
    from_status,
    to_status: status,
    changed: true,
    status_version: 2,
    balance: '0.00',
    changed_at: '2020-01-02T03:04:05.678Z',
  };
  await bank.handleCommands([ledgerReply(transition_id, account_id, { ok: true, data: result })]);
  return reply;
}

async function inactiveAccount(client_id: string, names: Partial<MessageData<'open_account'>> = {}): Promise<string> {
  const account_id = await newAccount(bank, client_id, names);
  await changeStatus(account_id, 'Inactive', 'moved to 12 St James Square');
  return account_id;
}

/** Requests the erasure and returns the message, which gets a reply after the ledger has replied. */
async function begin(client_id: string) {
  const message_id = `cmd_${randomBytes(16).toString('hex')}`;
  const overrides = { message_id, request_id: 'req-erasure', address: '192.0.2.7' };
  const message = messageFor('erase_client', { client_id }, overrides);
  await bank.handleCommands([message]);
  const id = message.headers['ce_id'] ?? '';
  const reply = () => bank.repliesTo(message.headers['correlation-id'] ?? '')[0];
  return { message, id, reply };
}

async function erased(client_id: string, answer = erasedByLedger): Promise<ReplyBody | undefined> {
  const { id, reply } = await begin(client_id);
  await bank.handleCommands([ledgerReply(id, client_id, answer)]);
  return reply();
}

const readText = async (statement: string, values: unknown[] = []) =>
  JSON.stringify((await bank.owner.query(statement, values)).rows);
const readAudit = async (resource_id: string) =>
  (await bank.owner.query<AuditRecord>('select * from audit where resource_id = $1 order by created_at', [resource_id]))
    .rows;

describe('an erasure', () => {
  test('replaces personal data in rows, stored replies, audit details, notes, and approvals; the audit chains stay valid', async () => {
    // contract: audit-13
    const client_id = newId('client');
    const person = {
      ...retail,
      first_name: 'Zuleika',
      email: 'zuleika@example.com',
      address: '7 Nowhere',
      ussd_phone_number: '+254711000111',
      ussd_status: 'active' as const,
      external_id: 'Zuleika-1',
      metadata: { dog: 'of Zuleika' },
    };
    const creation = messageFor('create_client', { client_id, client: person }, { message_id: client_id });
    await bank.handleCommands([creation]);
    await bank.send('update_client', { client_id, changes: { address: '8 Nowhere' } });
    const account_id = await inactiveAccount(client_id, { external_id: 'Zuleika-2', metadata: { dog: 'of Zuleika' } });
    const [noteOnClient, noteOnAccount] = [newId('note'), newId('note')];
    const note = 'Zuleika moves';
    await bank.send('add_client_note', { note_id: noteOnClient, client_id, note }, { message_id: noteOnClient });
    await bank.send('add_account_note', { note_id: noteOnAccount, account_id, note }, { message_id: noteOnAccount });
    // These records have the form of records of a read by staff, and of a change of names.
    const record = {
      audit_id: newId('audit'),
      created_at: '2026-01-02T03:04:05.678Z',
      actor: 'jwt:x|y',
      action: 'update_client',
      resource_id: client_id,
      outcome: 'success',
      request_id: 'r',
      details: { before: 'Zuleika' },
      address: null,
    };
    await bank.handleCommands([messageFor('record_audit', record, { subject: record.actor })]);
    const approval_id = newId('approval');
    const request = {
      operation: 'change_account_status' as const,
      method: 'POST',
      path: `/accounts/${account_id}/status-transitions`,
      body: { status: 'Active', note: 'Zuleika rang' },
    };
    const command = {
      name: 'change_account_status' as const,
      id: newId('transition'),
      key: account_id,
      data: { transition_id: newId('transition'), account_id, status: 'Active', reason: null, note: 'Zuleika rang' },
    };
    const asked = {
      approval_id,
      action: 'unfreeze' as const,
      summary: 'Unfreeze',
      request,
      changes: [{ field: 'note', before: null, after: 'Zuleika rang' }],
      scopes: [],
      command,
    };
    await bank.send('request_approval', asked, { message_id: approval_id, subject: approval_id, actor: 'jwt:x|alice' });
    await bank.send(
      'reject_request',
      { approval_id, reason: 'Zuleika is abroad', scopes: ['approvals:write'] },
      { actor: 'jwt:x|bob' },
    );

    const reply = await erased(client_id);
    if (!reply?.ok) throw new Error(JSON.stringify(reply));
    const erasure = erasureSchema.parse(reply.data);
    expect(erasure).toMatchObject({
      client_id,
      replaced: { kept_replies: 8, audit_records: 4, approvals: 1, status_notes: 3 },
      revoked_keys: 0,
    });

    const all = await readText(
      `select (select json_agg(c) from clients c) as clients, (select json_agg(c) from commands c) as commands, (select json_agg(a) from audit a) as audit,
         (select json_agg(t) from status_transitions t) as transitions, (select json_agg(n) from notes n) as notes, (select json_agg(a) from accounts a) as accounts, (select json_agg(a) from approvals a) as approvals`,
    );
    for (const text of ['Zuleika', 'zuleika', 'Nowhere', '+254711000111', 'St James']) expect(all).not.toContain(text);
    const shown = await bank.send('get_client', { client_id });
    expect(shown).toMatchObject({
      ok: true,
      data: {
        client_id,
        first_name: '(erased)',
        last_name: '(erased)',
        email: '(erased)',
        contact_number: '(erased)',
        address: '(erased)',
        ussd_phone_number: null,
        ussd_status: 'inactive',
        erased_at: erasure.erased_at,
      },
    });
    await bank.handleCommands([{ ...creation }]);
    expect(bank.repliesTo(creation.headers['correlation-id'] ?? '').at(-1)).toMatchObject({
      ok: true,
      data: { client_id, first_name: '(erased)' },
    });
    expect(await verifyAudit(bank.pool)).toEqual([]);
    const records = await readAudit(client_id);
    expect(records.map(({ action }) => action)).toContain('erase_client');
    const own = records.find(({ action }) => action === 'erase_client');
    expect(own).toMatchObject({ outcome: 'success', details: { audit_records: 4, revoked_keys: 0 } });
    for (const each of records) if (each !== own) expect(each.details).toEqual({ erased_by: own?.audit_id });
    const events = (await readOutboxByKey(bank.pool, client_id)).filter(
      ({ type }) => type === 'corebanking.client.erased.v1',
    );
    expect(events.map(({ topic, payload }) => [topic, payload])).toEqual([
      [
        'clients',
        {
          client_id,
          client_type: 'Retail',
          erased_at: erasure.erased_at,
          actor: 'key:key_tester',
          request_channel: 'api_key',
        },
      ],
    ]);
    const states = (await readOutbox(bank.pool)).filter(
      ({ topic, key }) => topic.endsWith('-masters') && [client_id, account_id].includes(key ?? ''),
    );
    expect(states.map(({ topic, headers }) => `${topic} ${headers?.['request-id']}`)).toEqual([
      'client-masters req-1',
      'client-masters req-1',
      'account-masters req-1',
      'account-masters req-1',
      'account-masters req-erasure',
      'client-masters req-erasure',
    ]);
  });

  test('works for a Corporate client; a second one replaces newer data, and the time of the first one is kept', async () => {
    const client_id = await newClient(bank, corporate);
    const first = await erased(client_id);
    const again = await erased(client_id);
    if (!first?.ok || !again?.ok) throw new Error('not erased');
    expect([first.data, again.data].map((data) => erasureSchema.parse(data).replaced.kept_replies)).toEqual([1, 0]);
    expect(erasureSchema.parse(again.data).erased_at).toBe(erasureSchema.parse(first.data).erased_at);
    expect(await bank.send('get_client', { client_id })).toMatchObject({
      ok: true,
      data: { company_name: '(erased)', registration_number: '(erased)' },
    });
    expect(await verifyAudit(bank.pool)).toEqual([]);
  });

  test('is executed once: a repeat gets the same reply, and a redelivered one sends no second step', async () => {
    const client_id = await newClient(bank);
    const { id, message, reply } = await begin(client_id);
    await bank.handleCommands([{ ...message }]);
    expect((await readOutboxByKey(bank.pool, client_id)).filter((event) => event.id === id)).toHaveLength(1);
    await bank.handleCommands([ledgerReply(id, client_id, erasedByLedger), ledgerReply(id, client_id, erasedByLedger)]);
    const answer = reply();
    expect(await bank.send('erase_client', { client_id }, { message_id: id })).toEqual({ ...answer, replayed: true });
  });

  test('revokes the keys that are bound to the client, and erases their names', async () => {
    const client_id = await newClient(bank);
    const [key_id, other] = [newId('key'), newId('key')];
    const key = (id: string, client: string | null) =>
      bank.send(
        'create_api_key',
        {
          key_id: id,
          name: 'Ada at home',
          scopes: ['accounts:read'],
          environment: 'live',
          client_id: client,
          expires_at: null,
          secret_hash: randomBytes(32).toString('hex'),
        },
        { message_id: id },
      );
    await key(key_id, client_id);
    await key(other, null);
    expect(await erased(client_id)).toMatchObject({ ok: true, data: { revoked_keys: 1 } });
    expect(await bank.send('get_api_key', { key_id })).toMatchObject({
      ok: true,
      data: { status: 'revoked', name: '(erased)' },
    });
    expect(await bank.send('get_api_key', { key_id: other })).toMatchObject({
      ok: true,
      data: { status: 'active', name: 'Ada at home' },
    });
    expect(
      await readText("select reply from commands where shown(reply, 'client_id') = $1", [client_id]),
    ).not.toContain('Ada at home');
    expect(
      (await readOutboxByKey(bank.pool, client_id)).filter(({ topic }) => topic === 'webhooks.commands'),
    ).toMatchObject([{ headers: { 'caller-address': '192.0.2.7' } }]);
    const states = (await readOutboxByKey(bank.pool, key_id)).map(({ payload }) => payload['revoked_at']);
    expect(states[1]).not.toBeNull();
  });

  test('replaces what an approval of a change of the client contains', async () => {
    const client_id = await newClient(bank);
    const approval_id = newId('approval');
    const changes = {
      first_name: 'Zoroaster',
      email: 'zoroaster@example.com',
      address: 'at Zoroaster',
      ussd_phone_number: null,
    };
    const asked = {
      approval_id,
      action: 'client_contact' as const,
      summary: `Change first_name of client ${client_id}`,
      request: { operation: 'update_client' as const, method: 'PATCH', path: `/clients/${client_id}`, body: changes },
      scopes: [],
      command: {
        name: 'update_client' as const,
        id: `cmd_${'0'.repeat(32)}`,
        key: client_id,
        data: { client_id, changes },
      },
    };
    await bank.send('request_approval', asked, { message_id: approval_id, subject: approval_id, actor: 'jwt:x|alice' });
    const verdict = { approval_id, reason: 'no', scopes: ['approvals:write'] };
    await bank.send('reject_request', verdict, { actor: 'jwt:x|bob' });
    await erased(client_id);
    const kept = `${await readText('select * from approvals')}${await readText('select * from commands')}`;
    expect(kept).toContain(approval_id);
    expect(kept).not.toMatch(/zoroaster/i);
  });

  test('reports until when topics and outboxes contain the client’s data', async () => {
    // asvs: 14.2.4
    const reply = await erased(await newClient(bank));
    if (!reply?.ok) throw new Error('not erased');
    const { remaining, erased_at } = erasureSchema.parse(reply.data);
    const days = Object.fromEntries(
      remaining.map(({ place, gone_at }) => [
        place,
        gone_at && Math.round((Date.parse(gone_at) - Date.parse(erased_at)) / 86_400_000),
      ]),
    );
    // The period is the retention and the week for which Kafka may keep a segment longer.
    expect(days).toMatchObject({
      'topic accounts.commands': 14,
      'topic ledger.commands': 14,
      'topic transactions': 407,
      'topic transfers': 407,
      'topic audit': 407,
      'topic replies': 7,
      'topic accounts.commands.dlq': 37,
      'schema ledger': null,
      'webhooks, in schema webhooks': null,
      'audit, in schema accounts': null,
      'schema webhooks': 400,
      'outbox of accounts': 1,
      'outbox of the ledger': 1,
    });
    expect(Object.keys(days)).not.toContain('topic balances');
    bank.deps.retention = { years: 0, eventsDays: -1, outboxHours: 24 };
    const forEver = await erased(await newClient(bank));
    if (!forEver?.ok) throw new Error('not erased');
    expect(erasureSchema.parse(forEver.data).remaining.find(({ place }) => place === 'topic audit')).toMatchObject({
      gone_at: null,
    });
  });
});

describe('an erasure is refused', () => {
  test('for an unknown client, or a caller bound to it', async () => {
    expect(replyCode(await bank.send('erase_client', { client_id: newId('client') }))).toBe('client_not_found');
    expect(replyCode(await bank.send('erase_client', { client_id: 'cli_x' }))).toBe('client_not_found');
    const client_id = await newClient(bank);
    expect(replyCode(await bank.send('erase_client', { client_id }, { bound_client_id: client_id }))).toBe(
      'client_not_found',
    );
  });

  test('while an account is not Inactive, or RETENTION_YEARS have not passed since it was opened or changed; each is named', async () => {
    const client_id = await newClient(bank);
    const [active, inactive] = [await newAccount(bank, client_id), await inactiveAccount(client_id)];
    const refused = (await begin(client_id)).reply();
    expect(refused).toMatchObject({
      ok: false,
      refusal: { code: 'erasure_refused', details: { accounts: [{ account_id: active, reasons: ['not_inactive'] }] } },
    });
    bank.deps.retention = { years: 10, eventsDays: 400, outboxHours: 24 };
    const young = (await begin(client_id)).reply();
    if (young?.ok !== false) throw new Error('not refused');
    const named = new Map(
      (young.refusal.details?.['accounts'] as { account_id: string; reasons: string[]; kept_until?: string }[]).map(
        (one) => [one.account_id, one],
      ),
    );
    expect(named.get(active)?.reasons).toEqual(['not_inactive', 'within_retention']);
    expect(named.get(inactive)?.reasons).toEqual(['within_retention']);
    expect(Number(named.get(inactive)?.kept_until?.slice(0, 4))).toBe(new Date().getUTCFullYear() + 10);
    expect(await bank.send('get_client', { client_id })).toMatchObject({ ok: true, data: { first_name: 'Ada' } });
  });

  test('by the ledger: nothing is then replaced, and the client is unchanged', async () => {
    const client_id = await newClient(bank);
    const account_id = await inactiveAccount(client_id);
    const refusal = {
      code: 'erasure_refused' as const,
      message: 'no',
      details: { accounts: [{ account_id, reasons: ['has_money'] }] },
    };
    expect(await erased(client_id, { ok: false, refusal })).toEqual({ ok: false, refusal });
    expect(await bank.send('get_client', { client_id })).toMatchObject({ ok: true, data: { first_name: 'Ada' } });
    expect(replyCode(await changeStatus(account_id, 'Active'))).toBeUndefined();
    expect((await readAudit(client_id)).at(-1)).toMatchObject({ action: 'erase_client', outcome: 'erasure_refused' });
  });

  test('temporarily, while an account is being opened or changed', async () => {
    const client_id = await newClient(bank);
    const data = openAccountCommand(client_id);
    await bank.send('open_account', data, { message_id: data.account_id });
    expect(replyCode((await begin(client_id)).reply())).toBe('service_unavailable');
  });
});

test('while it is in progress nothing new begins for the client, and afterwards nothing at all', async () => {
  const client_id = await newClient(bank);
  const account_id = await inactiveAccount(client_id);
  const attempts = async () => {
    const data = openAccountCommand(client_id);
    const key_id = newId('key');
    const key = {
      key_id,
      name: 'x',
      scopes: ['accounts:read'],
      environment: 'live' as const,
      client_id,
      expires_at: null,
      secret_hash: randomBytes(32).toString('hex'),
    };
    return [
      replyCode(await bank.send('open_account', data, { message_id: data.account_id })),
      replyCode(
        await bank.send(
          'change_account_status',
          { transition_id: newId('transition'), account_id, status: 'Active', reason: null, note: null },
          { message_id: newId('transition') },
        ),
      ),
      replyCode(await bank.send('create_api_key', key, { message_id: key_id })),
    ];
  };
  const { id, reply } = await begin(client_id);
  expect(await attempts()).toEqual(['service_unavailable', 'service_unavailable', 'service_unavailable']);
  await bank.handleCommands([ledgerReply(id, client_id, erasedByLedger)]);
  expect(reply()?.ok).toBe(true);
  expect(await attempts()).toEqual(['client_erased', 'client_erased', 'client_erased']);
  expect(replyCode(await bank.send('update_client', { client_id, changes: { address: 'new' } }))).toBe('client_erased');
});

test('with concurrent openings, either the account is opened or the client is erased, never both', async () => {
  const second = bank.process();
  for (let round = 0; round < 10; round++) {
    const client_id = await newClient(bank);
    const data = openAccountCommand(client_id);
    const opening = messageFor('open_account', data, { message_id: data.account_id });
    const erasure = messageFor('erase_client', { client_id }, { message_id: `cmd_${randomBytes(16).toString('hex')}` });
    second.deps.retention = bank.deps.retention;
    await Promise.all([bank.handleCommands([opening]), second.handleCommands([erasure])]);
    const steps = await bank.owner.query('select message from saga_steps where account_id = any($1)', [
      [client_id, data.account_id],
    ]);
    expect(steps.rowCount).toBe(1);
  }
});

describe('database constraints', () => {
  test('refuse changes of the audit log except for an erased client, even by the owner', async () => {
    const client_id = await newClient(bank);
    await expect(bank.pool.query('select erase_records($1, $2)', [client_id, 'aud_x'])).rejects.toThrow(
      /is not erased/,
    );
    for (const change of [
      "actor = 'x'",
      "details = '{}'",
      'details = \'{"erased_by": "x"}\'',
      'details = \'{"erased_by": "x", "n": 1}\', salt = null',
    ])
      await expect(bank.owner.query(`update audit set ${change} where resource_id = $1`, [client_id])).rejects.toThrow(
        /append-only/,
      );
  });

  test('details that name the erasure of another client, or none, are found', async () => {
    const [mine, other] = [await newClient(bank), await newClient(bank)];
    await erased(other);
    const [foreign] = (await readAudit(other)).filter(({ action }) => action === 'erase_client');
    for (const name of [foreign?.audit_id, 'aud_none']) {
      await bank.owner.query(
        "update audit set details = jsonb_build_object('erased_by', $2::text), salt = null where resource_id = $1",
        [mine, name],
      );
      const [finding] = await verifyAudit(bank.pool);
      expect(finding?.rows).toMatchObject([{ finding: 'was changed, or its link was' }]);
    }
  });
});
