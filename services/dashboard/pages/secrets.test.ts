import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { scopes } from '#libs/contracts/scopes.ts';
import { ok, refused, samples } from '../../gateway/test/test-app.ts';
import { type Answers, answering, testDashboard } from '../test/test-dashboard.ts';
import { scopeGroups } from './scope-words.ts';

/** Secrets that the API shows once, and the forms that make them. */
let made: Awaited<ReturnType<typeof testDashboard>>;
let answers: Answers;
const webhook_id = `whk_${'1'.repeat(32)}`;
const webhook = {
  webhook_id,
  url: 'https://receiver.example/',
  event_types: ['corebanking.transaction.completed.v1'],
  ordering: 'account',
  blocked_accounts: [],
  description: null,
  status: 'Active',
  client_id: null,
  created_by: 'x',
  created_at: samples.key.created_at,
  updated_at: samples.key.created_at,
  failing_since: samples.key.created_at,
  previous_secret_ends_at: null,
};
const delivery = {
  delivery_id: `dlv_${'1'.repeat(32)}`,
  webhook_id,
  event_id: 'e',
  event_type: 'corebanking.transaction.completed.v1',
  status: 'Pending',
  created_at: samples.key.created_at,
  next_attempt_at: null,
  finished_at: null,
  attempts: [{ attempted_at: samples.key.created_at, duration_ms: 3, response_status: 503, error: null }],
};

beforeAll(async () => {
  made = await testDashboard(answering(() => answers));
});
beforeEach(() => {
  made.sent.length = 0;
  answers = {
    create_api_key: ({ key_id }) => ok({ ...samples.key, key_id }),
    get_api_key: ({ key_id }) => ok({ ...samples.key, key_id, name: 'Payroll' }),
    create_webhook: ({ webhook_id: id }) => ok({ ...webhook, webhook_id: id }),
    rotate_webhook_secret: ok(webhook),
    update_webhook: ok({ ...webhook, status: 'Paused' }),
    get_webhook: ok(webhook),
    list_webhooks: ok({ items: [webhook] }),
    list_deliveries: ok({ items: [delivery] }),
    list_api_keys: ok({ items: [] }),
  };
});
afterAll(() => made.app.close());

const cookieIn = (header: unknown) => /bank_secrets=[^;]*/.exec([header].flat().join('; '))?.[0] ?? '';
const secretIn = (body: string) => />((?:cbk_|whsec_)[^<]*)<\/textarea>/.exec(body)?.[1];
const person = () => made.signedIn('keys:manage webhooks:manage clients:read');

describe('a secret that is shown once', () => {
  it.each([
    ['/admin/ui/api-keys/new', { name: 'Payroll', environment: 'live', scopes: 'clients:read' }],
    ['/admin/ui/webhooks/new', { url: webhook.url, event_types: 'transaction.*\r\nclient.created' }],
    [`/admin/ui/webhooks/${webhook_id}/rotation`, { overlap_seconds: '86400' }],
  ])('%s: survives a reload until it was copied, for nobody else', async (url, fields) => {
    const { session, cookie, get, post } = person();
    const created = await post(url, { ...fields, csrf_token: session.csrf });
    const page = String(created.headers.location);
    expect([created.statusCode, page]).toEqual([303, expect.stringMatching(/^\/admin\/ui\/secret\?of=(key|whk)_/)]);
    const kept = cookieIn(created.headers['set-cookie']);
    const shown = (await get(page, { cookie: `${cookie}; ${kept}` })).body;
    expect(secretIn(shown)).toMatch(/.{20}/);
    expect((await get(page, { cookie: `${cookie}; ${kept}` })).body).toContain(secretIn(shown));
    const eve = made.sessions.begin({
      id: 's',
      actor: 'jwt:x|eve',
      token: session.token,
      name: 'Eve',
      scopes: session.scopes,
      expiresInMs: 60_000,
    });
    const hers = await get(page, { cookie: `bank_session=${made.sessions.seal(eve)}; ${kept}` });
    expect(secretIn(hers.body)).toBeUndefined();
    const id = new URL(page, 'http://x').searchParams.get('of') ?? '';
    const copied = await post(
      '/admin/ui/secret',
      { of: id, csrf_token: session.csrf },
      { cookie: `${cookie}; ${kept}` },
    );
    expect([copied.statusCode, cookieIn(copied.headers['set-cookie'])]).toEqual([303, 'bank_secrets=']);
    expect((await get(page, { cookie })).body).toContain('cannot be shown again');
  });
});

describe('webhooks', () => {
  it('are made with types from lines, changed, and paused', async () => {
    const { session, get, post } = person();
    const sent = () => made.sent.map(({ value }) => JSON.parse(String(value)) as Record<string, unknown>);
    await post('/admin/ui/webhooks/new', {
      url: webhook.url,
      event_types: 'transaction.*\r\nclient.created',
      csrf_token: session.csrf,
    });
    expect(sent().at(-1)).toMatchObject({ url: webhook.url, event_types: expect.any(Array), description: null });
    expect((await get(`/admin/ui/webhooks/${webhook_id}/change`)).body).toContain(
      '>corebanking.transaction.completed.v1</textarea>',
    );
    await post(`/admin/ui/webhooks/${webhook_id}/status`, { status: 'Paused', csrf_token: session.csrf });
    expect(sent().at(-1)).toMatchObject({ webhook_id, changes: { status: 'Paused' } });
    answers['create_webhook'] = refused('validation_failed');
    const wrong = await post('/admin/ui/webhooks/new', { url: 'x', event_types: 'nothing', csrf_token: session.csrf });
    expect([wrong.statusCode, wrong.body.includes('id="url-reason"')]).toEqual([400, true]);
  });

  it('that fail are said to, with the reason; deliveries refresh themselves', async () => {
    const { get } = person();
    for (const path of ['/admin/ui/webhooks', `/admin/ui/webhooks/${webhook_id}?sent`]) {
      const { body } = await get(path);
      expect(body).toMatch(/class="pill wait">[^]*Active, failing/);
      expect(body).toContain('HTTP 503');
    }
    const { body } = await get(`/admin/ui/webhooks/${webhook_id}`);
    expect(body).toContain('Failed once, tries again');
    expect(body).toContain('hx-trigger="every 5s, refresh" hx-select="#deliveries"');
  });

  it('say what became of a test event, not of another delivery, and when a receiver answers again', async () => {
    const { session, get, post } = person();
    const tested = { ...delivery, delivery_id: `dlv_${'2'.repeat(32)}` };
    answers['test_webhook'] = ok({ ...tested, attempts: [] });
    const sent = await post(`/admin/ui/webhooks/${webhook_id}/test`, { csrf_token: session.csrf });
    const page = String(sent.headers.location);
    const attempts = [{ ...delivery.attempts[0], response_status: 200 }];
    const newer = { ...delivery, attempts: [{ ...delivery.attempts[0], response_status: 204 }] };
    for (const items of [[delivery], [newer, { ...tested, attempts: [] }, delivery]]) {
      answers['list_deliveries'] = ok({ items });
      expect((await get(page)).body).toContain('It is being sent. The response appears below.');
    }
    answers['list_deliveries'] = ok({ items: [newer, { ...tested, status: 'Delivered', attempts }, delivery] });
    const { body } = await get(page);
    expect(body).toMatch(/class="notice success"[^]*It was sent\. The receiver’s response: HTTP 200\./);
    expect(body).not.toContain('It is being sent');
    expect(body).toContain('The receiver answers again.');
  });

  it('that fail in great number are not all asked for their reasons', async () => {
    const failing = Array.from({ length: 12 }, (_, i) => ({
      ...webhook,
      webhook_id: `whk_${String(i).padStart(32, '0')}`,
    }));
    answers['list_webhooks'] = ok({ items: failing });
    const { body } = await person().get('/admin/ui/webhooks');
    expect(body.match(/Active, failing/g)).toHaveLength(12);
    expect(made.sent.filter(({ value }) => String(value).includes('"limit":10'))).toHaveLength(10);
  });
});

describe('the form of an API key', () => {
  it('names every scope in a group with a sentence, marks risks, and offers usual choices', async () => {
    expect(scopeGroups.flatMap(([, all]) => all.map(({ scope }) => scope)).toSorted()).toEqual([...scopes].toSorted());
    const { body } = await made.signedIn(scopes.join(' ')).get('/admin/ui/api-keys/new?preset=payments');
    for (const legend of ['Customers', 'Money', 'Administration']) expect(body).toContain(`<legend>${legend}</legend>`);
    for (const risky of ['clients:erase', 'approvals:write', 'accounts:limits', 'transactions:backdate'])
      expect(body).toContain(`<code>${risky}</code> <span class="pill wait">`);
    const checked = [...body.matchAll(/value="([^"]+)" checked> <code>/g)].map(([, scope]) => scope);
    expect(checked).toEqual(['accounts:read', 'transactions:read', 'transfers:write']);
    expect((await made.signedIn('keys:manage clients:read').get('/admin/ui/api-keys/new')).body).not.toContain('Money');
  });
});
