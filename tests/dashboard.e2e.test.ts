import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import type { Page } from 'playwright-core';
import { expect, it } from 'vitest';
import { scopes } from '#libs/contracts/scopes.ts';
import { describeInBrowser, expectAccessible, expectNoSidewaysScroll, signIn, useBrowser, widths } from './support/browser.ts';
import type { Window } from './support/browser.ts';
import { eventually, useBank } from './support/world.ts';

/** The administration dashboard as staff use it: a real browser, a real issuer, two gateways. */
const world = useBank({ gateways: 2, dashboard: true });
const browser = useBrowser();

const shots = process.env['SCREENSHOTS'];
async function look(page: Page, name: string): Promise<void> {
  if (!shots) return;
  mkdirSync(shots, { recursive: true });
  await page.screenshot({ path: join(shots, `${name}.png`), fullPage: true });
}

const open = (options?: Parameters<typeof browser.open>[1]) => browser.open([...world.bank.base_urls, world.bank.issuer].map((url) => new URL(url).origin), options);
const statusWith = async (apiKey: string, gateway: number) => (await world.gateway(gateway).withKey(apiKey).get('/')).status;
const heading = (page: Page) => page.getByRole('heading', { level: 1 }).innerText();
const fresh = ({ complaints }: Window) => expect(complaints).toEqual([]);

/** The page of the dashboard as a copied cookie gets it: its status without following redirects. */
async function statusOfCopy(cookie: string, gateway: number): Promise<number> {
  const answer = await fetch(`${world.bank.base_urls[gateway]}/admin/ui`, { headers: { cookie }, redirect: 'manual' });
  return answer.status;
}

async function createKey(page: Page, name: string): Promise<string> {
  await page.goto(`${world.bank.base_urls[0]}/admin/ui/api-keys`);
  await page.getByRole('button', { name: 'Create an API key' }).click();
  await page.getByLabel('Name').fill(name);
  await page.getByLabel('test', { exact: true }).check();
  await page.getByLabel('clients:read').check();
  await page.getByRole('button', { name: 'Create', exact: true }).click();
  return await page.getByLabel('API key', { exact: true }).inputValue();
}

describeInBrowser('sign-in', () => {
  it('leads from any page to the issuer and back to that page', async () => {
    const window = await open();
    const { page } = window;
    await page.goto(`${world.bank.base_urls[0]}/admin/ui/api-keys`);
    expect(await heading(page)).toBe('Sign in');
    await look(page, 'sign-in');
    await expectAccessible(page);
    await page.getByRole('button', { name: 'Sign in' }).click();
    await page.getByLabel('User name').fill('admin');
    await page.getByLabel('Password', { exact: true }).fill(process.env['TEST_USER_PASSWORD'] ?? '');
    await page.keyboard.press('Enter');
    await page.waitForURL('**/admin/ui/api-keys');
    expect(await heading(page)).toBe('API keys');
    fresh(window);
  });

  it('the session is a cookie that no script and no other site gets', async () => {
    const { page, context } = await open();
    await signIn(page, world.bank, 'admin');
    const cookies = (await context.cookies()).filter(({ name }) => name.startsWith('bank_'));
    expect(cookies).toEqual([expect.objectContaining({ name: 'bank_session', httpOnly: true, sameSite: 'Lax', path: '/' })]);
    expect(await page.evaluate('document.cookie')).toBe('');
  });

  it('an answer of the issuer to nobody is a page that says what to do', async () => {
    const { page } = await open();
    await page.goto(`${world.bank.base_urls[0]}/admin/login`);
    await page.getByRole('button', { name: 'Sign in' }).click();
    await page.getByLabel('User name').waitFor();
    await page.goto(`${world.bank.base_urls[0]}/admin/callback?code=made-up&state=made-up&iss=${encodeURIComponent(world.bank.issuer)}`);
    expect(await heading(page)).toBe('Sign-in did not work');
    await page.getByRole('button', { name: 'Sign in' }).click();
    await page.getByLabel('User name').waitFor();
  });

  it.each([
    ['admin', ['Home', 'Clients', 'Accounts', 'Books', 'Operations', 'API keys', 'Audit']],
    ['officer', ['Home', 'Clients', 'Accounts']],
    ['auditor', ['Home', 'Clients', 'Accounts', 'Books', 'Operations', 'Audit']],
  ])('%s sees what their scopes allow', async (user, sections) => {
    const window = await open();
    await signIn(window.page, world.bank, user);
    await look(window.page, `home-${user}`);
    expect(await window.page.getByRole('navigation', { name: 'Sections' }).getByRole('link').allInnerTexts()).toEqual(sections);
    fresh(window);
    if (user !== 'admin') {
      await window.page.goto(`${world.bank.base_urls[0]}/admin/ui/api-keys/new`);
      expect(await heading(window.page)).toBe('You may not do this');
    }
  });
});

describeInBrowser('sign-out', () => {
  it('ends the session on every gateway within 2 s, for a copied cookie too', async () => {
    const window = await open();
    const { page, context } = window;
    await signIn(page, world.bank, 'auditor');
    const cookie = (await context.cookies()).map(({ name, value }) => `${name}=${value}`).join('; ');
    expect([await statusOfCopy(cookie, 0), await statusOfCopy(cookie, 1)]).toEqual([200, 200]);
    await page.getByRole('button', { name: 'Sign out' }).click();
    await page.getByText('You are signed out.').waitFor();
    expect(await statusOfCopy(cookie, 0)).toBe(303);
    await eventually(async () => (await statusOfCopy(cookie, 1)) === 303, 2000);
    await page.goto(`${world.bank.base_urls[1]}/admin/ui`);
    expect(await heading(page)).toBe('Sign in');
    fresh(window);
  });

  it('a gateway that starts later knows it as well', async () => {
    const { page, context } = await open();
    await signIn(page, world.bank, 'auditor');
    const cookie = (await context.cookies()).map(({ name, value }) => `${name}=${value}`).join('; ');
    await page.getByRole('button', { name: 'Sign out' }).click();
    await page.getByText('You are signed out.').waitFor();
    await world.bank.process('gateway-2').restart();
    expect(await statusOfCopy(cookie, 1)).toBe(303);
  });
});

describeInBrowser('API keys', () => {
  it('are created, shown once, copied, used, rotated and revoked; a revoked one is refused on every gateway within 2 s', async () => {
    const window = await open();
    const { page } = window;
    await signIn(page, world.bank, 'admin');
    const apiKey = await createKey(page, 'Reporting <b>tool</b>');
    expect(apiKey).toMatch(/^cbk_test_/);
    await look(page, 'key-shown-once');
    await page.getByRole('button', { name: 'Copy' }).click();
    await page.getByText('Copied.').waitFor();
    expect(await page.evaluate('navigator.clipboard.readText()')).toBe(apiKey);
    await eventually(async () => (await statusWith(apiKey, 0)) === 200 && (await statusWith(apiKey, 1)) === 200, 2000);

    await page.getByRole('button', { name: 'I have copied it' }).click();
    expect(await page.content()).not.toContain(apiKey);
    await page.getByRole('link', { name: 'Rotate Reporting <b>tool</b>' }).click();
    await look(page, 'key-rotation');
    await expectAccessible(page);
    await page.getByRole('button', { name: 'Rotate' }).click();
    const rotated = await page.getByLabel('API key', { exact: true }).inputValue();
    expect(rotated).not.toBe(apiKey);
    await eventually(async () => (await statusWith(rotated, 1)) === 200 && (await statusWith(apiKey, 1)) === 200, 2000);

    await page.getByRole('button', { name: 'I have copied it' }).click();
    await look(page, 'keys');
    await page.getByRole('link', { name: /^Revoke Reporting/ }).first().click();
    await look(page, 'key-revocation');
    await expectAccessible(page);
    await page.getByRole('button', { name: 'Revoke the key' }).click();
    await page.getByText('The key is revoked').waitFor();
    await eventually(async () => (await statusWith(rotated, 0)) === 401 && (await statusWith(rotated, 1)) === 401, 2000);
    fresh(window);
  });

  it('a form that is sent again makes no second key', async () => {
    const window = await open();
    const { page } = window;
    await signIn(page, world.bank, 'admin');
    await createKey(page, 'Sent twice');
    await page.reload();
    await page.getByText('This key was made before').waitFor();
    const { data } = await (await fetch(`${world.bank.base_urls[0]}/admin/api-keys?limit=500`, { headers: { 'x-api-key': world.bank.api_key } })).json() as { data: { name: string }[] };
    expect(data.filter(({ name }) => name === 'Sent twice')).toHaveLength(1);
    fresh(window);
  });

  it('what is wrong is said at its field, and what was entered stays', async () => {
    const { page } = await open();
    await signIn(page, world.bank, 'admin');
    await page.goto(`${world.bank.base_urls[0]}/admin/ui/api-keys/new`);
    await page.getByLabel('Name').fill('No scopes');
    await page.getByLabel('Expires').fill('2020-01-01');
    await page.getByRole('button', { name: 'Create', exact: true }).click();
    await page.getByText('Some entries were not taken').waitFor();
    await look(page, 'key-form-wrong');
    expect(await page.getByLabel('Name').inputValue()).toBe('No scopes');
    await expectAccessible(page);
  });
});

describeInBrowser.each(Object.keys(widths) as (keyof typeof widths)[])('every page at the width of a %s', (size) => {
  const pages = { home: '/admin/ui', keys: '/admin/ui/api-keys', 'key-form': '/admin/ui/api-keys/new', audit: '/admin/ui/audit', books: '/admin/ui/books', operations: '/admin/ui/operations', 'not-found': '/admin/ui/nothing' };

  it.each([false, true])('is accessible, quiet and no wider than the window (dark: %s)', async (dark) => {
    const account = await world.api.newAccount({ initial_deposit: 1234.5 });
    expect(account.balance).toBe(1234.5);
    await world.api.post('/admin/api-keys', { name: 'Partner bank, nightly statements', scopes: [...scopes] });
    const window = await open({ size, dark });
    const { page, complaints } = window;
    await signIn(page, world.bank, 'admin');
    for (const [name, path] of Object.entries(pages)) {
      await page.goto(`${world.bank.base_urls[0]}${path}`);
      await look(page, `${name}-${size}${dark ? '-dark' : ''}`);
      await expectAccessible(page);
      await expectNoSidewaysScroll(page);
    }
    // The browser itself notes the 404 that was asked for.
    expect(complaints.filter((text) => !text.includes('404'))).toEqual([]);
  });
});

describeInBrowser('audit and books', () => {
  it('the audit shows what was just done, and narrows by a click', async () => {
    const window = await open();
    const { page } = window;
    await signIn(page, world.bank, 'admin');
    await createKey(page, 'For the audit');
    await page.getByRole('link', { name: 'Audit' }).click();
    await page.getByRole('link', { name: 'create_api_key' }).first().click();
    await page.waitForURL('**/admin/ui/audit?action=create_api_key');
    expect(new Set(await page.locator('tbody td:nth-child(3) a').allInnerTexts())).toEqual(new Set(['create_api_key']));
    await page.getByLabel('To (day)').fill('2020-01-01');
    await page.getByRole('button', { name: 'Filter' }).click();
    await page.getByText('No record fits.').waitFor();
    fresh(window);
  });

  it('the books balance, with every digit of the Vault', async () => {
    await world.api.newAccount({ initial_deposit: 1000.25 });
    const { page } = await open();
    await signIn(page, world.bank, 'auditor');
    await page.getByRole('link', { name: 'Books', exact: true }).first().click();
    await page.getByText('The books balance').waitFor();
    const { data } = await (await fetch(`${world.bank.base_urls[0]}/admin/system-accounts`, { headers: { 'x-api-key': world.bank.api_key } })).json() as { data: { account_number: string; balance: number }[] };
    const vault = data.find(({ account_number }) => account_number === 'VLT-USD');
    const row = await page.getByRole('row', { name: /VLT-USD/ }).innerText();
    expect(row.replaceAll('\u00a0', '')).toContain(vault?.balance.toFixed(2));
  });

  it('the books are verified on demand', async () => {
    const window = await open();
    const { page } = window;
    await signIn(page, world.bank, 'auditor');
    await page.goto(`${world.bank.base_urls[0]}/admin/ui/books`);
    await page.getByRole('button', { name: 'Check every entry now' }).click();
    await eventually(async () => {
      await page.goto(`${world.bank.base_urls[0]}/admin/ui/books`);
      return await page.getByText('Every rule of the books holds.').isVisible();
    });
    await look(page, 'books-verified');
    await expectAccessible(page);
    fresh(window);
  });

  it('the books refresh themselves; signed out meanwhile, the whole page goes to the sign-in page', async () => {
    const window = await open();
    const { page, context } = window;
    await signIn(page, world.bank, 'auditor');
    await page.goto(`${world.bank.base_urls[0]}/admin/ui/books`);
    await world.api.newAccount({ currency: 'KES', initial_deposit: 7 });
    await page.evaluate("htmx.trigger('#books', 'refresh')");
    await page.getByRole('row', { name: /VLT-KES Vault 7.00/ }).waitFor();
    await context.clearCookies();
    await page.evaluate("htmx.trigger('#books', 'refresh')");
    await page.waitForURL('**/admin/login');
    fresh(window);
  });

  it('operations shows what answers, and goes on when a service is away', async () => {
    const window = await open();
    const { page } = window;
    await signIn(page, world.bank, 'auditor');
    await page.goto(`${world.bank.base_urls[0]}/admin/ui/operations`);
    await page.getByRole('row', { name: /ledger yes closed/ }).waitFor();
    await page.getByText('None is open.').waitFor();
    await page.getByText(/^\d+, \d+\.\d a second$/).waitFor();
    await world.bank.process('accounts').stop();
    await page.goto(`${world.bank.base_urls[0]}/admin/ui/operations`);
    await page.getByRole('row', { name: /accounts no/ }).waitFor();
    await page.getByRole('row', { name: /ledger yes closed/ }).waitFor();
    await world.bank.process('accounts').restart();
    fresh(window);
  });
});
