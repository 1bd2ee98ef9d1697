import { randomUUID } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import { EventKeys } from '#libs/contracts/mac.ts';
import type { ReceivedMessage } from '#libs/kafka/consume/consume.ts';
import { silent } from '#libs/postgres/test/test-database.ts';
import { watchFaults } from '#libs/service/faults.ts';
import { testEventKeys, testKeys, testMacSecrets } from '#libs/service/test/keys.ts';
import { sealCursor } from '../queries/list-events.ts';
import { completed, eventMessage, newId, opened, useWebhooks } from '../test/harness.ts';
import { readEvent } from './read-event.ts';
import { storeEvents, takeEvents } from './store-events.ts';

/** Returns the message with a MAC for what it is now. */
function signed(message: ReceivedMessage): ReceivedMessage {
  const again = { ...message, headers: { ...message.headers } };
  testEventKeys.sign(again);
  return again;
}

/** GET /events as implemented by webhooks, with a real Postgres. */
const harness = useWebhooks();

const eventIds = (messages: { headers: Record<string, string> }[]) => messages.map(({ headers }) => headers['ce_id']);
/** A cursor after all stored events. */
const end = async () => {
  const { position, cursor_key } = await head();
  return sealCursor(cursor_key, position, nowS());
};
const nowS = () => Math.floor(Date.now() / 1000);
const head = async () =>
  (await harness.owner.query<{ position: bigint; cursor_key: Buffer }>('select * from event_head')).rows[0]!;

describe('events', () => {
  it('are the published CloudEvents, in the order of publication', async () => {
    const account = newId('account');
    const taken = [1, 2, 3].map((sequence) => completed(account, sequence));
    await harness.take(...taken);
    const { items } = await harness.events({ account_id: account });
    expect(items.map(({ id }) => id)).toEqual(eventIds(taken));
    const { headers, value } = taken[0]!;
    expect(items[0]).toEqual({
      specversion: '1.0',
      id: headers['ce_id'],
      source: headers['ce_source'],
      type: headers['ce_type'],
      subject: account,
      time: headers['ce_time'],
      datacontenttype: 'application/json',
      dataschema: 'urn:corebanking:event:corebanking.transaction.completed.v1',
      data: JSON.parse(String(value)) as object,
    });
  });

  it.each([
    [
      'https://api.bank.example',
      'https://api.bank.example/docs/events/corebanking.transaction.completed.v1.schema.json',
    ],
    [
      'https://bank.example/api/',
      'https://bank.example/api/docs/events/corebanking.transaction.completed.v1.schema.json',
    ],
    [undefined, 'urn:corebanking:event:corebanking.transaction.completed.v1'],
  ])('name the schema where consumers reach it: at %s', (apiUrl, dataschema) => {
    expect(JSON.parse(readEvent(completed(newId('account'), 1), apiUrl)!.event)).toMatchObject({ dataschema });
  });

  it('keep a dataschema that is not the one of their type, and lack one if they had none', () => {
    const message = completed(newId('account'), 1);
    const withSchema = (ce_dataschema: string | undefined) => {
      const { ce_dataschema: _, ...headers } = message.headers;
      const changed = { ...message, headers: { ...headers, ...(ce_dataschema && { ce_dataschema }) } };
      return (
        JSON.parse(readEvent(changed as ReceivedMessage, 'https://api.bank.example')!.event) as Record<string, unknown>
      )['dataschema'];
    };
    expect([withSchema('urn:corebanking:x'), withSchema(undefined)]).toEqual(['urn:corebanking:x', undefined]);
  });

  it('are stored once, however often Kafka delivers them', async () => {
    const account = newId('account');
    const one = completed(account, 1);
    expect(await harness.take(one, one)).toEqual({ stored: 1, unreadable: 0, forged: 0 });
    await harness.take(one, completed(account, 2));
    expect((await harness.events({ account_id: account })).items.map(({ data }) => data['sequence'])).toEqual([1, 2]);
  });

  it('a cursor can be used again, and then returns what has been committed since', async () => {
    // contract: webhooks-24
    const after = await end();
    expect(await harness.events({ after })).toMatchObject({ items: [], more: false });
    const account = newId('account');
    await harness.take(completed(account, 1));
    const once = await harness.events({ after });
    expect(once.items.map(({ subject }) => subject)).toEqual([account]);
    await harness.take(completed(account, 2));
    expect((await harness.events({ after })).items).toHaveLength(2);
    expect((await harness.events({ after: once.cursor })).items.map(({ data }) => data['sequence'])).toEqual([2]);
  });

  it('pages end at the limit and continue', async () => {
    const after = await end();
    const accounts = Array.from({ length: 7 }, () => newId('account'));
    await harness.take(...accounts.map((account) => completed(account, 1)));
    const found: string[] = [];
    let page = await harness.events({ after, limit: 3 });
    for (; page.items.length > 0; page = await harness.events({ after: page.cursor, limit: 3 }))
      found.push(...page.items.map(({ subject }) => subject));
    expect(found).toEqual(accounts);
    expect(page.more).toBe(false);
  });

  it('are filtered by type, group of types, and account; a transfer has two accounts', async () => {
    // contract: webhooks-23
    const [from, to] = [newId('account'), newId('account')];
    const after = await end();
    const transfer = {
      transfer_id: newId('transfer'),
      from_account_id: from,
      to_account_id: to,
      amount: '1.00',
      currency: 'USD',
      description: null,
      status: 'Completed' as const,
      created_at: new Date().toISOString(),
    };
    await harness.take(
      completed(from, 1),
      eventMessage('corebanking.transfer.completed.v1', transfer.transfer_id, {
        transfer,
        operation_id: newId('operation'),
      }),
      opened(to, newId('client')),
    );
    const types = async (named: string[], account_id?: string) =>
      (await harness.events({ after, types: named, account_id })).items.map(({ type }) =>
        type.split('.').slice(1, 3).join('.'),
      );
    expect(await types(['transaction.completed'])).toEqual(['transaction.completed']);
    expect(await types(['transfer.*', 'account.opened'])).toEqual(['transfer.completed', 'account.opened']);
    expect(await types(['*'], from)).toEqual(['transaction.completed', 'transfer.completed']);
    expect(await types(['*'], to)).toEqual(['transfer.completed', 'account.opened']);
    expect(await types(['*'], 'acc_unknown')).toEqual([]);
  });

  it('if few events have the requested types, pages may be empty and continue', async () => {
    const after = await end();
    const fillers = Array.from({ length: 10_050 }, () => completed(newId('account'), 1));
    for (let i = 0; i < fillers.length; i += 500) await harness.take(...fillers.slice(i, i + 500));
    await harness.take(opened(newId('account'), newId('client')));
    const first = await harness.events({ after, types: ['account.opened'] });
    expect(first).toMatchObject({ items: [], more: true });
    expect((await harness.events({ after: first.cursor, types: ['account.opened'] })).items).toHaveLength(1);
  });

  it('a reader that follows its cursor during concurrent writes sees every event once, in order per account', async () => {
    // contract: webhooks-24
    const accounts = Array.from({ length: 5 }, () => newId('account'));
    let [after, writing] = [await end(), true];
    const seen: string[] = [];
    const reader = (async () => {
      for (;;) {
        const isLast = !writing;
        const page = await harness.events({ after, limit: 7 });
        after = page.cursor;
        seen.push(...page.items.map(({ subject, data }) => `${subject} ${String(data['sequence'])}`));
        if (isLast && !page.more) return;
      }
    })();
    await Promise.all(
      accounts.map(async (account) => {
        for (let sequence = 1; sequence <= 60; sequence++)
          await storeEvents(harness.pool, [readEvent(completed(account, sequence))!]);
      }),
    );
    writing = false;
    await reader;
    expect(new Set(seen).size).toBe(300);
    for (const account of accounts)
      expect(seen.filter((one) => one.startsWith(account))).toEqual(
        Array.from({ length: 60 }, (_, i) => `${account} ${i + 1}`),
      );
  });

  it('a malformed cursor, one after the newest event, and one older than the retention are refused', async () => {
    const { position, cursor_key } = await head();
    const day = 86_400;
    const [beyond, old, kept] = [
      sealCursor(cursor_key, position + 1n, nowS()),
      sealCursor(cursor_key, position, nowS() - 401 * day),
      sealCursor(cursor_key, position, nowS() - 399 * day),
    ];
    const ofAnotherBank = sealCursor(Buffer.alloc(32, 7), position, nowS());
    const changed = kept.replace(/.$/, (last) => (last === 'A' ? 'B' : 'A'));
    for (const after of ['', 'x', '-', '0-1', kept.slice(1), `${kept}A`, beyond, old, ofAnotherBank, changed]) {
      expect(await harness.send('list_events', { after, limit: 10 }), after).toMatchObject({
        ok: false,
        refusal: { code: 'invalid_cursor' },
      });
    }
    expect((await harness.send('list_events', { after: kept, limit: 10 })).ok).toBe(true);
  });

  it('an event that the database refuses is not skipped: it waits, and all are stored in order', async () => {
    // contract: webhooks-20
    const account = newId('account');
    const sent = [1, 2, 3].map((sequence) => completed(account, sequence));
    const events = watchFaults(async (messages) => void (await harness.take(...messages)));
    await harness.owner.query(`alter table events add constraint newer check (subject <> '${account}')`);
    try {
      for (const messages of [sent, sent.slice(0, 1)]) await expect(events.handle(messages)).rejects.toThrow('newer');
      expect(events.health()).toEqual({ ok: false, reason: expect.stringContaining('newer') });
    } finally {
      await harness.owner.query('alter table events drop constraint newer');
    }
    await events.handle(sent);
    expect(events.health()).toEqual({ ok: true });
    const { items } = await harness.events({ account_id: account });
    expect(items.map(({ data }) => data['sequence'])).toEqual([1, 2, 3]);
  });

  it('a batch in which no event is valid is skipped', async () => {
    const invalid = signed({ ...completed(newId('account'), 1), value: null });
    expect(await harness.take(invalid)).toEqual({ stored: 0, unreadable: 1, forged: 0 });
    expect(await harness.take(invalid, invalid)).toEqual({ stored: 0, unreadable: 2, forged: 0 });
  });

  it('invalid events are skipped, and the events after them are stored', async () => {
    const account = newId('account');
    const good = completed(account, 1);
    const taken = await harness.take(
      signed({ ...good, value: Buffer.from('no JSON') }),
      signed({ ...good, headers: { ...good.headers, ce_id: 'x' } }),
      signed({ ...good, headers: { ...good.headers, ce_time: '0000-01-01T00:00:00.000Z' } }),
      signed({ ...good, key: 'acc_\0' }),
      signed({ ...good, value: null }),
      good,
    );
    expect(taken).toEqual({ stored: 1, unreadable: 5, forged: 0 });
    expect((await harness.events({ account_id: account })).items).toHaveLength(1);
  });

  it('without a MAC of the bank are not stored, whatever else is right, and the events after them are', async () => {
    // contract: webhooks-26
    const account = newId('account');
    const good = completed(account, 1);
    const { mac: _, ...unsigned } = good.headers;
    const other = { ...good, headers: { ...good.headers, ce_id: randomUUID() } };
    const asCommand = { ...other, headers: { ...other.headers } };
    testKeys.sign('accounts', asCommand);
    const header = (name: string, value: string) => ({ ...good, headers: { ...good.headers, [name]: value } });
    const forgeries = [
      { ...good, headers: unsigned },
      { ...good, value: Buffer.from(String(good.value).replace('1.00', '9.00')) },
      { ...good, key: newId('account') },
      header('ce_id', randomUUID()),
      header('ce_type', 'corebanking.transaction.failed.v1'),
      header('ce_source', '/core-banking/accounts'),
      header('ce_time', new Date(0).toISOString()),
      header('ce_dataschema', 'urn:corebanking:x'),
      header('mac', ''),
      header('mac', String(good.headers['mac']).replace(/:.*/, ':')),
      asCommand,
    ];
    expect(await harness.take(...forgeries, good)).toEqual({ stored: 1, unreadable: 0, forged: forgeries.length });
    expect((await harness.events({ account_id: account })).items.map(({ data }) => data)).toEqual([
      JSON.parse(String(good.value)),
    ]);
  });

  it('that are signed with a key which the service lacks wait, and are stored once it has the key, or skipped once it refuses it', async () => {
    const account = newId('account');
    const secrets = ['the next key of accounts, which others have already'];
    const next = completed(account, 2);
    new EventKeys(secrets).sign(next);
    const [, name = ''] = /^(.*):/.exec(next.headers['mac'] ?? '') ?? [];
    const take = (keys: EventKeys) =>
      takeEvents(harness.pool, [completed(account, 1), next, completed(account, 3)], keys, silent);
    const given = async () => (await harness.events({ account_id: account })).items.map(({ data }) => data['sequence']);
    await expect(take(testEventKeys)).rejects.toThrow(`the key ${name}, which is not in ACCOUNTS_MAC_KEYS`);
    expect(await given()).toEqual([]);
    const known = [testMacSecrets.accounts, ...secrets];
    expect(await take(new EventKeys(known))).toEqual({ stored: 3, unreadable: 0, forged: 0 });
    expect(await given()).toEqual([1, 2, 3]);
    expect(await take(new EventKeys([testMacSecrets.accounts, `refused:${name}`]))).toMatchObject({ forged: 1 });
  });
});

describe('a caller bound to one client', () => {
  const as = (client: string) => ({ bound_client_id: client });

  it('sees only events and entries of its own accounts', async () => {
    // contract: webhooks-25
    const [client, own, second, other] = [newId('client'), newId('account'), newId('account'), newId('account')];
    await harness.take(
      opened(own, client),
      opened(second, client),
      opened(other, newId('client')),
      completed(own, 1, [second, other]),
      completed(other, 1, [own]),
    );
    const { items } = await harness.events({}, as(client));
    expect(items.map(({ subject }) => subject)).toEqual([own, second, own]);
    expect((items[2]?.data['entries'] as { account_id: string }[]).map(({ account_id }) => account_id)).toEqual([
      own,
      second,
    ]);
    expect((await harness.events({ account_id: other }, as(client))).items).toEqual([]);
  });

  it('sees no metadata that others gave, nor that it has changed, and its own', async () => {
    // contract: names-9
    const [client, account] = [newId('client'), newId('account')];
    const metadata = { risk: 'high' };
    const hold = {
      hold_id: newId('hold'),
      account_id: account,
      amount: '1.00',
      captured_amount: '0.00',
      currency: 'USD',
      status: 'Active' as const,
      description: null,
      reference: null,
      expires_at: new Date().toISOString(),
      created_at: new Date().toISOString(),
      updated_at: new Date().toISOString(),
      metadata,
    };
    const transfer = {
      transfer_id: newId('transfer'),
      from_account_id: newId('account'),
      to_account_id: account,
      amount: '1.00',
      currency: 'USD',
      description: null,
      status: 'Completed' as const,
      created_at: new Date().toISOString(),
    };
    const moved = (more: object) =>
      eventMessage('corebanking.transfer.completed.v1', transfer.transfer_id, {
        transfer: { ...transfer, ...more },
        operation_id: newId('operation'),
      });
    const posted = completed(account, 1);
    const withNames = JSON.parse(String(posted.value)) as { transaction: object };
    Object.assign(withNames.transaction, { metadata });
    const changed = (changed_fields: string[], more: object) =>
      eventMessage('corebanking.client.updated.v1', client, {
        client_id: client,
        client_type: 'Retail',
        changed_fields,
        updated_at: new Date().toISOString(),
        ...more,
      });
    await harness.take(
      opened(account, client),
      eventMessage('corebanking.hold.placed.v1', account, { hold, hold_version: 1 }),
      signed({ ...posted, value: Buffer.from(JSON.stringify(withNames)) }),
      moved({ metadata }),
      moved({ metadata, metadata_client_id: newId('client') }),
      changed(['email', 'metadata'], { metadata }),
      changed(['metadata'], { metadata }),
      changed(['client_metadata'], { metadata, client_metadata: { theme: 'own' } }),
      moved({ metadata: { note: 'own' }, metadata_client_id: client }),
    );
    const { items } = await harness.events({}, as(client));
    for (const { data } of items) expect(Object.keys(data)).not.toContain('batch_position');
    const updates = items.filter(({ type }) => type === 'corebanking.client.updated.v1');
    expect(updates.map(({ data }) => data['changed_fields'])).toEqual([['email'], ['client_metadata']]);
    const seen = JSON.stringify(items);
    expect(seen).not.toMatch(/"risk"|"changed_fields":\[[^\]]*"metadata"/);
    expect(seen).toMatch(/"client_metadata":\{"theme":"own"\}.*"metadata":\{"note":"own"\}/);
    expect(JSON.stringify((await harness.events({ account_id: account })).items).match(/"risk"/g)).toHaveLength(4);
  });

  it('sees every event once of an account whose owner becomes known later', async () => {
    const [client, account] = [newId('client'), newId('account')];
    await harness.take(completed(account, 1), completed(account, 2));
    const before = await harness.events({}, as(client));
    expect(before.items).toEqual([]);
    const ofAccount = await harness.events({ account_id: account }, as(client));
    expect(ofAccount.items).toEqual([]);
    await harness.take(completed(account, 3), opened(account, client), completed(account, 4));
    const sequences = async (after: string, account_id?: string) =>
      (await harness.events({ after, account_id }, as(client))).items.map(({ data }) => data['sequence'] ?? 'opened');
    expect(await sequences(before.cursor)).toEqual([1, 2, 3, 'opened', 4]);
    expect(await sequences(ofAccount.cursor, account)).toEqual([1, 2, 3, 'opened', 4]);
  });

  it('does not see why the account of another client could not take a payment', async () => {
    const [client, account, second, other] = [newId('client'), newId('account'), newId('account'), newId('account')];
    await harness.take(opened(account, client), opened(second, client), opened(other, newId('client')));
    const after = await end();
    const failed = (to: string) =>
      eventMessage('corebanking.transaction.failed.v1', account, {
        transaction: {
          account_id: account,
          transaction_type: 'Loan Payment',
          failure_code: 'amount_exceeds_outstanding',
        },
        failure_account_id: to,
      } as never);
    await harness.take(failed(other), failed(second));
    const shown = async (context: object) =>
      (await harness.events({ after, account_id: account }, context)).items.map(({ data }) => data['transaction']);
    const told = { account_id: account, transaction_type: 'Loan Payment', failure_code: 'amount_exceeds_outstanding' };
    expect(await shown(as(client))).toEqual([
      { ...told, transaction_type: 'Transfer', failure_code: 'destination_refused' },
      told,
    ]);
    expect(await shown({})).toEqual([told, told]);
  });

  it('sees neither probing for its accounts nor refused transfers to them', async () => {
    const [client, account, other] = [newId('client'), newId('account'), newId('account')];
    const transfer_id = newId('transfer');
    await harness.take(
      opened(account, client),
      opened(other, newId('client')),
      eventMessage('corebanking.transaction.account_not_found.v1', account, {
        transaction: { account_id: account, status: 'Failed', failure_code: 'account_not_found' },
      } as never),
      eventMessage('corebanking.transfer.failed.v1', transfer_id, {
        transfer: { transfer_id, from_account_id: other, to_account_id: account, status: 'Failed' },
      } as never),
    );
    const types = async (context: object, account_id: string) =>
      (await harness.events({ account_id }, context)).items.map(({ type }) => type);
    expect(await types(as(client), account)).toEqual(['corebanking.account.opened.v1']);
    expect(await types({}, account)).toEqual(['corebanking.account.opened.v1']);
    expect(await types({}, other)).toEqual(['corebanking.account.opened.v1', 'corebanking.transfer.failed.v1']);
  });

  it('sees neither the reason and actor of a status change, nor the reason of a reversal, nor approvals', async () => {
    const [client, account] = [newId('client'), newId('account')];
    const at = new Date().toISOString();
    await harness.take(
      opened(account, client),
      eventMessage('corebanking.account.status_changed.v1', account, {
        account_id: account,
        client_id: client,
        transition_id: newId('transition'),
        from_status: 'Active',
        to_status: 'Frozen',
        reason: 'fraud',
        status_version: 2,
        actor: 'jwt:x|alice',
        changed_at: at,
      }),
      completed(account, 1, [], {
        transaction: { reverses_transaction_id: newId('transaction'), description: 'suspicious' },
      }),
      eventMessage('corebanking.approval.requested.v1', newId('approval'), {
        approval_id: newId('approval'),
        action: 'reverse',
        operation: 'x',
        requested_by: 'x',
        requested_at: at,
        expires_at: at,
        client_id: client,
      } as never),
    );
    const { items } = await harness.events({}, as(client));
    expect(items.map(({ type }) => type.split('.')[1])).toEqual(['account', 'account', 'transaction']);
    expect(JSON.stringify(items)).not.toMatch(/fraud|alice|suspicious/);
    expect(items[1]?.data).toMatchObject({ from_status: 'Active', to_status: 'Frozen' });
    expect(JSON.stringify((await harness.events({ account_id: account })).items)).toMatch(/fraud.*suspicious/);
  });
});

it('a transaction that does not commit leaves no gap that a reader could skip', async () => {
  const after = await end();
  const account = newId('account');
  const client = await harness.pool.connect();
  await client.query('begin');
  await client.query('select position from event_head for update');
  const waiting = harness.take(completed(account, 1));
  expect((await harness.events({ after })).items).toEqual([]);
  await client.query('rollback');
  client.release();
  await waiting;
  expect((await harness.events({ after })).items.map(({ subject }) => subject)).toEqual([account]);
});
