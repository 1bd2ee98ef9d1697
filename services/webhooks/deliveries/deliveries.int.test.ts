import { randomUUID } from 'node:crypto';
import { Webhook } from 'standardwebhooks';
import { afterEach, describe, expect, it } from 'vitest';
import { schemaId } from '#libs/contracts/events.ts';
import { testEventKeys } from '#libs/service/test/keys.ts';
import { eventually } from '../../../tests/support/eventually.ts';
import { completed, eventMessage, newId, opened, retentionDays, useWebhooks } from '../test/harness.ts';
import { close, hang, ok, startReceiver, status } from '../test/receiver.ts';
import { feedAll, maxHeads } from './feed.ts';
import { disableWebhook, finishAttempts } from './finish.ts';
import { claimDue, renewClaims } from './store.ts';
import { sweep } from './sweeper.ts';

/** Deliveries to real receivers, with a real Postgres. */
const harness = useWebhooks();
const stops: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const stop of stops.splice(0)) await stop();
  await harness.owner.query("update webhooks set status = 'Deleted'");
});

async function receiver(answer = ok) {
  const made = await startReceiver(answer);
  stops.push(made.stop);
  return made;
}

/** A process that delivers, for one test. */
function deliver(options = {}) {
  const deliverer = harness.deliver(options);
  stops.unshift(() => deliverer.stop());
}

const eventId = ({ headers }: { headers: Record<string, string> }) => headers['ce_id'] ?? '';
const wait = (ms: number) =>
  new Promise((resolve) => {
    setTimeout(resolve, ms);
  });
const minutesAgo = (minutes: number) => new Date(Date.now() - minutes * 60_000).toISOString();
/** Pauses or resumes a webhook, as if that had been requested at this time, and was executed at `executed`. */
async function setStatus(webhook_id: string, status: 'Paused' | 'Active', time: string, by = {}, executed = time) {
  harness.clock.now = new Date(executed);
  const deadline = new Date(Date.parse(executed) + 30_000).toISOString();
  try {
    return await harness.done('update_webhook', { webhook_id, changes: { status } }, { ...by, time, deadline });
  } finally {
    harness.clock.now = undefined;
  }
}
const noExpired = (expired: object) => expect(expired).toBeUndefined();
const get = (webhook_id: string) => harness.done('get_webhook', { webhook_id });

describe('a delivery', () => {
  it('is the CloudEvent in structured JSON, with a signature that the reference library of Standard Webhooks accepts', async () => {
    // contract: webhooks-10
    deliver();
    const at = await receiver();
    const { secret, webhook_id } = await harness.webhook(at.url);
    const event = completed(newId('account'), 1);
    await harness.take(event);
    await eventually(() => at.received.length === 1);
    const [{ headers, body, event: body_event }] = at.received as [(typeof at.received)[0]];
    expect(headers).toMatchObject({
      'webhook-id': eventId(event),
      'content-type': 'application/cloudevents+json; charset=utf-8',
    });
    expect(body_event).toMatchObject({
      specversion: '1.0',
      id: eventId(event),
      type: 'corebanking.transaction.completed.v1',
      data: JSON.parse(String(event.value)) as object,
    });
    expect(new Webhook(secret).verify(body, headers as Record<string, string>)).toEqual(body_event);
    expect(() => new Webhook(secret).verify(body.replace('Cash', 'Cast'), headers as Record<string, string>)).toThrow();
    await eventually(async () => (await harness.deliveries(webhook_id, 'Delivered')).length === 1);
    expect((await harness.deliveries(webhook_id))[0]).toMatchObject({
      event_id: eventId(event),
      next_attempt_at: null,
      attempts: [{ response_status: 204, error: null }],
    });
  });

  it('is signed with both secrets during a rotation, and afterwards with the new one only', async () => {
    // contract: webhooks-11
    deliver();
    const at = await receiver();
    const { secret, webhook_id } = await harness.webhook(at.url);
    const next = `whsec_${Buffer.alloc(32, 7).toString('base64')}`;
    await harness.done('rotate_webhook_secret', {
      webhook_id,
      sealed_secret: harness.secretKeys.seal(webhook_id, next),
      overlap_seconds: 3600,
    });
    await harness.take(completed(newId('account'), 1));
    await eventually(() => at.received.length === 1);
    const verify = (by: string, i: number) =>
      new Webhook(by).verify(at.received[i]?.body ?? '', at.received[i]?.headers as Record<string, string>);
    for (const by of [secret, next]) expect(verify(by, 0)).toBeDefined();
    expect((await get(webhook_id)).previous_secret_ends_at).not.toBeNull();
    await harness.owner.query('update webhooks set previous_secret_ends_at = clock_timestamp() where webhook_id = $1', [
      webhook_id,
    ]);
    await harness.take(completed(newId('account'), 1));
    await eventually(() => at.received.length === 2);
    expect(verify(next, 1)).toBeDefined();
    expect(() => verify(secret, 1)).toThrow();
    expect((await get(webhook_id)).previous_secret_ends_at).toBeNull();
  });

  it('is signed with a secret that the process does not keep after the attempt', async () => {
    let opened = 0;
    const open = (...sealed: Parameters<typeof harness.secretKeys.open>) => {
      opened++;
      return harness.secretKeys.open(...sealed);
    };
    deliver({ secretKeys: { ...harness.secretKeys, open } });
    const at = await receiver();
    await harness.webhook(at.url);
    for (const count of [1, 2]) {
      await harness.take(completed(newId('account'), 1));
      await eventually(() => at.received.length === count);
      expect(opened).toBe(count);
    }
  });

  it('is retried with the same id if its receiver responds 500, redirects, closes the connection, or hangs; every attempt is stored', async () => {
    deliver({ timeoutMs: 2_000 });
    const elsewhere = await receiver();
    const at = await receiver();
    const { webhook_id } = await harness.webhook(at.url, ['transaction.*']);
    const event = completed(newId('account'), 1);
    for (const [i, answer] of [status(500), status(302, { location: elsewhere.url }), close, hang].entries()) {
      at.answer = answer;
      await (i === 0 ? harness.take(event) : harness.hurry());
      await eventually(async () => (await harness.deliveries(webhook_id))[0]?.attempts.length === i + 1);
      const [delivery] = await harness.deliveries(webhook_id, 'Pending');
      const waitsMs = Date.parse(delivery?.next_attempt_at ?? '') - Date.now();
      if (i === 0) expect(waitsMs).toBeLessThanOrEqual(6_000);
      if (i === 1) expect(waitsMs).toBeGreaterThan(200_000);
    }
    at.answer = ok;
    await harness.hurry();
    await eventually(async () => (await harness.deliveries(webhook_id, 'Delivered')).length === 1);
    expect(new Set(at.received.map(({ headers }) => headers['webhook-id']))).toEqual(new Set([eventId(event)]));
    expect(elsewhere.received).toEqual([]);
    const attempts = (await harness.deliveries(webhook_id))[0]?.attempts.map(
      ({ response_status, error }) => response_status ?? error,
    );
    expect(attempts).toEqual([500, 302, 'the connection failed (ECONNRESET)', 'no answer within 2 s', 204]);
  });

  it('has Failed after its last attempt, and can be redelivered', async () => {
    // contract: webhooks-13
    deliver();
    const at = await receiver(status(503));
    const { webhook_id } = await harness.webhook(at.url);
    await harness.take(completed(newId('account'), 1));
    await eventually(() => at.received.length === 1);
    await harness.owner.query('update deliveries set tries = 9 where webhook_id = $1', [webhook_id]);
    await eventually(async () => {
      await harness.hurry();
      return (await harness.deliveries(webhook_id, 'Failed')).length === 1;
    });
    at.answer = ok;
    const [failed] = await harness.deliveries(webhook_id);
    expect(await harness.done('redeliver', { webhook_id, delivery_id: failed?.delivery_id ?? '' })).toMatchObject({
      status: 'Pending',
    });
    await eventually(async () => (await harness.deliveries(webhook_id, 'Delivered')).length === 1);
    expect(at.received.at(-1)?.headers['webhook-id']).toBe(failed?.event_id);
  });

  it('is created only for the event types of the webhook: single types, groups, all', async () => {
    deliver();
    const [one, group, all] = [await receiver(), await receiver(), await receiver()];
    await harness.webhook(one.url, ['client.created']);
    await harness.webhook(group.url, ['account.*']);
    const { webhook_id } = await harness.webhook(all.url, ['*']);
    const client = newId('client');
    await harness.take(
      opened(newId('account'), client),
      eventMessage('corebanking.client.created.v1', client, {
        client_id: client,
        client_type: 'Retail',
        created_at: '2026-01-01T00:00:00.000Z',
      }),
      completed(newId('account'), 1),
    );
    await eventually(async () => (await harness.deliveries(webhook_id, 'Delivered')).length === 3);
    const types = (of: typeof one) => of.received.map(({ event }) => event.type.split('.').slice(1, 3).join('.'));
    await eventually(() => one.received.length === 1 && group.received.length === 1);
    expect([types(one), types(group), types(all).sort()]).toEqual([
      ['client.created'],
      ['account.opened'],
      ['account.opened', 'client.created', 'transaction.completed'],
    ]);
  });
});

describe('a webhook', () => {
  it('is disabled by 410, with an event and an audit record; Pending deliveries become Failed, and nothing more is sent', async () => {
    // contract: webhooks-14
    const at = await receiver(status(410));
    const { webhook_id } = await harness.webhook(at.url);
    const account = newId('account');
    await harness.take(completed(account, 1), completed(account, 2));
    deliver();
    await eventually(async () => (await get(webhook_id)).status === 'Disabled');
    await harness.take(completed(account, 3));
    await wait(800);
    expect(at.received).toHaveLength(1);
    expect((await harness.deliveries(webhook_id)).map(({ status: one }) => one)).toEqual(['Failed', 'Failed']);
    const written = (await harness.outbox()).filter(({ payload }) => payload?.includes(webhook_id));
    expect(written.map(({ type }) => type)).toEqual([
      'corebanking.command.record_audit.v1',
      'corebanking.webhook.disabled.v1',
      'corebanking.command.record_audit.v1',
    ]);
    expect(JSON.parse(written[1]?.payload ?? '')).toMatchObject({ webhook_id, client_id: null, reason: 'gone' });
    expect(JSON.parse(written[2]?.payload ?? '')).toMatchObject({
      action: 'disable_webhook',
      resource_id: webhook_id,
      actor: 'system',
      details: { reason: 'gone' },
    });
    expect(written[2]).toMatchObject({ topic: 'accounts.commands' });
    at.answer = ok;
    await harness.done('update_webhook', { webhook_id, changes: { status: 'Active' } });
    await harness.take(completed(account, 4));
    await eventually(() => at.received.length === 2);
    expect(at.received[1]?.event.data['sequence']).toBe(4);
  });

  it('is disabled after five days without a success, not because of failures before a success', async () => {
    // contract: webhooks-14
    deliver();
    const at = await receiver(status(500));
    const failing = async () => (await harness.done('get_webhooks_operations', {})).webhooks_failing;
    const { webhook_id } = await harness.webhook(at.url);
    const before = await failing();
    await harness.take(completed(newId('account'), 1));
    await eventually(async () => (await get(webhook_id)).failing_since !== null);
    expect(await failing()).toBe(before + 1);
    const fiveDaysAgo = () =>
      harness.owner.query(
        "update webhooks set failing_since = clock_timestamp() - interval '5 days' where webhook_id = $1",
        [webhook_id],
      );
    await fiveDaysAgo();
    at.answer = ok;
    await harness.hurry();
    await eventually(async () => (await get(webhook_id)).failing_since === null);
    at.answer = status(500);
    await harness.take(completed(newId('account'), 1));
    await eventually(async () => (await get(webhook_id)).failing_since !== null);
    expect((await get(webhook_id)).status).toBe('Active');
    await fiveDaysAgo();
    await harness.hurry();
    await eventually(async () => (await get(webhook_id)).status === 'Disabled');
    expect(
      (await harness.outbox()).some(({ payload }) => payload?.includes(webhook_id) && payload.includes('"failing"')),
    ).toBe(true);
  });

  it('whose receiver hangs delays no other, even if only one additional request is allowed', async () => {
    // contract: webhooks-17
    deliver({ concurrency: 1, timeoutMs: 60_000 });
    const hanging = await receiver(hang);
    const others = [await receiver(), await receiver()];
    const stuck: string[] = [];
    for (let i = 0; i < 5; i++) stuck.push((await harness.webhook(hanging.url)).webhook_id);
    for (const { url } of others) await harness.webhook(url);
    const accounts = Array.from({ length: 20 }, () => newId('account'));
    await harness.take(...accounts.map((account) => completed(account, 1)));
    await eventually(() => others.every(({ received }) => received.length === 20));
    expect(hanging.received.length).toBeLessThanOrEqual(6);
    // None of them has ended although all of the others have been delivered.
    const ended = await Promise.all(stuck.map((webhook_id) => harness.deliveries(webhook_id)));
    expect(ended.flat().flatMap(({ attempts }) => attempts)).toEqual([]);
    await hanging.stop();
  });

  it('receives the events of one account in order, each after the response to the previous one; other accounts do not wait', async () => {
    // contract: webhooks-15
    deliver();
    const [account, other] = [newId('account'), newId('account')];
    const at = await receiver(
      (response, { event }) =>
        void response
          .writeHead(event.subject === account && event.data['sequence'] === 2 && isBroken ? 500 : 204)
          .end(),
    );
    let isBroken = true;
    await harness.webhook(at.url);
    await harness.take(
      ...[1, 2, 3, 4].flatMap((sequence) => [completed(account, sequence), completed(other, sequence)]),
    );
    const came = (of: string) =>
      at.received.filter(({ event }) => event.subject === of).map(({ event }) => event.data['sequence']);
    await eventually(() => came(other).length === 4);
    await wait(500);
    expect([came(account), came(other)]).toEqual([
      [1, 2],
      [1, 2, 3, 4],
    ]);
    await harness.take(completed(account, 5));
    isBroken = false;
    await harness.hurry();
    await eventually(() => came(account).at(-1) === 5);
    expect(came(account)).toEqual([1, 2, 2, 3, 4, 5]);
  });

  /** A webhook that has received event 1 of the account; event 2 was refused, and waits for a retry in a day. */
  async function retriedLater() {
    deliver();
    let isBroken = true;
    const at = await receiver(
      (response, { event }) => void response.writeHead(event.data['sequence'] === 2 && isBroken ? 500 : 204).end(),
    );
    const { webhook_id } = await harness.webhook(at.url);
    const account = newId('account');
    await harness.take(completed(account, 1), completed(account, 2));
    await eventually(async () => (await harness.deliveries(webhook_id, 'Pending'))[0]?.attempts.length === 1);
    await harness.owner.query(
      "update deliveries set next_attempt_at = clock_timestamp() + interval '1 day' where webhook_id = $1 and status = 'Pending'",
      [webhook_id],
    );
    const mend = (): void => void (isBroken = false);
    return { webhook_id, mend, received: () => at.received.map(({ event }) => event.data['sequence']) };
  }

  it('receives two redelivered events of one account in order, although the second one was waiting for a retry', async () => {
    const { webhook_id, mend, received } = await retriedLater();
    mend();
    for (const { delivery_id } of await harness.deliveries(webhook_id))
      await harness.done('redeliver', { webhook_id, delivery_id });
    await eventually(async () => (await harness.deliveries(webhook_id, 'Pending')).length === 0);
    expect(received()).toEqual([1, 2, 1, 2]);
  });

  it('receives a redelivered event although a later one of the account waits for a retry', async () => {
    const { webhook_id, mend, received } = await retriedLater();
    const [first] = await harness.deliveries(webhook_id, 'Delivered');
    await harness.done('redeliver', { webhook_id, delivery_id: first?.delivery_id ?? '' });
    await eventually(() => received().length === 3);
    expect(received()).toEqual([1, 2, 1]);
    await eventually(async () => (await harness.deliveries(webhook_id, 'Pending')).length === 1);
    mend();
    await harness.hurry();
    await eventually(async () => (await harness.deliveries(webhook_id, 'Pending')).length === 0);
  });

  it('continues after an event that has Failed', async () => {
    // contract: webhooks-15
    deliver();
    const account = newId('account');
    const at = await receiver(
      (response, { event }) => void response.writeHead(event.data['sequence'] === 1 ? 400 : 200).end(),
    );
    const { webhook_id } = await harness.webhook(at.url);
    await harness.take(completed(account, 1), completed(account, 2));
    await eventually(() => at.received.length === 1);
    await harness.owner.query('update deliveries set tries = 9 where webhook_id = $1', [webhook_id]);
    await eventually(async () => {
      await harness.hurry();
      return at.received.some(({ event }) => event.data['sequence'] === 2);
    });
    expect((await harness.deliveries(webhook_id, 'Failed')).length).toBe(1);
  });

  it('that is Paused skips events published meanwhile; a replay sends them, including events from before the webhook was created', async () => {
    // contract: webhooks-21
    deliver();
    const account = newId('account');
    const before = completed(account, 1, undefined, { time: minutesAgo(40) });
    await harness.take(before);
    const at = await receiver();
    const { webhook_id } = await harness.webhook(at.url, ['transaction.completed']);
    await setStatus(webhook_id, 'Paused', minutesAgo(30));
    const meanwhile = completed(account, 2, undefined, { time: minutesAgo(20) });
    await harness.take(meanwhile);
    await setStatus(webhook_id, 'Active', minutesAgo(10));
    const after = completed(account, 3);
    await harness.take(after);
    await eventually(() => at.received.length === 1);
    expect(at.ids()).toEqual([eventId(after)]);
    const [from, to] = [before.headers['ce_time'] ?? '', after.headers['ce_time'] ?? ''];
    await harness.done('replay_webhook', { webhook_id, from, to });
    await eventually(() => at.ids().includes(eventId(meanwhile)));
    await wait(300);
    const ofAccount = at.received
      .filter(({ event }) => event.subject === account)
      .map(({ event }) => event.data['sequence']);
    expect(ofAccount.slice(0, 3)).toEqual([3, 1, 2]);
  });

  /** A webhook of the bank or of a client, and an account of that client. */
  const webhookOf = async (of: string, url: string, types: string[]) => {
    const [client, account] = [newId('client'), newId('account')];
    const by = of === 'the bank' ? {} : { bound_client_id: client };
    await harness.take(opened(account, client));
    return { client, account, by, ...(await harness.webhook(url, types, by)) };
  };

  it.each(['the bank', 'a client'])(
    'of %s loses no event from outside a pause, however late it is stored, and gets only those of its last 10 s',
    async (of) => {
      // contract: webhooks-21
      const at = await receiver();
      const { account, by, webhook_id } = await webhookOf(of, at.url, ['transaction.completed']);
      const event = (sequence: number, minute: number) =>
        completed(account, sequence, undefined, { time: minutesAgo(60 - minute) });
      const status = (to: 'Paused' | 'Active', minute: number) =>
        setStatus(webhook_id, to, minutesAgo(60 - minute), by);
      await status('Paused', 10);
      await harness.take(event(1, 9), event(2, 11));
      while (await feedAll(harness.pool));
      await status('Active', 20);
      await status('Paused', 30);
      await status('Active', 40);
      await harness.take(...[9.9, 12, 19.8, 19.9, 25, 31, 39.9, 41].map((minute, i) => event(i + 3, minute)));
      deliver();
      const outside = [1, 3, 6, 7, 9, 10];
      await eventually(() => at.received.length >= outside.length);
      await wait(300);
      expect(at.received.map(({ event: { data } }) => data['sequence'])).toEqual(outside);
    },
  );

  it.each(['the bank', 'a client'])(
    'of %s gets what occurred while the request to resume it was on its way, and afterwards by a clock that is behind',
    async (of) => {
      // contract: webhooks-21
      const at = await receiver();
      const { account, by, webhook_id } = await webhookOf(of, at.url, ['transaction.completed']);
      await setStatus(webhook_id, 'Paused', minutesAgo(30), by);
      const requested = Date.now();
      const event = (sequence: number, ms: number) =>
        completed(account, sequence, undefined, { time: new Date(requested + ms).toISOString() });
      // The first is old enough that the feed passes it at once.
      await harness.take(event(1, -180_000), event(2, 1), event(3, -170_000));
      while (await feedAll(harness.pool));
      const executed = new Date(requested + 20).toISOString();
      await setStatus(webhook_id, 'Active', new Date(requested).toISOString(), by, executed);
      await harness.take(event(4, -3_000));
      deliver();
      await eventually(() => at.received.length >= 2);
      await wait(300);
      expect(at.received.map(({ event: { data } }) => data['sequence'])).toEqual([2, 4]);
    },
  );

  it.each(['the bank', 'a client'])(
    'of %s that is Paused is fed only what is old, and not at each event',
    async (of) => {
      const { client, account, by, webhook_id } = await webhookOf(of, 'https://receiver.example/', ['*']);
      await setStatus(webhook_id, 'Paused', minutesAgo(30), by);
      const event = (minutes: number) => completed(account, 1, undefined, { time: minutesAgo(minutes) });
      const passed = async () => {
        const { rows } = await harness.owner.query<{ passed: number }>(
          `select count(*)::int as passed from events e join event_subjects s on s.event_position = e.position
         where s.subject = $1 and type like '%completed%'
           and s.position <= (select position from feeds where webhook_id = $2)`,
          [of === 'the bank' ? account : client, webhook_id],
        );
        return rows[0]?.passed;
      };
      await harness.take(event(1.5));
      expect([await feedAll(harness.pool), await passed()]).toEqual([false, 0]);
      await harness.owner.query(
        "update events set occurred_at = occurred_at - interval '1 minute' where subject = $1",
        [account],
      );
      await harness.take(event(1.5), event(0.5), event(5));
      expect([await feedAll(harness.pool), await passed()]).toEqual([true, 2]);
      expect([await feedAll(harness.pool), await passed()]).toEqual([false, 2]);
    },
  );

  it('that is resumed by a dead letter, long after its request, is Paused until then', async () => {
    const at = await receiver();
    const account = newId('account');
    const { webhook_id } = await harness.webhook(at.url, ['transaction.completed']);
    await setStatus(webhook_id, 'Paused', minutesAgo(30));
    const event = (sequence: number, minutes: number) =>
      completed(account, sequence, undefined, { time: minutesAgo(minutes) });
    await harness.take(event(1, 5));
    while (await feedAll(harness.pool));
    await setStatus(webhook_id, 'Active', minutesAgo(20), {}, minutesAgo(0));
    await harness.take(event(2, 4), event(3, 0.5));
    deliver();
    await eventually(() => at.received.length >= 1);
    await wait(300);
    expect(at.received.map(({ event: { data } }) => data['sequence'])).toEqual([3]);
  });

  it('of v1 and one of v2 get the same event each in its version, and so do polls', async () => {
    // contract: webhooks-6
    deliver();
    const account = newId('account');
    const v2 = 'corebanking.transaction.completed.v2';
    const both = [1, 2, 3].flatMap((sequence) => {
      const v1 = completed(account, sequence);
      const headers = { ...v1.headers, ce_id: randomUUID(), ce_type: v2, ce_dataschema: schemaId(v2) };
      const next = {
        ...v1,
        offset: v1.offset + 1_000_000n,
        headers,
        value: Buffer.from(JSON.stringify({ account_id: account, number: sequence })),
      };
      testEventKeys.sign(next);
      return [v1, next];
    });
    const ids = (version: string) => both.filter(({ headers }) => headers['ce_type']?.endsWith(version)).map(eventId);
    const names = {
      v1: ['transaction.completed', 'transaction.*', '*', 'corebanking.transaction.completed.v1'],
      v2: [v2],
    };
    const webhooks = await Promise.all(
      Object.entries(names).flatMap(([version, all]) =>
        all.map(async (name) => {
          const at = await receiver();
          await harness.webhook(at.url, [name]);
          return { at, name, version };
        }),
      ),
    );
    expect(await harness.take(...both)).toEqual({ stored: 6, unreadable: 0, forged: 0 });
    for (const { at, name, version } of webhooks) {
      await eventually(() => at.ids().length >= 3);
      const ofAccount = at.received.filter(({ event }) => event.subject === account);
      expect([name, ofAccount.map(({ event }) => event.id)]).toEqual([name, ids(version)]);
    }
    const polled = async (types?: string[]) =>
      (await harness.events({ ...(types && { types }), account_id: account })).items.map(({ id }) => id);
    for (const types of [undefined, ['transaction.completed'], ['*']]) expect(await polled(types)).toEqual(ids('v1'));
    expect(await polled([v2])).toEqual(ids('v2'));
  });

  it('that was Paused before earlier events were sent sends them when it is Active again', async () => {
    const at = await receiver();
    const { webhook_id } = await harness.webhook(at.url);
    const account = newId('account');
    const event = (sequence: number, minutes: number) =>
      completed(account, sequence, undefined, { time: minutesAgo(minutes) });
    await harness.take(event(1, 31));
    await setStatus(webhook_id, 'Paused', minutesAgo(30));
    deliver();
    await harness.take(event(2, 20));
    await wait(700);
    expect(at.received).toEqual([]);
    await setStatus(webhook_id, 'Active', minutesAgo(10));
    await harness.take(completed(account, 3));
    await eventually(() => at.received.length === 2);
    expect(at.received.map(({ event }) => event.data['sequence'])).toEqual([1, 3]);
  });

  it('of a caller bound to a client receives only events and entries of its own accounts, also by a replay', async () => {
    deliver();
    const at = await receiver();
    const [client, own, other] = [newId('client'), newId('account'), newId('account')];
    const early = completed(own, 1, [other]);
    await harness.take(early);
    const { webhook_id } = await harness.webhook(at.url, ['transaction.*'], { bound_client_id: client });
    await harness.take(
      opened(own, client),
      opened(other, newId('client')),
      completed(own, 2, [other]),
      completed(other, 1, [own]),
    );
    await eventually(() => at.received.length >= 2);
    await wait(300);
    expect(at.received.map(({ event }) => event.data['sequence'])).toEqual([1, 2]);
    for (const { event } of at.received)
      expect((event.data['entries'] as { account_id: string }[]).map(({ account_id }) => account_id)).toEqual([own]);
    await harness.done(
      'replay_webhook',
      { webhook_id, from: '2026-01-01T00:00:00.000Z', to: new Date(Date.now() + 1000).toISOString() },
      { bound_client_id: client },
    );
    await eventually(() => at.received.length === 4);
    expect(at.received.slice(2).map(({ event }) => event.data['sequence'])).toEqual([1, 2]);
  });

  it('sends a test event immediately', async () => {
    deliver();
    const at = await receiver();
    const { webhook_id } = await harness.webhook(at.url, ['client.created']);
    const { delivery_id } = await harness.done('test_webhook', { webhook_id });
    await eventually(() => at.received.length === 1);
    expect(at.received[0]?.event).toMatchObject({
      type: 'corebanking.webhook.test.v1',
      subject: webhook_id,
      data: { webhook_id },
    });
    await eventually(async () => (await harness.deliveries(webhook_id))[0]?.status === 'Delivered');
    await harness.done('redeliver', { webhook_id, delivery_id });
    await eventually(() => at.received.length === 2);
  });

  /** An account whose events are refused until it is mended, and a receiver that accepts those of all others. */
  async function blocked() {
    const account = newId('account');
    let isBroken = true;
    const at = await receiver(
      (response, { event }) => void response.writeHead(event.subject === account && isBroken ? 500 : 204).end(),
    );
    const came = (of: string) =>
      at.received.filter(({ event }) => event.subject === of).map(({ event }) => event.data['sequence']);
    const events = (of: string, from: number, count: number) =>
      Array.from({ length: count }, (_, i) => completed(of, from + i));
    return { account, at, came, events, mend: () => void (isBroken = false) };
  }

  const rows = async (webhook_id: string, where: string) =>
    (
      await harness.owner.query<{ count: number }>(
        `select count(*)::int as count from deliveries where webhook_id = $1 and ${where}`,
        [webhook_id],
      )
    ).rows[0]?.count ?? 0;

  /** What came from the last attempt of the first event on, which was refused before. */
  const inOrder = (came: unknown[]) => came.slice(came.lastIndexOf(1));

  /** An attempt that is running when the receiver is mended may still be refused, and is retried much later. */
  const freed = (webhook_id: string, by = {}) =>
    eventually(async () => {
      const { blocked_accounts } = await harness.done('get_webhook', { webhook_id }, by);
      if (blocked_accounts.length > 0) await harness.hurry();
      return blocked_accounts.length === 0;
    });

  const held = async (webhook_id: string) =>
    (await harness.owner.query('select from held_keys where webhook_id = $1', [webhook_id])).rowCount;

  it('that refuses one account receives those of all others, however many events wait, and afterwards those of this one in order', async () => {
    // contract: webhooks-16
    const { account, at, came, events, mend } = await blocked();
    const [bystander, hot] = [newId('account'), newId('account')];
    const { webhook_id } = await harness.webhook(at.url);
    deliver();
    await harness.take(...events(account, 1, 1));
    await eventually(() => came(account).length === 1);
    for (let i = 0; i < 5; i++) await harness.take(...events(account, 2 + i * 450, 450));
    await harness.take(...events(bystander, 1, 3), ...events(hot, 1, 200));
    await eventually(() => came(bystander).length === 3 && came(hot).length === 200);
    expect([came(bystander), came(hot)]).toEqual([[1, 2, 3], events(hot, 1, 200).map((_, i) => i + 1)]);
    // The events that wait are no rows of the table of deliveries.
    expect(await rows(webhook_id, "status = 'Pending'")).toBeLessThanOrEqual(20);
    expect((await get(webhook_id)).blocked_accounts).toMatchObject([
      { subject: account, event_type: 'corebanking.transaction.completed.v1', error: 'HTTP 500' },
    ]);
    mend();
    await freed(webhook_id);
    // More than a key may have Pending, so that it was continued several times.
    await eventually(() => inOrder(came(account)).length >= 70, 60_000);
    expect(inOrder(came(account)).slice(0, 70)).toEqual(Array.from({ length: 70 }, (_, i) => i + 1));
    expect((await get(webhook_id)).blocked_accounts).toEqual([]);
    expect(await rows(webhook_id, "status = 'Pending'")).toBeLessThanOrEqual(20);
  }, 120_000);

  it('replays the events of all accounts but the one that is refused, and of that one later, each once', async () => {
    // contract: webhooks-16
    const { account, at, came, events, mend } = await blocked();
    const bystander = newId('account');
    const all = [...events(account, 1, 300), ...events(bystander, 1, 3)];
    await harness.take(...all.slice(0, 150), ...all.slice(300), ...all.slice(150, 300));
    const { webhook_id } = await harness.webhook(at.url, ['transaction.completed']);
    const times = all.map(({ headers }) => headers['ce_time'] ?? '').toSorted();
    const to = new Date(Date.parse(times.at(-1) ?? '') + 1).toISOString();
    await harness.done('replay_webhook', { webhook_id, from: times[0] ?? '', to });
    deliver();
    await eventually(() => came(bystander).length === 3);
    // An event of today waits for those that are replayed only as long as they are not refused.
    await harness.take(completed(bystander, 4));
    await eventually(() => came(bystander).length === 4);
    mend();
    await freed(webhook_id);
    await eventually(() => new Set(came(account)).size === 300, 60_000);
    await eventually(async () => (await held(webhook_id)) === 0);
    await eventually(async () => (await rows(webhook_id, "status = 'Pending'")) === 0);
    expect(inOrder(came(account))).toEqual(Array.from({ length: 300 }, (_, i) => i + 1));
    expect(
      (await harness.owner.query('select from feeds where webhook_id = $1 and until_time is not null', [webhook_id]))
        .rowCount,
    ).toBe(0);
  }, 120_000);

  it('of a bound caller, too, holds back the refused account only, also while it is Paused', async () => {
    const { account, at, came, events, mend } = await blocked();
    const [client, bystander] = [newId('client'), newId('account')];
    await harness.take(opened(account, client), opened(bystander, client));
    const bound = { bound_client_id: client };
    const { webhook_id } = await harness.webhook(at.url, ['transaction.completed'], bound);
    deliver();
    await harness.take(...events(account, 1, 1));
    await eventually(() => came(account).length === 1);
    await harness.take(...events(account, 2, 99), ...events(bystander, 1, 2));
    await eventually(() => came(bystander).length === 2);
    await setStatus(webhook_id, 'Paused', minutesAgo(30), bound);
    const paused = { time: minutesAgo(20) };
    await harness.take(...[101, 102, 103, 104, 105].map((n) => completed(account, n, undefined, paused)));
    mend();
    await setStatus(webhook_id, 'Active', minutesAgo(10), bound);
    await harness.take(...events(account, 106, 5), ...events(bystander, 3, 1));
    await eventually(() => came(bystander).length === 3);
    await freed(webhook_id, bound);
    await eventually(() => came(account).at(-1) === 110, 60_000);
    const given = Array.from({ length: 110 }, (_, i) => i + 1).filter((n) => n <= 100 || n > 105);
    expect(inOrder(came(account))).toEqual(given);
  }, 120_000);

  it('whose first event of an account is skipped continues with the next one; the skipped one has Failed', async () => {
    // contract: webhooks-16
    const { account, at, came, events, mend } = await blocked();
    const { webhook_id } = await harness.webhook(at.url);
    deliver();
    await harness.take(...events(account, 1, 1));
    await eventually(async () => (await get(webhook_id)).blocked_accounts.length === 1);
    await harness.take(...events(account, 2, 30));
    const [one] = (await get(webhook_id)).blocked_accounts;
    mend();
    expect(await harness.done('skip_delivery', { webhook_id, delivery_id: one?.delivery_id ?? '' })).toMatchObject({
      status: 'Failed',
      next_attempt_at: null,
    });
    await eventually(() => came(account).length === 31);
    expect(came(account)).toEqual([1, ...events(account, 2, 30).map((_, i) => i + 2)]);
    expect(await harness.send('skip_delivery', { webhook_id, delivery_id: one?.delivery_id ?? '' })).toMatchObject({
      ok: false,
      refusal: { code: 'invalid_status_transition' },
    });
    expect((await harness.outbox()).some(({ payload }) => payload?.includes('"action":"skip_delivery"'))).toBe(true);
  });

  it('whose first event of an account is redelivered continues with it at once, in order', async () => {
    // contract: webhooks-16
    const { account, at, came, events, mend } = await blocked();
    const { webhook_id } = await harness.webhook(at.url);
    deliver();
    await harness.take(...events(account, 1, 1));
    await eventually(async () => (await get(webhook_id)).blocked_accounts.length === 1);
    await harness.owner.query(
      "update deliveries set next_attempt_at = clock_timestamp() + interval '1 day' where webhook_id = $1",
      [webhook_id],
    );
    await harness.take(...events(account, 2, 30));
    mend();
    const [one] = (await get(webhook_id)).blocked_accounts;
    await harness.done('redeliver', { webhook_id, delivery_id: one?.delivery_id ?? '' });
    await eventually(() => came(account).length === 32);
    expect(came(account)).toEqual([1, 1, ...events(account, 2, 30).map((_, i) => i + 2)]);
  });

  it('without an order waits for nothing: a refused event delays no other of its account, and what waited is sent', async () => {
    // contract: webhooks-16
    deliver();
    const account = newId('account');
    const at = await receiver(
      (response, { event }) => void response.writeHead(event.data['sequence'] === 1 ? 500 : 204).end(),
    );
    const came = () => at.received.map(({ event }) => Number(event.data['sequence']));
    const { webhook_id } = await harness.webhook(at.url);
    const some = (from: number) => Array.from({ length: 60 }, (_, i) => completed(account, from + i));
    await harness.take(completed(account, 1));
    await eventually(async () => (await get(webhook_id)).blocked_accounts.length === 1);
    await harness.take(...some(2));
    await wait(300);
    expect(came()).toEqual([1]);
    await harness.done('update_webhook', { webhook_id, changes: { ordering: 'none' } });
    await harness.take(...some(62));
    await eventually(() => new Set(came()).size === 121);
    expect(came().length).toBeLessThanOrEqual(122);
    expect((await get(webhook_id)).ordering).toBe('none');
  });

  /** Inserts so many Pending deliveries that were refused once, of one account each, and as many that wait for each. */
  const refuse = (webhook_id: string, count: number, waiting: number) =>
    harness.owner.query(
      `insert into deliveries (webhook_id, ordinal, event_id, event_type, ordering_key, tries, next_attempt_at, attempts)
       select $1, 1000000 + key * 100 + n, gen_random_uuid(), 'corebanking.transaction.completed.v1', 'acc_' || key,
         case when n = 0 then 1 else 0 end, case when n = 0 then clock_timestamp() + interval '1 day' end,
         case when n = 0 then array[json_build_object('attempted_at', '2026-01-01T00:00:00.000Z', 'duration_ms', 1, 'response_status', 500, 'error', null)]
           else '{}' end
       from generate_series(1, $2::int) as key, generate_series(0, $3::int) as n`,
      [webhook_id, count, waiting],
    );

  it(`that refuses ${maxHeads} accounts gets no events of others until one of them ends`, async () => {
    // contract: webhooks-16
    const { webhook_id } = await harness.webhook('https://receiver.example/');
    await refuse(webhook_id, maxHeads, 0);
    const event = completed(newId('account'), 1);
    await harness.take(event);
    const isFed = async () => (await rows(webhook_id, `event_id = '${eventId(event)}'`)) === 1;
    while (await feedAll(harness.pool));
    expect(await isFed()).toBe(false);
    const [one] = (await get(webhook_id)).blocked_accounts;
    await harness.done('skip_delivery', { webhook_id, delivery_id: one?.delivery_id ?? '' });
    while (await feedAll(harness.pool));
    expect(await isFed()).toBe(true);
  });

  it('with more Pending deliveries than one statement changes is disabled, and gives up its order, completely', async () => {
    const made = [
      await harness.webhook('https://receiver.example/'),
      await harness.webhook('https://receiver.example/'),
    ];
    const [ended, freely] = made.map(({ webhook_id }) => webhook_id) as [string, string];
    for (const webhook_id of [ended, freely]) await refuse(webhook_id, 800, 14);
    await disableWebhook(harness.owner, {
      webhook_id: ended,
      client_id: null,
      reason: 'gone',
      failing_since: null,
      disabled_at: new Date().toISOString(),
    });
    expect([await rows(ended, "status = 'Failed'"), await rows(ended, "status = 'Pending'")]).toEqual([12_000, 0]);
    await harness.done('update_webhook', { webhook_id: freely, changes: { ordering: 'none' } });
    expect(await rows(freely, 'next_attempt_at is null')).toBe(0);
    expect((await get(freely)).blocked_accounts).toEqual([]);
  });

  it('names the accounts that have been blocked longest first, since the first refusal after a redelivery, and a test by its subject', async () => {
    // contract: webhooks-16
    const { webhook_id } = await harness.webhook('https://receiver.example/');
    await refuse(webhook_id, 2, 0);
    const { event_id } = await harness.done('test_webhook', { webhook_id });
    const attempts = (key: string, tries: number, ...days: number[]) =>
      harness.owner.query(
        `update deliveries set tries = $3, attempts = (select array_agg(json_build_object('attempted_at', day, 'response_status', 500))
           from unnest($4::text[]) as day) where webhook_id = $1 and (ordering_key = $2 or event_id::text = $2)`,
        [webhook_id, key, tries, days.map((day) => `2026-02-0${day}T00:00:00.000Z`)],
      );
    await attempts('acc_1', 2, 1, 5, 6);
    await attempts('acc_2', 1, 4);
    await attempts(event_id, 1, 7);
    const shown = (await get(webhook_id)).blocked_accounts;
    expect(
      shown.map(({ subject, blocked_since, attempts: many }) => [subject, blocked_since.slice(8, 10), many]),
    ).toEqual([
      ['acc_2', '04', 1],
      ['acc_1', '05', 2],
      [webhook_id, '07', 1],
    ]);
  });

  it('is fed no further ahead than some claims, and still receives every event', async () => {
    const at = await receiver();
    const { webhook_id } = await harness.webhook(at.url);
    for (let i = 0; i < 5; i++)
      await harness.take(...Array.from({ length: 500 }, () => completed(newId('account'), 1)));
    await harness.done('update_webhook', { webhook_id, changes: { description: 'x' } });
    deliver();
    let most = 0;
    await eventually(async () => {
      const { rows } = await harness.owner.query<{ count: number }>(
        "select count(*)::int as count from deliveries where webhook_id = $1 and status = 'Pending'",
        [webhook_id],
      );
      most = Math.max(most, rows[0]?.count ?? 0);
      return at.received.length >= 2_500;
    }, 120_000);
    // Those that are due, those that are being sent, and those that were created together.
    expect(most).toBeLessThanOrEqual(256 + 64 + 500);
    expect(new Set(at.ids()).size).toBe(2_500);
  }, 180_000);
});

it('concurrent processes deliver each event once, and take over the claims of a process that has ended within 5 s', async () => {
  const at = await receiver();
  const { webhook_id } = await harness.webhook(at.url);
  const account = newId('account');
  await harness.take(completed(account, 1), completed(account, 2));
  await feedAll(harness.pool);
  const gone = (await claimDue(harness.pool, [], 0)).filter((one) => one.webhook_id === webhook_id);
  expect(gone).toHaveLength(1);
  const [claimed] = await harness.deliveries(webhook_id, 'Pending');
  expect(Date.parse(claimed?.next_attempt_at ?? '') - Date.now()).toBeLessThanOrEqual(5_000);
  deliver();
  deliver();
  await eventually(() => at.received.length === 2);
  const more = Array.from({ length: 200 }, () => completed(newId('account'), 1));
  await harness.take(...more);
  await eventually(
    async () => (await harness.deliveries(webhook_id, 'Pending')).length === 0 && at.received.length >= 202,
  );
  expect(at.ids().length).toBe(202);
});

it('a process keeps its claims while a receiver takes longer than they last; another one sends nothing meanwhile', async () => {
  const answers: (() => void)[] = [];
  const at = await receiver((response) => void answers.push(() => response.writeHead(204).end()));
  const { webhook_id } = await harness.webhook(at.url);
  deliver();
  deliver();
  await harness.take(completed(newId('account'), 1));
  const ends = async () => Date.parse((await harness.deliveries(webhook_id))[0]?.next_attempt_at ?? '');
  await eventually(() => at.received.length === 1);
  const first = await ends();
  // The claim was renewed until after its first end has passed.
  await eventually(async () => Date.now() > first + 1_000 && (await ends()) > Date.now(), 30_000);
  expect(at.received).toHaveLength(1);
  answers.forEach((answer) => answer());
  await eventually(async () => (await harness.deliveries(webhook_id, 'Delivered')).length === 1);
  expect(at.received).toHaveLength(1);
}, 60_000);

it('a process whose claim could not be renewed ends the attempt before another one may begin', async () => {
  const at = await receiver(hang);
  const { webhook_id } = await harness.webhook(at.url);
  const closed: number[] = [];
  at.answer = (response) => void response.on('close', () => closed.push(Date.now()));
  deliver({ timeoutMs: 60_000 });
  await harness.take(completed(newId('account'), 1));
  await eventually(() => at.received.length === 1);
  // Somebody else holds the row, so that renewals wait.
  const locking = await harness.owner.connect();
  await locking.query('begin');
  await locking.query('select from deliveries where webhook_id = $1 for update', [webhook_id]);
  await eventually(() => closed.length === 1, 30_000);
  const [{ next_attempt_at }] = (
    await locking.query<{ next_attempt_at: Date }>('select next_attempt_at from deliveries where webhook_id = $1', [
      webhook_id,
    ])
  ).rows as [{ next_attempt_at: Date }];
  expect(closed[0]).toBeLessThanOrEqual(new Date(next_attempt_at).getTime());
  await locking.query('rollback');
  locking.release();
}, 60_000);

it('the time of a retry is not replaced by the renewal of a claim whose attempt has been recorded', async () => {
  const { webhook_id } = await harness.webhook('https://receiver.example/');
  await harness.done('test_webhook', { webhook_id });
  const [claim] = (await claimDue(harness.pool, [], 0)).filter((one) => one.webhook_id === webhook_id);
  if (!claim) throw new Error('not claimed');
  expect(await renewClaims(harness.pool, [claim])).toHaveLength(1);
  const attempted_at = new Date().toISOString();
  const attempt = { ...claim, attempted_at, duration_ms: 1, response_status: 500, error: null };
  await finishAttempts(harness.pool, webhook_id, [{ ...attempt, tries: 1 }], attempted_at);
  const [before] = await harness.deliveries(webhook_id);
  expect(await renewClaims(harness.pool, [claim])).toEqual([]);
  expect((await harness.deliveries(webhook_id))[0]?.next_attempt_at).toBe(before?.next_attempt_at);
});

it('an attempt is not recorded if another process has claimed the delivery since', async () => {
  const { webhook_id } = await harness.webhook('https://receiver.example/');
  await harness.done('test_webhook', { webhook_id });
  const claimed = async () => {
    await harness.hurry();
    const due = await claimDue(harness.pool, [], 0);
    return due
      .filter((one) => one.webhook_id === webhook_id)
      .map(({ ordinal, claim, tries }) => ({ ordinal, claim, tries }));
  };
  const [first] = await claimed();
  const [second] = await claimed();
  if (!first || !second) throw new Error('not claimed');
  const attempted_at = new Date().toISOString();
  const finish = (claim: typeof first, response_status: number) =>
    finishAttempts(
      harness.pool,
      webhook_id,
      [{ ...claim, attempted_at, duration_ms: 1, response_status, error: null }],
      attempted_at,
    );
  await finish(first, 500);
  expect(await harness.deliveries(webhook_id)).toMatchObject([{ status: 'Pending', attempts: [] }]);
  await finish(second, 204);
  expect(await harness.deliveries(webhook_id)).toMatchObject([
    { status: 'Delivered', attempts: [{ response_status: 204 }] },
  ]);
});

it('deliveries that failed together are not retried together', async () => {
  const { webhook_id } = await harness.webhook('https://receiver.example/');
  const at = new Date().toISOString();
  const failed = { claim: 0, tries: 1, attempted_at: at, duration_ms: 1, response_status: 500, error: null };
  const attempts = Array.from({ length: 20 }, (_, i) => ({ ...failed, ordinal: String(i) }));
  const { ended } = await finishAttempts(harness.pool, webhook_id, attempts, at);
  expect(new Set(ended.map((one) => 'delayMs' in one && one.delayMs)).size).toBeGreaterThan(10);
});

it('events that waited behind a refused one until they were deleted are told, by webhook', async () => {
  const { webhook_id } = await harness.webhook('https://receiver.example/', ['corebanking.transaction.completed.v1']);
  const account = newId('account');
  const old = { time: new Date(Date.now() - (retentionDays + 1) * 86_400_000).toISOString() };
  await harness.take(...Array.from({ length: 25 }, (_, i) => completed(account, i + 1, undefined, old)));
  await harness.take(eventMessage('corebanking.account.opened.v1', account, {} as never, old));
  while (await feedAll(harness.pool));
  const told: object[] = [];
  while (await sweep(harness.pool, retentionDays, (expired) => void told.push(expired)));
  expect(told).toEqual([{ webhook_id, events: 5 }]);
});

it('those of a webhook of a client are counted where it finds them, although their account became known later, and only those that it may receive', async () => {
  const [client, account] = [newId('client'), newId('account')];
  const { webhook_id } = await harness.webhook('https://receiver.example/', ['*'], { bound_client_id: client });
  const old = { time: new Date(Date.now() - (retentionDays + 1) * 86_400_000).toISOString() };
  await harness.take(...Array.from({ length: 25 }, (_, i) => completed(account, i + 1, undefined, old)));
  await harness.take(opened(account, client));
  const later = Array.from({ length: 3 }, (_, i) => completed(account, i + 26, undefined, old));
  const hidden = eventMessage('corebanking.transaction.account_not_found.v1', account, {} as never, old);
  await harness.take(...later, hidden);
  while (await feedAll(harness.pool));
  const told: object[] = [];
  while (await sweep(harness.pool, retentionDays, (expired) => void told.push(expired)));
  expect(told).toEqual([{ webhook_id, events: 8 }]);
});

it('a feed whose next events are no longer kept has nothing more to do', async () => {
  const at = await receiver();
  await harness.webhook(at.url);
  const expired = completed(newId('account'), 1);
  await harness.take(expired);
  await harness.owner.query('delete from events where event_id = $1', [eventId(expired)]);
  await feedAll(harness.pool);
  expect(await feedAll(harness.pool)).toBe(false);
  const next = completed(newId('account'), 1);
  await harness.take(next);
  deliver();
  await eventually(() => at.received.length === 1);
  expect(at.ids()).toEqual([eventId(next)]);
});

it('the sweeper deletes events after their retention, Delivered deliveries after 7 days, Failed ones after 30, and those of a deleted webhook', async () => {
  // contract: webhooks-13
  deliver();
  const at = await receiver();
  const [kept, deleted] = [await harness.webhook(at.url, ['client.*']), await harness.webhook(at.url, ['client.*'])];
  const client = newId('client');
  await harness.take(
    eventMessage('corebanking.client.created.v1', client, {
      client_id: client,
      client_type: 'Retail',
      created_at: '2026-01-01T00:00:00.000Z',
    }),
  );
  await eventually(async () =>
    (await Promise.all([kept, deleted].map(({ webhook_id }) => harness.deliveries(webhook_id, 'Delivered')))).every(
      ({ length }) => length === 1,
    ),
  );
  await harness.done('delete_webhook', { webhook_id: deleted.webhook_id });
  const count = async (where: string) =>
    (await harness.owner.query<{ count: number }>(`select count(*)::int as count from ${where}`)).rows[0]?.count;
  while (await sweep(harness.pool, retentionDays, noExpired));
  expect([
    await count(`deliveries where webhook_id = '${kept.webhook_id}'`),
    await count(`deliveries where webhook_id = '${deleted.webhook_id}'`),
  ]).toEqual([1, 0]);
  await harness.owner.query(
    "update deliveries set finished_at = finished_at - interval '7 days' where webhook_id = $1",
    [kept.webhook_id],
  );
  await sweep(harness.pool, retentionDays, noExpired);
  expect(await count(`deliveries where webhook_id = '${kept.webhook_id}'`)).toBe(0);
  const failed = async (daysAgo: number) => {
    await harness.owner.query(
      "insert into deliveries (webhook_id, ordinal, event_id, event_type, ordering_key, status, finished_at) values ($1, 1000 + $2, gen_random_uuid(), 'x', 'x', 'Failed', clock_timestamp() - make_interval(hours => $2))",
      [kept.webhook_id, daysAgo * 24 + 1],
    );
    await sweep(harness.pool, retentionDays, noExpired);
    return count(`deliveries where webhook_id = '${kept.webhook_id}'`);
  };
  expect([await failed(29), await failed(30)]).toEqual([1, 1]);
  const old = completed(newId('account'), 1, [], { time: new Date(Date.now() - 401 * 86_400_000).toISOString() });
  await harness.take(old);
  await sweep(harness.pool, -1, noExpired);
  expect(await count(`events where event_id = '${eventId(old)}'`)).toBe(1);
  await sweep(harness.pool, retentionDays, noExpired);
  expect([
    await count(`events where event_id = '${eventId(old)}'`),
    await count(`event_subjects where subject = '${old.key}'`),
  ]).toEqual([0, 0]);
  expect((await harness.events({ account_id: old.key ?? '' })).items).toEqual([]);
});

it('the sweeper leaves nothing of an event whose owner became known after it', async () => {
  const [client, account] = [newId('client'), newId('account')];
  const old = completed(account, 1, [], { time: new Date(Date.now() - 401 * 86_400_000).toISOString() });
  await harness.take(old);
  await harness.take(opened(account, client));
  const { rows } = await harness.owner.query('select position from events where event_id = $1', [eventId(old)]);
  const subjects = async () =>
    (
      await harness.owner.query<{ subject: string }>(
        'select subject from event_subjects where event_position = $1 order by subject',
        [rows[0]?.position],
      )
    ).rows.map(({ subject }) => subject);
  expect(await subjects()).toEqual([account, client]);
  await sweep(harness.pool, retentionDays, noExpired);
  expect(await subjects()).toEqual([]);
});

it('the sweeper waits for a transaction that assigns an expired event to its owner', async () => {
  const [client, account] = [newId('client'), newId('account')];
  await harness.take(completed(account, 1, [], { time: new Date(Date.now() - 401 * 86_400_000).toISOString() }));
  const assigning = await harness.owner.connect();
  await assigning.query('begin');
  await assigning.query('select from event_head for update');
  const sweeping = sweep(harness.pool, retentionDays, noExpired);
  await eventually(async () => {
    const { rowCount } = await harness.owner.query(
      "select from pg_stat_activity where datname = current_database() and query like '%event_%' and wait_event_type = 'Lock'",
    );
    return rowCount === 1;
  });
  await assigning.query(
    `with added as (
       insert into event_subjects (subject, position, event_position)
       select $1, h.position + 1, s.event_position from event_head h, event_subjects s where s.subject = $2
     ) update event_head set position = position + 1`,
    [client, account],
  );
  await assigning.query('commit');
  assigning.release();
  await sweeping;
  const { rows } = await harness.owner.query('select from event_subjects where subject = any($1)', [[client, account]]);
  expect(rows).toEqual([]);
});
