import type { Page } from 'playwright-core';
import { plain } from '../support/browser.ts';

/** Keys as a clerk presses them, from where the page has put the focus, which it does with its first frame. */
export async function type(page: Page, ...keys: string[]): Promise<void> {
  await page.locator(':focus').waitFor();
  for (const key of keys) await (/^(Tab|Enter|Space)$/.test(key) ? page.keyboard.press(key) : page.keyboard.type(key));
}

/** What stands on the page, in one line. */
export const mainText = async (page: Page): Promise<string> =>
  plain(await page.locator('main').innerText()).replace(/\s+/g, ' ');
