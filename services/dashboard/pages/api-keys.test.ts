import { afterAll, afterEach, beforeAll, expect, it } from 'vitest';
import { setBankFormats } from '#libs/service/formats.ts';
import { refused } from '../../gateway/test/test-app.ts';
import { testDashboard } from '../test/test-dashboard.ts';

/** The form of an API key without a browser: the day on which a key expires is the bank's. */
let made: Awaited<ReturnType<typeof testDashboard>>;

beforeAll(async () => {
  made = await testDashboard(() => refused('internal_error'));
});
afterEach(() => setBankFormats({ timeZone: 'UTC', locale: undefined }));
afterAll(() => made.app.close());

const day = new Date(Date.now() + 30 * 86_400_000).toISOString().slice(0, 10);
const next = new Date(Date.parse(day) + 86_400_000).toISOString().slice(0, 10);

it.each([
  ['UTC', `${next}T00:00:00.000Z`],
  ['Africa/Nairobi', `${day}T21:00:00.000Z`],
  ['Asia/Kathmandu', `${day}T18:15:00.000Z`],
  ['Etc/GMT+5', `${next}T05:00:00.000Z`],
])('a key expires when its last day ends in %s', async (timeZone, expires_at) => {
  setBankFormats({ timeZone, locale: undefined });
  made.sent.length = 0;
  const { post, session } = made.signedIn('keys:manage clients:read');
  const fields = {
    csrf_token: session.csrf,
    name: 'Shop',
    environment: 'live',
    scopes: 'clients:read',
    expires_at: day,
  };
  await post('/admin/ui/api-keys/new', fields);
  const commands = made.sent.filter(({ headers }) => headers['ce_type']?.includes('command.create_api_key.'));
  expect(commands.map(({ value }) => JSON.parse(String(value)))).toMatchObject([{ expires_at }]);
});
