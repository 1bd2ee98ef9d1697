import { Ajv } from 'ajv';
import formats from 'ajv-formats';
import { Webhook } from 'standardwebhooks';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import type { AuditRecord } from '#libs/contracts/audit.ts';
import type { CloudEvent } from '#libs/contracts/event-feed.ts';
import { schemaId } from '#libs/contracts/events.ts';
import { topicName } from '#libs/contracts/topics.ts';
import { createSecretKeys } from '#libs/contracts/webhook-secret.ts';
import type { Delivery } from '#libs/contracts/webhooks.ts';
import { testEventKeys } from '#libs/service/test/keys.ts';
import { hang, startReceiver, status } from '../../services/webhooks/test/receiver.ts';
import { type Api, expectError, newKey, type RestAccount } from '../support/client.ts';
import { publish } from '../support/kafka.ts';
import { scrape } from '../support/metrics.ts';
import { eventually, useBank } from '../support/world.ts';

/** Tests webhooks and GET /events of a complete bank with two webhooks processes. */
const world = useBank({ webhooks: 2 });
const { api } = world;
let account: RestAccount;
beforeAll(async () => {
  account = await api.newAccount({ initial_deposit: 100 });
});

const stops: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const stop of stops.splice(0)) await stop();
  for (const { webhook_id } of await api.all<{ webhook_id: string }>('/webhooks'))
    await api.send('DELETE', `/webhooks/${webhook_id}`);
});
afterAll(() => Promise.all(stops.splice(0).map((stop) => stop())));

async function receiver(...answer: Parameters<typeof startReceiver>) {
  const made = await startReceiver(...answer);
  stops.push(made.stop);
  return made;
}

type Made = { webhook_id: string; secret: string; status: string };
async function webhook(url: string, event_types = ['transaction.*'], by: Api = api): Promise<Made> {
  const answer = await by.post('/webhooks', { url, event_types });
  expect(answer.status, answer.text).toBe(201);
  return answer.data<Made>();
}

/** Returns events after a cursor, and the next cursor. */
async function events(
  query: string,
  by: Api = api,
): Promise<{ data: CloudEvent[]; cursor: string; next: string | undefined }> {
  const answer = await by.get(`/events?${query}`);
  expect(answer.status, answer.text).toBe(200);
  return { ...(answer.body as { data: CloudEvent[]; cursor: string }), next: answer.next };
}

async function latest(): Promise<string> {
  let page = await events('limit=500');
  while (page.next !== undefined) page = await events(`limit=500&after=${page.cursor}`);
  return page.cursor;
}

describe('GET /events', () => {
  it('names a schema that can be fetched without credentials, and that its data follows', async () => {
    const account_id = (await api.newAccount({ initial_deposit: 7 })).account_id;
    let seen: CloudEvent[] = [];
    await eventually(async () => {
      seen = (await events(`account_id=${account_id}`)).data;
      return seen.some(({ type }) => type === 'corebanking.transaction.completed.v1');
    });
    const ajv = new Ajv({ allowUnionTypes: true });
    formats.default(ajv);
    for (const { type, data, dataschema = '' } of seen) {
      const served = await fetch(dataschema);
      expect([served.status, served.headers.get('content-type')]).toEqual([200, expect.stringContaining('json')]);
      const isRight = ajv.compile((await served.json()) as object);
      expect([type, isRight.schema, isRight(data), isRight.errors]).toEqual([
        type,
        expect.objectContaining({ $id: schemaId(type) }),
        true,
        null,
      ]);
    }
  });

  it('skips no event that the database refuses: webhooks is not ready, and afterwards every event is there', async () => {
    const { account_id } = await api.newAccount();
    const processes = ['webhooks', 'webhooks-2'].map((name) => world.bank.process(name));
    const areReady = () =>
      Promise.all(processes.map(async ({ health_url }) => (await fetch(health_url)).status === 200));
    await world.sql(`alter table webhooks.events add constraint newer check (subject <> '${account_id}') not valid`);
    try {
      for (let i = 0; i < 3; i++) await api.transact(account_id, 'Deposit', 1);
      await eventually(async () => (await areReady()).includes(false));
    } finally {
      await world.sql('alter table webhooks.events drop constraint newer');
    }
    await eventually(async () => !(await areReady()).includes(false));
    const posted = async () => (await events(`account_id=${account_id}&types=transaction.completed`)).data;
    await eventually(async () => (await posted()).length === 3);
    expect((await posted()).map(({ data }) => data['sequence'])).toEqual([1, 2, 3]);
  });

  it('has the events of the topics: a poller that follows the cursor receives every transaction once, in order per account', async () => {
    // contract: webhooks-23
    const after = await latest();
    const made: string[] = [];
    for (let i = 1; i <= 5; i++) made.push((await api.transact(account.account_id, 'Deposit', i)).transaction_id);
    const transactionId = ({ data }: CloudEvent) => (data['transaction'] as { transaction_id: string }).transaction_id;
    const seen: CloudEvent[] = [];
    let cursor = after;
    // The opening deposit may be listed after the latest event was read, so it is ignored.
    await eventually(async () => {
      const page = await events(`after=${cursor}&types=transaction.completed&limit=2`);
      cursor = page.cursor;
      seen.push(...page.data.filter((event) => made.includes(transactionId(event))));
      return seen.length >= 5;
    });
    expect(seen.map(transactionId)).toEqual(made);
    expect(seen[0]).toMatchObject({
      specversion: '1.0',
      type: 'corebanking.transaction.completed.v1',
      source: '/core-banking/ledger',
      subject: account.account_id,
    });
    const again = await events(`after=${after}&types=transaction.completed`);
    expect(again.data.filter((event) => made.includes(transactionId(event)))).toEqual(seen);
  });

  it('a cursor tells nobody how many events the bank has, and only those of the bank are accepted', async () => {
    // contract: webhooks-27
    const own = api.withKey((await api.key({ scopes: ['transactions:read'], client_id: account.client_id })).api_key);
    const cursors: string[] = [];
    for (let i = 0; i < 3; i++) {
      cursors.push((await events('limit=500', own)).cursor);
      const stranger = await api.newAccount({ initial_deposit: 1 });
      await eventually(async () => (await events(`account_id=${stranger.account_id}`)).data.length > 0);
    }
    expect(new Set(cursors.map((cursor) => cursor.length)).size).toBe(1);
    expect(new Set(cursors.map((cursor) => cursor.slice(0, 16))).size).toBe(3);
    for (const cursor of cursors)
      expect(Buffer.from(cursor, 'base64url').toString('latin1')).not.toMatch(/[0-9a-z]{4,}-[0-9a-z]+/);
    for (const invented of ['0-0', '1-t7x2k1', `00000000001-${Math.floor(Date.now() / 1000).toString(36)}`])
      expectError(await own.get(`/events?after=${invented}`), 400, 'invalid_cursor');
  });

  it('have the metadata that a client’s own credentials gave, and none that others gave', async () => {
    // contract: names-9
    const { account_id, client_id } = await api.newAccount({ initial_deposit: 5, metadata: { risk: 'a bank secret' } });
    const scopes = ['transactions:read', 'transfers:write'];
    const own = api.withKey((await api.key({ scopes, client_id })).api_key);
    await api.transact(account_id, 'Deposit', 1, { metadata: { risk: 'a bank secret' } });
    await own.transfer(account_id, account.account_id, 1, { metadata: { note: 'my own' } });
    const all = `account_id=${account_id}&limit=500`;
    await eventually(async () => JSON.stringify(await events(all)).split('my own').length > 2);
    const seen = JSON.stringify((await events(all, own)).data);
    expect(seen).toMatch(/my own.*my own/);
    expect(seen).not.toMatch(/bank secret|batch_position/);
    expect(JSON.stringify((await events(all)).data)).toMatch(/bank secret.*bank secret/);
  });

  it('a full page has a Link to the next one, the last page has none; there is always a cursor', async () => {
    const first = await events('limit=1');
    expect(first.next).toContain(`after=${first.cursor}`);
    expect(await events(`after=${await latest()}`)).toMatchObject({
      data: [],
      next: undefined,
      cursor: expect.any(String) as string,
    });
  });

  it('refuses unknown types (naming the known ones), parameters, and invalid cursors', async () => {
    const { errors } = expectError(
      await api.get('/events?types=transaction.done,account.opened'),
      400,
      'validation_failed',
    );
    expect(errors?.[0]).toMatchObject({
      field: 'types',
      message: expect.stringMatching(/transaction\.completed.*transfer\.completed.*account\.opened/) as string,
    });
    const unread = expectError(await api.get('/events?after=nonsense'), 400, 'invalid_cursor');
    expect(unread.errors).toMatchObject([{ field: 'after', code: 'invalid_cursor' }]);
    expectError(await api.get('/events?cursor=x'), 400, 'unknown_parameter');
    expectError(await api.get('/events?limit=501'), 400, 'validation_failed');
  });

  it('requires transactions:read; a bound key sees only its own client', async () => {
    const other = api.withKey((await api.key({ scopes: ['accounts:read'] })).api_key);
    expectError(await other.get('/events'), 403, 'insufficient_scope');
    const own = api.withKey((await api.key({ scopes: ['transactions:read'], client_id: account.client_id })).api_key);
    await eventually(async () => (await events('types=account.opened', own)).data.length === 1);
    const { data } = await events('limit=500', own);
    for (const {
      data: { entries },
    } of data)
      for (const { account_id } of (entries ?? []) as { account_id: string }[])
        expect(account_id).toBe(account.account_id);
    expect(new Set(data.filter(({ type }) => type.includes('transaction')).map(({ subject }) => subject))).toEqual(
      new Set([account.account_id]),
    );
  });
});

describe('a webhook', () => {
  it('is created with a secret that is shown once, and receives signed events', async () => {
    // contract: webhooks-3
    const at = await receiver();
    const key = newKey();
    const made = await api.once(key, '/webhooks', {
      url: at.url,
      event_types: ['transaction.completed'],
      description: 'books',
    });
    expect(made.status).toBe(201);
    const { webhook_id, secret } = made.data<Made>();
    expect(secret).toMatch(/^whsec_[A-Za-z0-9+/]{43}=$/);
    expect(made.header('location')).toBe(`/webhooks/${webhook_id}`);
    const again = await api.once(key, '/webhooks', {
      url: at.url,
      event_types: ['transaction.completed'],
      description: 'books',
    });
    expect([again.status, again.header('idempotent-replayed'), again.data()]).toEqual([
      201,
      'true',
      { ...made.data(), secret: undefined },
    ]);
    expect((await api.get(`/webhooks/${webhook_id}`)).data()).toEqual({ ...made.data(), secret: undefined });
    const transaction = await api.transact(account.account_id, 'Deposit', 7);
    await eventually(async () => at.received.length === 1);
    const [received] = at.received;
    const verified = new Webhook(secret).verify(
      received?.body ?? '',
      received?.headers as Record<string, string>,
    ) as CloudEvent;
    expect(verified.data).toMatchObject({
      transaction: { transaction_id: transaction.transaction_id, amount: '7.00' },
    });
    expect(received?.headers['webhook-id']).toBe(verified.id);
    const record = await eventually(
      async () => (await api.get(`/admin/audit?resource_id=${webhook_id}`)).list<AuditRecord>()[0],
    );
    expect(record).toMatchObject({ action: 'create_webhook', outcome: 'success' });
    expect(JSON.stringify(record)).not.toContain(secret);
  });

  it('its types and URL are validated; the error names the known types', async () => {
    // contract: webhooks-5, webhooks-6
    const create = (body: object) =>
      api.post('/webhooks', { url: 'https://receiver.example/', event_types: ['*'], ...body });
    for (const event_types of [['transaction.done'], ['x.*'], ['corebanking.transaction.completed.v2']]) {
      const { errors } = expectError(await create({ event_types }), 400, 'validation_failed');
      expect(errors?.[0]).toMatchObject({
        field: 'event_types.0',
        message: expect.stringMatching(/must be one of transaction\.completed, /) as string,
      });
    }
    expectError(await create({ event_types: [] }), 400, 'validation_failed');
    const names = ['transaction.completed', 'account.*', 'corebanking.hold.placed.v1'];
    const shown = ['corebanking.transaction.completed.v1', 'corebanking.account.*.v1', 'corebanking.hold.placed.v1'];
    const { webhook_id } = (await create({ event_types: names })).data<Made>();
    expect((await api.get(`/webhooks/${webhook_id}`)).data()).toMatchObject({ event_types: shown });
    const polled = async (types: string) => (await api.get(`/events?limit=500&types=${types}`)).list<CloudEvent>();
    expect((await polled('account.opened')).length).toBeGreaterThan(0);
    expect(await polled('corebanking.account.opened.v1')).toEqual(await polled('account.opened'));
    expectError(await api.get('/events?types=corebanking.account.opened.v2'), 400, 'validation_failed');
    for (const url of [
      'https://10.0.0.1/',
      'https://169.254.169.254/',
      'http://receiver.example/',
      'ftp://receiver.example/',
      'https://user:pass@receiver.example/',
      'x',
    ]) {
      expect(expectError(await create({ url }), 400, 'validation_failed').errors?.[0]?.field).toBe('url');
    }
    expectError(await create({ secret: 'mine' }), 400, 'unknown_field');
  });

  it('can be changed, paused, tested, rotated, replayed, and deleted over REST', async () => {
    // contract: webhooks-7
    const at = await receiver();
    const { webhook_id, secret } = await webhook(at.url);
    const path = `/webhooks/${webhook_id}`;
    expect((await api.patch(path, { status: 'Paused', description: 'later' })).data()).toMatchObject({
      status: 'Paused',
      description: 'later',
    });
    expectError(await api.post(`${path}/test`), 400, 'invalid_status_transition');
    expect((await api.patch(path, { status: 'Active' })).status).toBe(200);
    const key = newKey();
    const rotate = () => api.once(key, `${path}/secret-rotation`, { overlap_seconds: 60 });
    const [rotated, again] = [await rotate(), await rotate()];
    expect([rotated.status, rotated.data<Made>().secret === secret]).toEqual([200, false]);
    const shown = { ...rotated.data<object>(), secret: undefined };
    expect([again.status, again.header('idempotent-replayed'), again.data()]).toEqual([200, 'true', shown]);
    const delivery = (await api.post(`${path}/test`)).data<Delivery>();
    await eventually(async () => at.received.length === 1);
    const [received] = at.received;
    for (const by of [secret, rotated.data<Made>().secret])
      new Webhook(by).verify(received?.body ?? '', received?.headers as Record<string, string>);
    const delivered = await eventually(
      async () => (await api.get(`${path}/deliveries?status=Delivered`)).list<Delivery>()[0],
    );
    expect(delivered).toMatchObject({
      delivery_id: delivery.delivery_id,
      event_type: 'corebanking.webhook.test.v1',
      attempts: [{ response_status: 204 }],
    });
    expect((await api.post(`${path}/deliveries/${delivery.delivery_id}/redelivery`)).data()).toMatchObject({
      status: 'Pending',
    });
    await eventually(async () => at.received.length === 2);
    expect((await api.post(`${path}/replay`, { from: '2026-01-01' })).status).toBe(200);
    await eventually(async () => at.received.length >= 3);
    expect((await api.send('DELETE', path)).data()).toMatchObject({ webhook_id });
    for (const answer of [await api.get(path), await api.send('DELETE', path), await api.get('/webhooks/whk_x')])
      expectError(answer, 404, 'webhook_not_found');
    expectError(
      await api.post(`/webhooks/${(await webhook(at.url)).webhook_id}/deliveries/dlv_x/redelivery`),
      404,
      'delivery_not_found',
    );
  });

  it('whose receiver responds with 410 is counted as disabled, and invalid and forged messages of event topics are counted', async () => {
    const at = await receiver(status(410));
    await api.post(`/webhooks/${(await webhook(at.url)).webhook_id}/test`);
    const topic = topicName(world.bank.topic_prefix, 'clients');
    const invalid = () => ({ topic, partition: 0, key: 'x', value: 'no JSON', headers: {} });
    const ours = invalid();
    testEventKeys.sign(ours);
    await publish(world.bank, [invalid(), ours]);
    const counted = async (name: string) => {
      const scrapes = await Promise.all(['webhooks', 'webhooks-2'].map((one) => scrape(world.bank.process(one))));
      return scrapes.map(({ value }) => value(`corebanking_webhooks_${name}_total`)).toSorted();
    };
    await eventually(async () => (await counted('disabled'))[1] === 1 && (await counted('unreadable_events'))[1] === 1);
    await eventually(async () => (await counted('forged_events'))[1] === 1);
  });

  it('requires webhooks:manage, which a bound key can have for the events of its client', async () => {
    // contract: webhooks-1
    expectError(
      await api.withKey((await api.key({ scopes: ['transactions:read'] })).api_key).get('/webhooks'),
      403,
      'insufficient_scope',
    );
    const own = api.withKey((await api.key({ scopes: ['webhooks:manage'], client_id: account.client_id })).api_key);
    const other = await api.newAccount({ initial_deposit: 10 });
    const at = await receiver();
    const { webhook_id } = await webhook(at.url, ['*'], own);
    expect((await api.get(`/webhooks/${webhook_id}`)).data()).toMatchObject({ client_id: account.client_id });
    await api.transact(other.account_id, 'Deposit', 1);
    const { transfer_id } = await api.transfer(other.account_id, account.account_id, 3);
    // Earlier tests may have caused further events of this account, but none of the other account.
    const told = () => at.received.filter(({ body }) => body.includes(transfer_id));
    await eventually(async () => told().length >= 2);
    const types = told().map(({ event }) => event.type.split('.')[1]);
    expect(types.sort()).toEqual(['transaction', 'transfer']);
    expect(at.received.filter(({ event }) => event.subject === other.account_id)).toEqual([]);
    const { event } = told().find(({ event: { type } }) => type.includes('transaction')) as (typeof at.received)[0];
    expect((event.data['entries'] as { account_id: string }[]).map(({ account_id }) => account_id)).toEqual([
      account.account_id,
    ]);
  });

  it('ends with the key that last set it: revoked with or without descendants, or expired; the answer lists it', async () => {
    // contract: permission-19, webhooks-2, webhooks-9
    // asvs: 8.3.2
    const [trusted, thief] = [await receiver(), await receiver()];
    const newKey = (more: object = {}) => api.key({ scopes: ['webhooks:manage', 'ops:manage'], ...more });
    const [changing, creating] = [await newKey(), await newKey()];
    const expiring = await newKey({ expires_at: new Date(Date.now() + 10_000).toISOString() });
    const [kept, changed] = [await webhook(trusted.url), await webhook(trusted.url)];
    const created = await webhook(thief.url, ['*'], api.withKey(creating.api_key));
    const expired = await webhook(thief.url, ['*'], api.withKey(expiring.api_key));
    const poor = api.withKey((await api.key({ scopes: ['webhooks:manage'] })).api_key);
    const target = `/webhooks/${changed.webhook_id}`;
    expectError(await poor.patch(target, { url: thief.url }), 404, 'webhook_not_found');
    expect((await api.withKey(changing.api_key).patch(target, { url: thief.url })).status).toBe(200);
    const revoke = async ({ key_id }: { key_id: string }, body: object) =>
      (await api.post(`/admin/api-keys/${key_id}/revocation`, body)).data<{ disabled_webhooks: string[] }>();
    expect((await revoke(changing, { descendants: true })).disabled_webhooks).toEqual([changed.webhook_id]);
    expect((await revoke(creating, {})).disabled_webhooks).toEqual([created.webhook_id]);
    const readStatus = async ({ webhook_id }: { webhook_id: string }) =>
      (await api.get(`/webhooks/${webhook_id}`)).data<{ status: string }>().status;
    await eventually(async () =>
      (await Promise.all([changed, created, expired].map(readStatus))).every((status) => status === 'Disabled'),
    );
    expect(await readStatus(kept)).toBe('Active');
    const before = thief.received.length;
    const { transaction_id } = await api.transact(account.account_id, 'Deposit', 1);
    await eventually(async () => trusted.received.some(({ body }) => body.includes(transaction_id)));
    expect(thief.received).toHaveLength(before);
  });

  it('keeps its secret when the key that seals it is rotated, also if a gateway seals with the old one after webhooks was restarted', async () => {
    const at = await receiver();
    const [next, old] = [
      'the next key of secrets of webhooks for tests',
      'the key of secrets of webhooks for tests alone',
    ];
    const processes = ['webhooks', 'webhooks-2'].map((name) => world.bank.process(name));
    const startWith = async (...keys: string[]) => {
      await Promise.all(processes.map((one) => one.startWith({ WEBHOOK_SECRET_KEYS: keys.join() })));
      const isReady = async ({ health_url }: { health_url: string }) =>
        (await fetch(health_url).catch(() => undefined))?.status === 200;
      await eventually(async () => (await Promise.all(processes.map(isReady))).every(Boolean), 60_000);
    };
    await startWith(next, old);
    const { webhook_id, secret } = await webhook(at.url, ['transaction.completed']);
    try {
      const sealed = () =>
        world.sql<{ secret: string }>('select secret from webhooks.webhooks where webhook_id = $1', [webhook_id]);
      const { prefix } = createSecretKeys([next]);
      await eventually(async () => (await sealed())[0]?.secret.startsWith(prefix) === true);
      await startWith(next);
      await api.transact(account.account_id, 'Deposit', 1);
      await eventually(async () => at.received.length > 0);
      const [received] = at.received;
      new Webhook(secret).verify(received?.body ?? '', received?.headers as Record<string, string>);
    } finally {
      await api.send('DELETE', `/webhooks/${webhook_id}`);
      await startWith(old);
    }
  });

  it('loses no event and keeps the order of each account while its processes are killed during deliveries', async () => {
    // contract: webhooks-19
    const at = await receiver((response) => void setTimeout(() => response.writeHead(204).end(), 20));
    const hanging = await receiver(hang);
    const { webhook_id: ofHanging } = await webhook(hanging.url);
    await webhook(at.url, ['transaction.completed']);
    const accounts = await Promise.all(Array.from({ length: 6 }, () => api.newAccount()));
    const posted = new Map<string, number>();
    let killing = true;
    const posting = Promise.all(
      accounts.map(async ({ account_id }) => {
        for (let i = 1; killing && i <= 1_000; i++) {
          await api.transact(account_id, 'Deposit', 1);
          posted.set(account_id, i);
          await new Promise((resolve) => {
            setTimeout(resolve, 100);
          });
        }
      }),
    );
    for (const name of ['webhooks', 'webhooks-2', 'webhooks']) {
      const { length } = at.received;
      await eventually(async () => at.received.length > length + 5, 60_000);
      world.bank.process(name).kill('SIGKILL');
      await world.bank.process(name).restart();
    }
    killing = false;
    await posting;
    const firsts = (of: string) => [
      ...new Set(
        at.received.filter(({ event }) => event.subject === of).map(({ event }) => Number(event.data['sequence'])),
      ),
    ];
    const allNumbers = (of: string) => Array.from({ length: posted.get(of) ?? 0 }, (_, i) => i + 1);
    await eventually(
      async () => accounts.every(({ account_id }) => firsts(account_id).length === posted.get(account_id)),
      90_000,
    );
    for (const { account_id } of accounts) expect(firsts(account_id)).toEqual(allNumbers(account_id));
    // By this time, other processes have taken over the deliveries of the killed ones.
    await eventually(
      async () =>
        (await api.get(`/webhooks/${ofHanging}/deliveries?order=asc`))
          .list<Delivery>()
          .some(({ attempts }) => attempts[0]?.error === 'no answer within 15 s'),
      90_000,
    );
    const seen: CloudEvent[] = [];
    for (
      let page = await events('types=transaction.completed');
      ;
      page = await events(`types=transaction.completed&after=${page.cursor}`)
    ) {
      seen.push(...page.data);
      if (page.next === undefined) break;
    }
    for (const { account_id } of accounts)
      expect(seen.filter(({ subject }) => subject === account_id).map(({ data }) => data['sequence'])).toEqual(
        allNumbers(account_id),
      );
  }, 240_000);
});
