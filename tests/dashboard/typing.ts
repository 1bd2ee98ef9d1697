import type { Locator, Page } from 'playwright-core';
import { isEveryWay, plain } from '../support/browser.ts';

/** Presses keys as a clerk does, beginning at the element that the page has focused with its first frame. */
export async function type(page: Page, ...keys: string[]): Promise<void> {
  await page.locator(':focus').waitFor();
  for (const key of keys) await (/^(Tab|Enter|Space)$/.test(key) ? page.keyboard.press(key) : page.keyboard.type(key));
}

/** Returns the text of the page, in one line. */
export const mainText = async (page: Page): Promise<string> =>
  plain(await page.locator('main').innerText()).replace(/\s+/g, ' ');

const everyWay = [
  { hand: 'keyboard', size: 'desk' },
  { hand: 'mouse', size: 'phone' },
  { hand: 'keyboard', size: 'phone' },
  { hand: 'mouse', size: 'desk' },
] as const;
type Hand = (typeof everyWay)[number]['hand'];

/** The ways in which every task is done: with each hand and at each size once, or in all four combinations. */
export const ways = everyWay.slice(0, isEveryWay ? 4 : 2);

/** The actions of a person on a page, with only the keyboard or with the mouse. */
export interface Person {
  /** Follows a link or presses a button. */
  press(target: Locator): Promise<void>;
  /** Sends the form, or follows the link, that has the focus: Enter, or a click on its button. */
  send(button: Locator): Promise<void>;
  enter(field: Locator, text: string): Promise<void>;
  choose(field: Locator, label: string): Promise<void>;
  tick(box: Locator): Promise<void>;
}

export function personAt(page: Page, hand: Hand): Person {
  return hand === 'mouse' ? withMouse : withKeyboard(page);
}

const withMouse: Person = {
  press: (target) => target.click(),
  send: (button) => button.click(),
  enter: (field, text) => field.fill(text),
  choose: async (field, label) => void (await field.selectOption({ label })),
  tick: (box) => box.check(),
};

/** This is more than the number of controls on any page in these tests. */
const mostStops = 120;

function withKeyboard(page: Page): Person {
  const hasFocus = (target: Locator) => target.evaluate((element) => element === element.ownerDocument.activeElement);

  /** Presses Tab until the target has the focus. Fails if it cannot be reached by keyboard. */
  async function reach(target: Locator): Promise<void> {
    await target.waitFor();
    // The keys are sent together, because awaiting each would take most of the time of these tests.
    const distance = await target.evaluate((element) => {
      const page = element.ownerDocument;
      const stops = [...page.querySelectorAll('a[href], button, input, select, textarea, summary, [tabindex]')].filter(
        (stop) => stop.checkVisibility() && !stop.matches(':disabled, [type=hidden], [tabindex="-1"]'),
      );
      return stops.indexOf(element) - stops.indexOf(page.activeElement ?? page.body);
    });
    await Promise.all(Array.from({ length: Math.max(0, distance) }, () => page.keyboard.press('Tab')));
    for (let stops = 0; stops < mostStops; stops++) {
      if (await hasFocus(target)) return;
      await page.keyboard.press('Tab');
    }
    throw new Error(`${String(target)} cannot be reached by keyboard`);
  }
  return {
    async press(target) {
      await reach(target);
      await page.keyboard.press('Enter');
    },
    async send(button) {
      // The page that Enter has just left may still be shown.
      await button.waitFor();
      await page.locator(':focus').waitFor();
      await page.keyboard.press('Enter');
    },
    async enter(field, text) {
      await reach(field);
      await page.keyboard.press('ControlOrMeta+A');
      await page.keyboard.type(text);
    },
    async choose(field, label) {
      await reach(field);
      await page.keyboard.type(label);
    },
    async tick(box) {
      await reach(box);
      await page.keyboard.press('Space');
    },
  };
}
