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
  more: '16/solid/ellipsis-horizontal',
  home: '24/outline/home',
  counter: '24/outline/banknotes',
  clients: '24/outline/users',
  accounts: '24/outline/wallet',
  transactions: '24/outline/arrows-right-left',
  approvals: '24/outline/check-badge',
  books: '24/outline/scale',
  tills: '24/outline/calculator',
  operations: '24/outline/server-stack',
  keys: '24/outline/key',
  webhooks: '24/outline/bolt',
  audit: '24/outline/clipboard-document-list',
  remove: '16/solid/x-mark',
  menu: '24/outline/bars-3',
} as const;
export type IconName = keyof typeof files;

function read(file: string): Html {
  const size = file.startsWith('16') ? 16 : 20;
  const svg = readFileSync(resolve(`heroicons/${file}.svg`), 'utf8')
    .trim()
    .replace(' data-slot="icon"', '')
    .replace(/\s*\n\s*/g, '');
  return trusted(svg.replace(/^<svg xmlns="[^"]*"/, `<svg class="icon" width="${size}" height="${size}"`));
}

const icons = Object.fromEntries(Object.entries(files).map(([name, file]) => [name, read(file)])) as Record<
  IconName,
  Html
>;

/** Returns an icon, which screen readers leave out: a text beside it says the same. */
export const icon = (name: IconName): Html => html`${icons[name]}`;
