import { existsSync } from 'node:fs';
import { chromium, type Page } from 'playwright-core';
import { type Check, expect } from './check.ts';

const places = [
  '/usr/bin/chromium',
  '/usr/bin/chromium-browser',
  '/usr/bin/google-chrome',
  '/Applications/Google Chrome.app/Contents/MacOS/Google Chrome',
];

/** Runs a step with a page of a browser, or reports it as skipped if there is no browser. */
export async function inBrowser(check: Check, title: string, use: (page: Page) => Promise<void>): Promise<void> {
  const executablePath = process.env['CHROMIUM'] ?? places.find((place) => existsSync(place));
  if (executablePath === undefined) return check.skip(title, 'Chromium was not found; set CHROMIUM to its path');
  await check.step(title, async () => {
    const browser = await chromium.launch({ executablePath, args: ['--no-sandbox'] });
    try {
      const page = await browser.newPage();
      page.setDefaultTimeout(90_000);
      await use(page);
    } finally {
      await browser.close();
    }
  });
}

/**
 * Signs in to the dashboard with a browser. The identity provider has a single host name, which only a browser resolves
 * to this machine.
 */
export async function signIn(
  check: Check,
  { dashboardUrl, issuer, password }: { dashboardUrl: string; issuer: string; password: string },
): Promise<void> {
  await inBrowser(check, 'a person signs in to the dashboard', async (page) => {
    await page.goto(`${dashboardUrl}/admin`);
    await page.waitForURL(`${issuer}/**`);
    await page.getByLabel('User name').fill('admin');
    await page.getByLabel('Password', { exact: true }).fill(password);
    await page.getByRole('button', { name: 'Sign in' }).click();
    await page.waitForURL(`${dashboardUrl}/admin/ui**`);
    expect((await page.content()).includes('Alex Admin'), 'the page does not say who is signed in');
  });
}
