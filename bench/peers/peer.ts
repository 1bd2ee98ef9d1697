import { existsSync } from 'node:fs';
import { homedir } from 'node:os';
import { join } from 'node:path';
import type { Reading, Target } from '../load-plan.ts';
import { type LoadOptions, load, perItem } from '../measure.ts';
import type { Side, World } from '../world.ts';

/** The version of each peer. */
const versions = { 'formance-ledger': 'v2.4.12', blnk: 'v0.15.2', pgledger: 'v0.7.0' };

const answerMs = 30_000;

export type Row = 'transfers' | 'deposits' | 'bulk' | 'reads' | 'first' | 'deep' | 'paced';

/** The result of one measurement. A peer without HTTP has no latency. */
export type Figure = Pick<Reading, 'perSecond' | 'wrong' | 'unanswered' | 'cpuMicrosPerRequest'> &
  Partial<Pick<Reading, 'latency'>>;

/** Measures one contender in one row. */
export interface Offer {
  /** The numbers of callers to try, in ascending order. */
  connections: number[];
  run(options: Omit<LoadOptions, 'target'>): Promise<Figure>;
}

/** The bank or a peer that is running, and the rows in which it can be measured. */
export interface Contender {
  offers: Partial<Record<Row, Offer>>;
  /** Adds this many transactions. Returns the rows that list them: the first page and a deep one. */
  fill?(transactions: number, deepPage: number): Promise<void>;
  stop(): Promise<void>;
}

export interface Peer {
  name: string;
  /** The reason why the peer cannot be run on this machine; undefined if it can. */
  missing(): string | undefined;
  start(world: World): Promise<Contender>;
}

/**
 * Returns the path of a peer's program or folder. No part of a peer is part of this project: to compare with it,
 * install it there as its own documentation describes.
 */
export function installed(name: keyof typeof versions): string {
  const cache = process.env['XDG_CACHE_HOME'] || join(homedir(), '.cache');
  return join(cache, 'core-banking', 'peers', `${name}-${versions[name]}`);
}

export function notInstalled(name: keyof typeof versions, file = ''): string | undefined {
  if (existsSync(join(installed(name), file))) return undefined;
  return `${name} ${versions[name]} is not installed as ${installed(name).replace(homedir(), '~')}`;
}

/** Returns a row of a server with an HTTP API. */
export function offer(world: World, side: Side, target: Target, connections: number[]): Offer {
  const items = 'items' in target ? (target.items ?? 1) : 1;
  return {
    connections,
    async run(options) {
      return perItem(await load(world, side, { ...options, target }), items);
    },
  };
}

export interface Answer {
  body: unknown;
  link: string;
}

/** Sends one request of the preparation. Throws unless the response is 2xx. */
export async function request(
  { port, credential }: Side,
  path: string,
  body?: object,
  method = body === undefined ? 'GET' : 'POST',
): Promise<Answer> {
  const [name = '', value = ''] = credential.split(': ');
  const response = await fetch(`http://127.0.0.1:${port}${path}`, {
    method,
    headers: { [name]: value, 'content-type': 'application/json' },
    body: body === undefined ? null : JSON.stringify(body),
    signal: AbortSignal.timeout(answerMs),
  });
  const text = await response.text();
  if (!response.ok) throw new Error(`${path}: ${response.status} ${text.slice(0, 300)}`);
  return { body: text === '' ? undefined : JSON.parse(text), link: response.headers.get('link') ?? '' };
}
