import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { BrowserContext } from 'playwright-core';
import { describe, expect, it } from 'vitest';
import type { AuditRecord } from '#libs/contracts/audit.ts';
import { type Dashboard, enterPassword, expectFine, heading, look, signIn, signOut } from '../support/browser.ts';
import { createAuthority } from '../support/certificates.ts';
import { startTlsFront } from '../support/tls-front.ts';
import { eventually } from '../support/world.ts';

const cookieHeader = async (context: BrowserContext) =>
  (await context.cookies()).map(({ name, value }) => `${name}=${value}`).join('; ');

export function testSignIn({ world, ui, open, as }: Dashboard): void {
  describe('sign-in', () => {
    it('leads from any page to the issuer and back to that page; neither scripts nor other sites get the session’s cookie', async () => {
      const { page, context, complaints } = await open();
      await page.goto(ui('/api-keys'));
      await page.getByLabel('User name').waitFor();
      await look(page, 'issuer');
      await enterPassword(page, 'admin');
      await page.waitForURL('**/admin/ui/api-keys');
      expect(await heading(page)).toBe('API keys');
      const cookies = (await context.cookies()).filter(({ name }) => name.startsWith('bank_'));
      expect(cookies).toEqual([
        expect.objectContaining({ name: 'bank_session', httpOnly: true, sameSite: 'Lax', path: '/' }),
      ]);
      expect(await page.evaluate('document.cookie')).toBe('');
      expect(complaints).toEqual([]);
    });

    it('a response of the issuer to a sign-in that was not started shows instructions, and is audited', async () => {
      const { page } = await open();
      const answer = await page.goto(
        `${world.bank.dashboard_urls[0]}/admin/callback?code=made-up&state=made-up&iss=${encodeURIComponent(world.bank.issuer)}`,
      );
      expect(await heading(page)).toBe('Sign-in did not work');
      const request_id = answer?.headers()['x-request-id'] ?? '';
      const record = await eventually(
        async () => (await world.api.all<AuditRecord>(`/admin/audit?request_id=${request_id}`))[0],
      );
      expect(record).toMatchObject({
        actor: 'unauthenticated',
        action: 'sign_in',
        outcome: 'invalid_credentials',
        address: '127.0.0.1',
      });
      await page.getByRole('button', { name: 'Sign in' }).click();
      await page.getByLabel('User name').waitFor();
    });

    it.each([
      [
        'admin',
        [
          'Home',
          'Counter',
          'Clients',
          'Accounts',
          'Transactions',
          'Books',
          'Tills',
          'Approvals',
          'Audit',
          'Operations',
          'API keys',
          'Webhooks',
        ],
      ],
      ['officer', ['Home', 'Counter', 'Clients', 'Accounts', 'Transactions', 'Approvals']],
      [
        'manager',
        [
          'Home',
          'Counter',
          'Clients',
          'Accounts',
          'Transactions',
          'Books',
          'Tills',
          'Approvals',
          'Audit',
          'Operations',
          'API keys',
        ],
      ],
      [
        'auditor',
        ['Home', 'Clients', 'Accounts', 'Transactions', 'Books', 'Tills', 'Approvals', 'Audit', 'Operations'],
      ],
    ] as const)('%s sees what their scopes allow', async (user, sections) => {
      const { page, complaints } = await as(user);
      await page.goto(ui(''));
      await look(page, `home-${user}`);
      expect(await page.getByRole('navigation', { name: 'Sections' }).getByRole('link').allInnerTexts()).toEqual(
        sections,
      );
      // On a screen of 1024 pixels each section is one line, and so is the header.
      await page.setViewportSize({ width: 1024, height: 768 });
      const heights = await page
        .locator('header, nav[aria-label="Sections"] a')
        .evaluateAll((all) => all.map((one) => one.clientHeight));
      expect(heights.length).toBe(sections.length + 1);
      expect(Math.max(...heights)).toBeLessThan(60);
      // On a phone there are four of them at its bottom, and all in a menu.
      await page.setViewportSize({ width: 375, height: 800 });
      expect(await page.getByRole('navigation', { name: 'Most used' }).getByRole('link').count()).toBe(4);
      const last = page.getByRole('navigation', { name: 'Sections' }).getByRole('link', { name: sections.at(-1) });
      expect(await last.isVisible()).toBe(false);
      await page.locator('summary', { hasText: 'Menu' }).click();
      await last.waitFor();
      await page.setViewportSize({ width: 1440, height: 900 });
      expect(complaints).toEqual([]);
      if (user === 'admin' || user === 'manager') return;
      await page.goto(ui('/api-keys/new'));
      expect(await heading(page)).toBe('You may not do this');
      const refused = await eventually(async () =>
        (await world.api.all<AuditRecord>('/admin/audit?action=page:api-keys/new')).find(({ actor }) =>
          actor.endsWith(`|${user}`),
        ),
      );
      expect(refused.outcome).toBe('insufficient_scope');
    });
  });
}

/** These tests come last, because they end sessions and gateways. */
export function testSignOut({ world, open }: Dashboard): void {
  const front = () => world.bank.dashboard_urls[0] ?? '';

  /** Returns the status of a page of the dashboard for a copied cookie, without following redirects. */
  const statusOfCopy = async (cookie: string, dashboard: number): Promise<number> =>
    (await fetch(`${world.bank.dashboard_urls[dashboard]}/admin/ui`, { headers: { cookie }, redirect: 'manual' }))
      .status;

  describe('sign-out', () => {
    it('ends the session on every gateway within 2 s, also for a copied cookie and on a gateway that starts later; sign-in and sign-out are audited', async () => {
      const { page, context, complaints } = await open();
      await signIn(page, front(), 'auditor');
      const cookie = await cookieHeader(context);
      expect([await statusOfCopy(cookie, 0), await statusOfCopy(cookie, 1)]).toEqual([200, 200]);
      const tab = await context.newPage();
      await tab.goto(`${front()}/admin/ui`);
      await signOut(page);
      // The policy of the page does not let a search be redirected to the issuer.
      await tab.locator('.bar [type=search]').fill('ada');
      await tab.keyboard.press('Enter');
      await tab.getByText('Your session has ended').waitFor();
      await tab.keyboard.press('Enter');
      await tab.waitForURL((url) => !url.href.startsWith(front()));
      await tab.close();
      // Nobody is signed in again without asking for it.
      await page.getByText('You are signed out.').waitFor();
      await expectFine(page, 'signed-out');
      expect(await statusOfCopy(cookie, 0)).toBe(303);
      await eventually(async () => (await statusOfCopy(cookie, 1)) === 303, 2000);
      expect(complaints).toEqual([]);
      const [out] = await eventually(async () => {
        const found = await world.api.all<AuditRecord>('/admin/audit?action=sign_out');
        return found.length > 0 && found;
      });
      expect(out).toMatchObject({
        actor: `jwt:${world.bank.issuer}|auditor`,
        outcome: 'success',
        address: '127.0.0.1',
      });
      const session = await world.api.all<AuditRecord>(`/admin/audit?resource_id=${out?.resource_id}`);
      expect(session.map(({ action }) => action)).toEqual(['sign_out', 'sign_in']);
      await world.bank.process('gateway-2').restart();
      expect(await statusOfCopy(cookie, 1)).toBe(303);
    });
  });

  describe('the end of a session', () => {
    it('is announced while somebody looks on, and can be put off; another tab’s use counts; nothing entered is lost', async () => {
      const { page, context, complaints } = await open();
      await signIn(page, front(), 'officer');
      await page.clock.install();
      await page.goto(`${front()}/admin/ui/clients/new`);
      const warning = page.getByRole('dialog', { name: 'Your session' });
      await page.clock.fastForward('24:00');
      expect(await warning.count()).toBe(0);
      await page.clock.fastForward('01:30');
      await warning.getByText('ends in 5 minutes').or(warning.getByText('ends in 4 minutes')).waitFor();
      await expectFine(page, 'session-end');
      expect(await warning.locator(':focus').innerText()).toBe('Stay signed in');
      await page.keyboard.press('Enter');
      await warning.waitFor({ state: 'hidden' });
      // A second tab of the same browser is used after 25 minutes more.
      await page.clock.fastForward('24:00');
      const tab = await context.newPage();
      await tab.clock.install({ time: await page.evaluate<number>('Date.now()') });
      await tab.goto(`${front()}/admin/ui`);
      await page.clock.fastForward('10:00');
      expect(await warning.count()).toBe(0);
      await tab.close();
      // Somebody who types is there.
      await page.clock.fastForward('14:50');
      await page.locator('main').getByLabel('First name').pressSequentially('Kept');
      const asked = page.waitForResponse('**/admin/ui/session');
      await page.clock.fastForward('00:30');
      await asked;
      expect(await warning.count()).toBe(0);
      // Closing the warning does not say so.
      await page.clock.fastForward('26:00');
      await warning.waitFor();
      await warning.getByRole('button', { name: 'Close' }).click();
      await page.clock.fastForward('00:10');
      await page.clock.fastForward('04:30');
      await warning.getByText('Your session has ended. What you have entered').waitFor();
      await expectFine(page, 'session-ended');
      await page.keyboard.press('Escape');
      expect(await page.locator('main').getByLabel('First name').inputValue()).toBe('Kept');
      // As if the browser had kept this page while the session was used on others: no event says so.
      await page.evaluate(
        `localStorage.setItem('session-end', JSON.stringify({ idle: Date.now() + 40_000, most: Date.now() + 9e6 }))`,
      );
      await page.clock.fastForward('00:05');
      await warning.getByText('ends in less than a minute').waitFor();
      // What is said with the dialog is the text that is shown.
      const told = await warning.ariaSnapshot();
      expect(told).toContain('Nothing has been done');
      expect(await warning.getAttribute('aria-describedby')).toBe('session-end-text');
      expect(complaints).toEqual([]);
    });

    it('in spite of use is announced once, not on each page', async () => {
      const { page, complaints } = await open();
      await signIn(page, front(), 'officer');
      await page.clock.install();
      // The token of this session lasts for four more minutes.
      await page.route('**/admin/ui/clients', async (route) => {
        const response = await route.fetch();
        const body = (await response.text()).replace(/data-most-ms="\d+"/, 'data-most-ms="240000"');
        await route.fulfill({ response, body });
      });
      const warning = page.getByRole('dialog', { name: 'Your session' });
      await page.goto(`${front()}/admin/ui/clients`);
      await page.clock.fastForward('00:10');
      await warning.getByText('You must sign in again in 4 minutes').waitFor();
      await page.keyboard.press('Escape');
      await page.goto(`${front()}/admin/ui/clients`);
      await page.clock.fastForward('00:10');
      expect(await warning.count()).toBe(0);
      expect(complaints).toEqual([]);
    });
  });

  describe('a form that is sent when its session has ended', () => {
    it('is shown again after the sign-in, and sent with one key', async () => {
      const { page, context, complaints } = await open();
      await signIn(page, front(), 'officer');
      const cookie = await cookieHeader(context);
      await page.goto(`${front()}/admin/ui/clients/new`);
      for (const [label, text] of [
        ['First name', 'Kept'],
        ['Last name', 'Form'],
        ['E-mail', 'kept@form.example'],
        ['Phone', '+254 700 123 987'],
      ] as const)
        await page.locator('main').getByLabel(label).first().fill(text);
      // Signing in elsewhere ends the session here.
      const elsewhere = await open();
      await signIn(elsewhere.page, front(), 'officer');
      await eventually(async () => (await statusOfCopy(cookie, 0)) === 303);
      await page.keyboard.press('Enter');
      await page.getByText('the form is kept').waitFor();
      await expectFine(page, 'sign-in');
      await page.getByRole('button', { name: 'Sign in' }).focus();
      await page.keyboard.press('Enter');
      await page.getByLabel('User name').waitFor();
      await enterPassword(page, 'officer');
      await page.getByText('Nothing has been done yet.').waitFor();
      expect(await heading(page)).toBe('Your form');
      await expectFine(page, 'kept-form');
      await page.getByRole('button', { name: 'Send it now' }).focus();
      await page.keyboard.press('Enter');
      await page.getByText('The client was created.').waitFor();
      expect(await heading(page)).toBe('Kept Form');
      expect(complaints).toEqual([]);
    });
  });

  describe('behind a public URL with TLS', () => {
    it('people sign in, send forms, and sign out; the cookie is only for that host', async () => {
      const publicUrl = process.env['TEST_PUBLIC_URL'] ?? '';
      const dir = mkdtempSync(join(tmpdir(), 'core-banking-front-'));
      const dashboard = world.bank.process('dashboard-2');
      await dashboard.startWith({ PUBLIC_URL: publicUrl });
      const stop = await startTlsFront({
        port: Number(new URL(publicUrl).port),
        target: world.bank.dashboard_urls[1] ?? '',
        ...createAuthority(dir).sign('front', ['DNS:bank.localhost']),
      });
      try {
        await eventually(async () => (await fetch(dashboard.health_url)).ok);
        const { page, context, complaints } = await open([publicUrl]);
        await signIn(page, publicUrl, 'auditor');
        const cookies = (await context.cookies()).filter(({ name }) => name.includes('bank_'));
        expect(cookies).toEqual([
          expect.objectContaining({
            name: '__Host-bank_session',
            domain: 'bank.localhost',
            path: '/',
            secure: true,
            httpOnly: true,
            sameSite: 'Lax',
          }),
        ]);
        const answer = await page.goto(`${publicUrl}/admin/ui/books`);
        expect(answer?.headers()['strict-transport-security']).toContain('max-age=');
        await page.getByRole('button', { name: 'Check every entry now' }).click();
        await page.waitForURL(`${publicUrl}/admin/ui/books`);
        await signOut(page);
        await page.getByText('You are signed out.').waitFor();
        expect((await context.cookies()).filter(({ name }) => name.includes('bank_'))).toEqual([]);
        expect(complaints).toEqual([]);
      } finally {
        await stop();
        rmSync(dir, { recursive: true });
      }
    });
  });
}
