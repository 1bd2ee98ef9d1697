import { existsSync, readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { chromium, type Browser, type BrowserContext, type Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect } from 'vitest';
import type { Bank } from './bank.ts';

/** Chromium with the dashboard in it: the one that CHROMIUM names, or where systems have theirs. */
const places = ['/usr/bin/chromium', '/usr/bin/chromium-browser', '/usr/bin/google-chrome', '/Applications/Google Chrome.app/Contents/MacOS/Google Chrome'];
const executablePath = process.env['CHROMIUM'] ?? places.find((place) => existsSync(place));
const missing = 'there is no Chromium: install it (Debian: apt-get install chromium), or name one in CHROMIUM';
if (executablePath === undefined && process.env['CI_STRICT'] === '1') throw new Error(missing);
if (executablePath === undefined) console.warn(`The dashboard's tests in a browser are skipped: ${missing}.`);

/** `describe` for what needs a browser: skipped, with the reason printed, where none is; a failure with CI_STRICT=1. */
export const describeInBrowser = describe.skipIf(executablePath === undefined);

const axe = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');

export const widths = { phone: { width: 375, height: 800 }, desk: { width: 1440, height: 900 } } as const;

/** One person's browser window, and what must not happen in it. */
export interface Window {
  page: Page;
  context: BrowserContext;
  /** Errors of the console and of scripts, and requests to other places than the bank and its issuer. */
  complaints: string[];
}

export interface BrowserWorld {
  /** A window without cookies. `allowed`: the only places that its requests may go to. */
  open(allowed: readonly string[], options?: { size?: keyof typeof widths; dark?: boolean }): Promise<Window>;
}

/** One browser for all tests of a file. */
export function useBrowser(): BrowserWorld {
  let browser: Browser | undefined;
  beforeAll(async () => {
    browser = await chromium.launch({ ...(executablePath === undefined ? {} : { executablePath }), args: ['--no-sandbox'] });
  });
  afterAll(() => browser?.close());
  return {
    async open(allowed, { size = 'desk', dark = false } = {}) {
      if (!browser) throw new Error('the browser does not run yet');
      const context = await browser.newContext({ viewport: widths[size], colorScheme: dark ? 'dark' : 'light', permissions: ['clipboard-read', 'clipboard-write'] });
      context.setDefaultTimeout(15_000);
      const page = await context.newPage();
      const complaints: string[] = [];
      page.on('console', (message) => void (message.type() === 'error' && complaints.push(message.text())));
      page.on('pageerror', (error) => void complaints.push(error.message));
      page.on('request', (request) => void (!isAllowed(request.url(), allowed) && complaints.push(`a request to ${request.url()}`)));
      return { page, context, complaints };
    },
  };
}

const isAllowed = (url: string, allowed: readonly string[]) => url.startsWith('data:') || allowed.includes(new URL(url).origin);

/** From the page that asks for it to the dashboard's first page, through the issuer's own form. */
export async function signIn(page: Page, bank: Bank, user: string, baseUrl = bank.base_urls[0] ?? ''): Promise<void> {
  await page.goto(`${baseUrl}/admin`);
  await page.getByRole('button', { name: 'Sign in' }).click();
  await page.getByLabel('User name').fill(user);
  await page.getByLabel('Password', { exact: true }).fill(process.env['TEST_USER_PASSWORD'] ?? '');
  await page.getByRole('button', { name: 'Sign in' }).click();
  await page.waitForURL(`${baseUrl}/admin/ui**`);
}

type Violation = { id: string; impact: string | null; nodes: { html: string; failureSummary?: string }[] };

/** axe-core finds nothing serious or critical on the page. */
export async function expectAccessible(page: Page): Promise<void> {
  // Evaluated by the debugger, which the page's content policy does not hold back.
  await page.evaluate(`(() => { ${axe} })()`);
  const violations = await page.evaluate<Violation[]>('axe.run(document).then(({ violations }) => violations)');
  const serious = violations.filter(({ impact }) => impact === 'serious' || impact === 'critical');
  expect(serious.map(({ id, nodes }) => `${id}: ${nodes.map((node) => `${node.html} ${node.failureSummary ?? ''}`).join(' | ')}`)).toEqual([]);
}

/** Nothing is wider than the window: what is, scrolls by itself. */
export async function expectNoSidewaysScroll(page: Page): Promise<void> {
  expect(await page.evaluate('document.documentElement.scrollWidth - document.documentElement.clientWidth')).toBe(0);
}
