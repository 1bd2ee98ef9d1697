import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import type { FastifyInstance } from 'fastify';
import { bankName } from '#libs/service/formats.ts';
import { accentStyle, type Brand, letterMark } from './brand.ts';
import { acceptedEncoding, compress, type Encoding } from './compression.ts';

/**
 * The dashboard's static files. Their paths contain a hash of their content, so that browsers may cache them
 * forever.
 */
const { resolve } = createRequire(import.meta.url);
const own = (file: string) => join(import.meta.dirname, 'assets', file);

const types = {
  css: 'text/css; charset=utf-8',
  js: 'text/javascript; charset=utf-8',
  svg: 'image/svg+xml',
  png: 'image/png',
  woff2: 'font/woff2',
} as const;

interface Asset {
  path: string;
  type: string;
  content: Buffer;
  /** The content in each encoding that a browser has asked for. */
  encoded: Partial<Record<Encoding, Promise<Buffer>>>;
}

function toAsset(name: string, content: Buffer): Asset {
  const [base = '', extension = ''] = name.split('.');
  const hash = createHash('sha256').update(content).digest('hex').slice(0, 16);
  const path = `/admin/assets/${base}.${hash}.${extension}`;
  return { path, type: types[extension as keyof typeof types], content, encoded: {} };
}

/** The files of the typeface: one for each script, of which a browser takes those that a page needs. */
const typeface = readFileSync(resolve('@fontsource-variable/geist/wght.css'), 'utf8');
const fonts = new Map(
  [...typeface.matchAll(/url\((\.\/files\/([\w-]+\.woff2))\)/g)].map(([, file = '', name = '']) => [
    file,
    toAsset(name, readFileSync(resolve(`@fontsource-variable/geist/${file.slice(2)}`))),
  ]),
);
const typefaceStyle = [...fonts].reduce((style, [file, { path }]) => style.replace(file, path), typeface);

const scripts = {
  'htmx.js': resolve('htmx.org/dist/htmx.min.js'),
  'admin.js': own('admin.js'),
  'session-end.js': own('session-end.js'),
};
type AssetName = keyof typeof scripts | 'style.css' | 'mark';

const scriptAssets = Object.entries(scripts).map(([name, file]) => [name, toAsset(name, readFileSync(file))] as const);
const style = [
  readFileSync(resolve('@picocss/pico/css/pico.min.css'), 'utf8'),
  typefaceStyle,
  readFileSync(own('admin.css'), 'utf8'),
].join('\n');

const createAssets = ({ logo, accent }: Brand) =>
  Object.fromEntries([
    ...scriptAssets,
    ['style.css', toAsset('style.css', Buffer.from(`${style}\n${accentStyle(accent)}`))],
    [
      'mark',
      logo
        ? toAsset(logo.type === 'image/png' ? 'mark.png' : 'mark.svg', logo.content)
        : toAsset('mark.svg', Buffer.from(letterMark(bankName(), accent))),
    ],
  ]) as Record<AssetName, Asset>;

let assets = createAssets({});

/** Called once, after the name of the bank is set and before the first page. */
export function setBrand(brand: Brand): void {
  assets = createAssets(brand);
}

/** Returns the path of the file. */
export function assetPath(name: AssetName): string {
  return assets[name].path;
}

export function addAssets(app: FastifyInstance): void {
  for (const { path, type, content, encoded } of [...Object.values(assets), ...fonts.values()]) {
    const isText = /^text|svg/.test(type);
    app.get(path, { config: { open: true } }, async (request, reply) => {
      reply.headers({ 'content-type': type, 'cache-control': 'public, max-age=31536000, immutable' });
      const encoding = isText ? acceptedEncoding(request) : undefined;
      if (encoding === undefined) return reply.send(content);
      encoded[encoding] ??= compress(content, encoding, 11);
      return reply.headers({ 'content-encoding': encoding, vary: 'accept-encoding' }).send(await encoded[encoding]);
    });
  }
}
