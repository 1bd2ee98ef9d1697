import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import type { FastifyInstance } from 'fastify';

/**
 * The dashboard's static files. Their paths contain a hash of their content, so that browsers may cache them
 * forever.
 */
const { resolve } = createRequire(import.meta.url);
const own = (file: string) => join(import.meta.dirname, 'assets', file);

const files = {
  'pico.css': resolve('@picocss/pico/css/pico.min.css'),
  'htmx.js': resolve('htmx.org/dist/htmx.min.js'),
  'uplot.css': resolve('uplot/dist/uPlot.min.css'),
  'uplot.js': resolve('uplot/dist/uPlot.iife.min.js'),
  'admin.css': own('admin.css'),
  'admin.js': own('admin.js'),
  'chart.js': own('chart.js'),
  'session-end.js': own('session-end.js'),
};
export type AssetName = keyof typeof files;

const types = { css: 'text/css; charset=utf-8', js: 'text/javascript; charset=utf-8' } as const;

interface Asset {
  path: string;
  type: string;
  content: Buffer;
}

const assets = Object.fromEntries(
  Object.entries(files).map(([name, file]) => {
    const [base = '', extension = ''] = name.split('.');
    const content = readFileSync(file);
    const hash = createHash('sha256').update(content).digest('hex').slice(0, 16);
    return [
      name,
      { path: `/admin/assets/${base}.${hash}.${extension}`, type: types[extension as keyof typeof types], content },
    ];
  }),
) as Record<AssetName, Asset>;

/** Returns the path of the file. */
export function assetPath(name: AssetName): string {
  return assets[name].path;
}

export function addAssets(app: FastifyInstance): void {
  for (const { path, type, content } of Object.values(assets)) {
    app.get(path, { config: { open: true } }, async (_request, reply) =>
      reply.headers({ 'content-type': type, 'cache-control': 'public, max-age=31536000, immutable' }).send(content),
    );
  }
}
