import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { type Html, html, trusted } from '#libs/service/html.ts';

/** The icons of pages: those of Heroicons (MIT), in the page itself, with the colour of the text beside them. */

const { resolve } = createRequire(import.meta.url);

const files = {
  done: '16/solid/check-circle',
  waiting: '16/solid/clock',
  refused: '16/solid/x-circle',
  locked: '16/solid/lock-closed',
  off: '16/solid/no-symbol',
  paused: '16/solid/pause-circle',
  going: '16/solid/arrow-path',
  idle: '16/solid/minus-circle',
  information: '16/solid/information-circle',
  warning: '16/solid/exclamation-triangle',
  error: '16/solid/exclamation-circle',
} as const;
export type IconName = keyof typeof files;

const read = (file: string): Html => {
  const svg = readFileSync(resolve(`heroicons/${file}.svg`), 'utf8').trim();
  return trusted(
    svg.replace(/^<svg xmlns="[^"]*"/, '<svg class="icon" width="16" height="16"').replace(/ data-slot="icon"/, ''),
  );
};

const icons = Object.fromEntries(Object.entries(files).map(([name, file]) => [name, read(file)])) as Record<
  IconName,
  Html
>;

/** Returns an icon, which screen readers leave out: a text beside it says the same. */
export const icon = (name: IconName): Html => html`${icons[name]}`;
