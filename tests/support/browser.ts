import { existsSync, mkdirSync, readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { type Browser, type BrowserContext, chromium, type Page } from 'playwright-core';
import { afterAll, afterEach, beforeAll, describe, expect } from 'vitest';
import type { World } from './world.ts';

/**
 * Chromium for the dashboard: the path in CHROMIUM, or a usual location. In headless mode it needs about half of the
 * CPU time.
 */
const places = [
  '/usr/bin/chromium-headless-shell',
  '/usr/bin/chromium',
  '/usr/bin/chromium-browser',
  '/usr/bin/google-chrome',
  '/Applications/Google Chrome.app/Contents/MacOS/Google Chrome',
];
const executablePath = process.env['CHROMIUM'] ?? places.find((place) => existsSync(place));
const missing =
  'there is no Chromium: install it (Debian: apt-get install chromium-headless-shell), or name one in CHROMIUM';
if (executablePath === undefined && process.env['CI_STRICT'] === '1') throw new Error(missing);
if (executablePath === undefined) console.warn(`The dashboard's tests in a browser are skipped: ${missing}.`);

/** `describe` for tests that need a browser. Without one, they are skipped with a message, or fail with CI_STRICT=1. */
export const describeInBrowser = describe.skipIf(executablePath === undefined);

const axe = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');

const sizes = { phone: { width: 375, height: 800 }, desk: { width: 1440, height: 900 } } as const;

type Size = keyof typeof sizes;

/** One person's browser window, which records errors. It is closed after the test. */
interface Window {
  page: Page;
  context: BrowserContext;
  /**
   * Errors of the console and of scripts, and requests to servers other than the bank and its
   * issuer.
   */
  complaints: string[];
}

export interface Dashboard {
  world: World;
  /** Returns the address of a page below /admin/ui. */
  ui(path: string, dashboard?: number): string;
  /**
   * Opens a window without a session. `origins`: servers to which its requests may go, besides the bank and its issuer.
   */
  open(origins?: readonly string[]): Promise<Window>;
  /** Opens a window of a signed-in person. Each person signs in once and has one session in all windows. */
  as(user: 'admin' | 'officer' | 'auditor' | 'manager', size?: Size): Promise<Window>;
}

/** One browser for all tests of a file, with its bank. */
export function useDashboard(world: World): Dashboard {
  let browser: Browser | undefined;
  const contexts: BrowserContext[] = [];
  const sessions = new Map<string, Awaited<ReturnType<BrowserContext['cookies']>>>();
  beforeAll(async () => {
    seen.clear();
    browser = await chromium.launch({
      ...(executablePath === undefined ? {} : { executablePath }),
      args: ['--no-sandbox'],
    });
  });
  afterEach(async () => {
    await Promise.all(contexts.splice(0).map((context) => context.close()));
  });
  afterAll(() => browser?.close());
  const open = async (origins: readonly string[] = []): Promise<Window> => {
    if (!browser) throw new Error('the browser does not run yet');
    const allowed = [
      ...[...world.bank.dashboard_urls, world.bank.issuer].map((url) => new URL(url).origin),
      ...origins,
    ];
    const context = await browser.newContext({
      viewport: sizes.desk,
      reducedMotion: 'reduce',
      permissions: ['clipboard-read', 'clipboard-write'],
      ignoreHTTPSErrors: origins.length > 0,
    });
    contexts.push(context);
    context.setDefaultTimeout(30_000);
    const page = await context.newPage();
    const complaints: string[] = [];
    // Chromium repeats requests when a network interface, such as a container's, appears or disappears.
    const isOurs = (text: string) => !text.includes('ERR_NETWORK_CHANGED');
    page.on(
      'console',
      (message) => void (message.type() === 'error' && isOurs(message.text()) && complaints.push(message.text())),
    );
    page.on('pageerror', (error) => void complaints.push(error.message));
    page.on(
      'request',
      (request) => void (!isAllowed(request.url(), allowed) && complaints.push(`a request to ${request.url()}`)),
    );
    return { page, context, complaints };
  };
  return {
    world,
    ui: (path, dashboard = 0) => `${world.bank.dashboard_urls[dashboard]}/admin/ui${path}`,
    open,
    async as(user, size = 'desk') {
      const window = await open();
      await window.page.setViewportSize(sizes[size]);
      const known = sessions.get(user);
      if (known) await window.context.addCookies(known);
      else await signIn(window.page, `${world.bank.dashboard_urls[0]}`, user);
      if (!known)
        sessions.set(
          user,
          (await window.context.cookies()).filter(({ name }) => name === 'bank_session'),
        );
      return window;
    },
  };
}

const isAllowed = (url: string, allowed: readonly string[]) =>
  url.startsWith('data:') || allowed.includes(new URL(url).origin);

export async function enterPassword(page: Page, user: string): Promise<void> {
  await page.getByLabel('User name').fill(user);
  await page.getByLabel('Password', { exact: true }).fill(process.env['TEST_USER_PASSWORD'] ?? '');
  await page.keyboard.press('Enter');
}

/** Signs in through the issuer's own form, from the page that redirects to it to the first page of the dashboard. */
export async function signIn(page: Page, baseUrl: string, user: string): Promise<void> {
  await page.goto(`${baseUrl}/admin`);
  await enterPassword(page, user);
  await page.waitForURL(`${baseUrl}/admin/ui**`);
}

/** Signs out by the menu of the person. */
export async function signOut(page: Page): Promise<void> {
  await page.locator('header .user > summary').click();
  await page.getByRole('button', { name: 'Sign out' }).click();
}

export const heading = (page: Page): Promise<string> => page.getByRole('heading', { level: 1 }).innerText();

/** Returns text with amounts without the spaces that group their digits. */
export const plain = (text: string): string => text.replaceAll('\u00a0', '');

const shots = process.env['SCREENSHOTS'];
/** Stores a picture of the page if a folder for them is given. */
export async function look(page: Page, name: string): Promise<void> {
  if (!shots) return;
  mkdirSync(shots, { recursive: true });
  await page.screenshot({ path: join(shots, `${name}.png`), fullPage: true });
}

type Violation = { id: string; impact: string | null; nodes: { html: string; failureSummary?: string }[] };

/**
 * Expects that axe-core finds nothing serious or critical on the page, by these rules (default:
 * all).
 */
async function expectAccessible(page: Page, rules?: string[]): Promise<void> {
  // Evaluated by the debugger, which the page's content security policy does not block.
  if (!(await page.evaluate<boolean>('"axe" in window'))) await page.evaluate(axe);
  const options = JSON.stringify({ resultTypes: ['violations'], preload: false, ...(rules && { runOnly: rules }) });
  const violations = await page.evaluate<Violation[]>(
    `axe.run(document, ${options}).then(({ violations }) => violations)`,
  );
  const serious = violations.filter(({ impact }) => impact === 'serious' || impact === 'critical');
  expect(
    serious.map(
      ({ id, nodes }) => `${id}: ${nodes.map((node) => `${node.html} ${node.failureSummary ?? ''}`).join(' | ')}`,
    ),
  ).toEqual([]);
}

/** Expects that nothing is wider than the window, except elements that scroll themselves. */
async function expectNoSidewaysScroll(page: Page): Promise<void> {
  expect(
    await page.evaluate('document.documentElement.scrollWidth - document.documentElement.clientWidth'),
    page.url(),
  ).toBe(0);
}

/** The rules whose result depends on the size and the theme. */
const looks = ['color-contrast', 'link-in-text-block', 'scrollable-region-focusable', 'target-size'];

/** The names of the pages that this file has checked. A test that runs in several ways checks its pages once. */
const seen = new Set<string>();

/** If true, tasks are done, and pages are checked, in every combination of hand, size, and theme. */
export const isEveryWay = process.env['EVERY_WAY'] === '1';

/** Every look of a page: its size, its theme, and the rules of accessibility that depend on them, or all. */
const appearances = [
  ['desk', 'light', undefined],
  ['phone', 'dark', looks],
  ['desk', 'dark', looks],
  ['phone', 'light', looks],
] as const;
export const looksOfPages = appearances.map(([size, colorScheme]) => [size, colorScheme] as const);

/**
 * Expects that the page is accessible and no wider than the window: in both sizes and both themes, each once, or in all
 * four combinations.
 */
export async function expectFine(page: Page, name: string): Promise<void> {
  if (seen.has(name)) return;
  seen.add(name);
  const before = page.viewportSize() ?? sizes.desk;
  for (const [size, colorScheme, rules] of appearances.slice(0, isEveryWay ? 4 : 2)) {
    await page.setViewportSize(sizes[size]);
    await page.emulateMedia({ colorScheme });
    await look(page, `${name}-${size}-${colorScheme}`);
    await expectNoSidewaysScroll(page);
    await expectAccessible(page, rules && [...rules]);
  }
  await page.setViewportSize(before);
  await page.emulateMedia({ colorScheme: 'light' });
}
