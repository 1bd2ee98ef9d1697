import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { type Command, InvalidArgumentError, Option } from 'commander';
import { z } from 'zod';
import { parameterTime } from '#libs/contracts/times.ts';
import type { KafkaClient } from '#libs/kafka/client.ts';
import {
  ConfigError,
  databaseUrlConfig,
  kafkaConfig,
  kafkaOptions,
  loadToolConfig,
  url,
} from '#libs/service/config.ts';
import type { createLogger } from '#libs/service/logger.ts';
import type { BankAccess } from '../clients/consumer/bank-reads.ts';
import {
  ApprovalNeededError,
  type Bank,
  BankError,
  type BankOptions,
  createBank,
  NoAnswerError,
} from '../clients/typescript/index.ts';
import { parseExactly } from './exact.ts';
import { fetch } from './fetch.ts';

/** The reason why a command failed, with the exit code of the process. */
export class Failure extends Error {
  readonly exitCode: 1 | 2 | 3;

  constructor(exitCode: 1 | 2 | 3, message: string) {
    super(message);
    this.exitCode = exitCode;
  }
}

const cliConfig = z.object({
  ...kafkaConfig,
  KAFKA_BROKERS: kafkaConfig.KAFKA_BROKERS.optional().describe(
    'Brokers whose events are shown; default: those of the local bank, where BANK_URL is not set',
  ),
  BANK_URL: url('http', 'https').optional().describe('Base URL of the bank'),
  BANK_API_KEY: z.string().optional().describe('API key that the command line uses'),
  BANK_TOKEN: z
    .string()
    .optional()
    .describe('Access token of a person, which the command line uses instead of an API key'),
  DATABASE_URL: databaseUrlConfig.DATABASE_URL.optional().describe(
    'Database whose outboxes are worked on; default: that of the local bank, where BANK_URL is not set',
  ),
  LOCAL_DIR: z
    .string()
    .default(join(import.meta.dirname, '..', '.local'))
    .describe("The folder of the local bank's connection.json"),
});

function readConfig() {
  try {
    return loadToolConfig(cliConfig);
  } catch (error) {
    throw error instanceof ConfigError ? new Failure(2, error.message) : error;
  }
}

interface LocalBank {
  base_url: string;
  api_key: string;
  kafka_brokers: string;
  database_url: string;
}

function readLocalBank({ LOCAL_DIR }: { LOCAL_DIR: string }): LocalBank {
  try {
    return JSON.parse(readFileSync(join(LOCAL_DIR, 'connection.json'), 'utf8')) as LocalBank;
  } catch {
    throw new Failure(
      2,
      `no bank in LOCAL_DIR (${LOCAL_DIR}): set BANK_URL and BANK_API_KEY, or start the local one (npm start)`,
    );
  }
}

/** Returns the bank's URL, its credential, and its brokers if known. Throws a Failure that names missing settings. */
function connection() {
  const config = readConfig();
  const { BANK_URL: base_url, BANK_API_KEY: apiKey, BANK_TOKEN: token, KAFKA_BROKERS: brokers } = config;
  const given = token !== undefined ? { token } : apiKey !== undefined ? { apiKey } : undefined;
  if (base_url !== undefined && given) return { base_url, credentials: given, brokers, config };
  if (base_url !== undefined || apiKey !== undefined)
    throw new Failure(2, 'BANK_URL and BANK_API_KEY (or BANK_TOKEN) are given together, or neither');
  const local = readLocalBank(config);
  return {
    base_url: local.base_url,
    credentials: given ?? { apiKey: local.api_key },
    brokers: brokers ?? local.kafka_brokers.split(','),
    config,
  };
}

/** Returns a client of the bank. Throws a Failure that names missing settings. */
export function openBank(options: Pick<BankOptions, 'attempts' | 'deadlineMs' | 'fetch'> = {}): Bank {
  const { base_url, credentials } = connection();
  return createBank({
    baseUrl: base_url,
    ...credentials,
    attempts: 3,
    deadlineMs: 30_000,
    fetch,
    parse: parseExactly,
    ...options,
  });
}

/** Returns a client of the bank whose responses are read as they arrive. */
export const openFileBank = (): Bank => openBank({ fetch: globalThis.fetch });

/** Returns the bank's URL and API key for other programs. Throws a Failure if there is no API key. */
export function addressAndKey(): { baseUrl: string; apiKey: string } {
  const { base_url, credentials } = connection();
  if (credentials.apiKey === undefined) throw new Failure(2, 'BANK_TOKEN is set, so there is no API key');
  return { baseUrl: base_url, apiKey: credentials.apiKey };
}

/** Returns the bank's URL and credential for the consumer package. */
export function bankAccess(): BankAccess {
  const { base_url: baseUrl, credentials } = connection();
  return { baseUrl, ...credentials };
}

type Logger = ReturnType<typeof createLogger>;

/** Few commands read events or the database, so what that needs is loaded for them only. */
async function quiet(): Promise<Logger> {
  const { createLogger } = await import('#libs/service/logger.ts');
  return createLogger({ service: 'bank', instance: 'cli', level: 'silent' });
}

/** Returns the bank's brokers and topic prefix, or undefined if no brokers are set. */
export async function openKafka(): Promise<{ kafka: KafkaClient; prefix: string; logger: Logger } | undefined> {
  const { brokers, config } = connection();
  if (brokers === undefined) return undefined;
  const [{ createKafka }, logger] = await Promise.all([import('#libs/kafka/client.ts'), quiet()]);
  return {
    kafka: createKafka(kafkaOptions({ ...config, KAFKA_BROKERS: brokers }, 'bank-cli'), logger),
    prefix: config.TOPIC_PREFIX,
    logger,
  };
}

/**
 * Returns the bank's database. Throws a Failure if none is set: with BANK_URL, the database of the local bank is not
 * used.
 */
export async function openDatabase(): Promise<{ url: string; logger: Logger }> {
  const config = readConfig();
  const url = config.DATABASE_URL ?? (config.BANK_URL === undefined ? readLocalBank(config).database_url : undefined);
  if (url === undefined) throw new Failure(2, 'DATABASE_URL is not set: with BANK_URL, it names the database');
  return { url, logger: await quiet() };
}

/** Returns an error of a call of the bank as a Failure with the bank's message, and any other error unchanged. */
export function toFailure(error: unknown): unknown {
  if (error instanceof BankError)
    return new Failure(error.status < 500 ? 1 : 3, printable(`${error.status} ${error.code}: ${error.message}`));
  if (error instanceof ApprovalNeededError)
    return new Failure(1, printable(`${error.message} (${error.approval.approval_id})`));
  return error instanceof NoAnswerError ? new Failure(3, error.message) : error;
}

/** Returns an option parser for a whole number within limits. */
export function wholeNumber(min: number, max: number) {
  return (text: string): number => {
    if (/^\d{1,9}$/.test(text) && Number(text) >= min && Number(text) <= max) return Number(text);
    throw new InvalidArgumentError(`must be a whole number from ${min} to ${max}.`);
  };
}

/** Parses an option that is a date or time as in the API: a date is the start of the day in UTC, and a time has its offset. */
export function moment(text: string): Date {
  const utc = parameterTime(text);
  if (utc !== undefined) return new Date(utc);
  throw new InvalidArgumentError('must be a date or time such as 2026-01-31 (UTC) or 2026-01-31T00:00:00Z.');
}

/** Parses an argument that is a day of the bank. */
export function day(text: string): string {
  if (/^\d{4}-\d\d-\d\d$/.test(text) && parameterTime(text) !== undefined) return text;
  throw new InvalidArgumentError('must be a day such as 2026-01-31.');
}

/**
 * Formats text from outside for a terminal: control characters, which could control it, are shown as their code points.
 */
function printable(text: string): string {
  return text.replace(
    /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u202a-\u202e\u2066-\u2069]/g,
    (char) => `\\u${char.charCodeAt(0).toString(16).padStart(4, '0')}`,
  );
}

export function print(text: string): void {
  process.stdout.write(`${printable(text)}\n`);
}

export function keyOption(): Option {
  return new Option('--key <text>', 'Idempotency-Key: a command repeated with the same key is executed once');
}

export function callOptions({ key }: { key?: string }): { idempotencyKey?: string } {
  return key === undefined ? {} : { idempotencyKey: key };
}

/** The options for external_id and metadata. */
export interface Names {
  externalId?: string;
  metadata?: Record<string, string>;
}

export function withNames(command: Command): Command {
  return command
    .option('--external-id <text>', 'your own identifier for it')
    .option('--metadata <key=value>', 'your own data stored with it; may be repeated', keyAndValue);
}

export const toNames = ({ externalId, metadata }: Names) => ({ external_id: externalId, metadata });

function keyAndValue(text: string, before: Record<string, string> = {}): Record<string, string> {
  const [, key, value] = /^([^=]+)=(.*)$/s.exec(text) ?? [];
  if (key === undefined || value === undefined)
    throw new InvalidArgumentError('must be a key and a value such as branch=Nairobi.');
  return { ...before, [key]: value };
}

export function jsonOption(): Option {
  return new Option('--json', 'print the data as JSON');
}

/** Prints the result of a command: as lines, or with --json as data. */
export function answer({ json }: { json?: true }, data: unknown, ...lines: string[]): void {
  if (json) printJson(data);
  else for (const line of lines) print(line);
}

export function printJson(data: unknown): void {
  process.stdout.write(`${JSON.stringify(data, null, 2)}\n`);
}

/** Prints progress for the user on stderr. */
export function say(text: string): void {
  process.stderr.write(`${printable(text)}\n`);
}

/**
 * Prints progress on stderr: a bar on a terminal, otherwise a line for each tenth.
 */
export function createProgress(title: string, total: number): (done: number) => void {
  let told = -1;
  return (done) => {
    const tenth = Math.floor((done * 10) / Math.max(total, 1));
    const line = `${title}: ${done} of ${total}`;
    if (process.stderr.isTTY)
      process.stderr.write(`\r[${'='.repeat(2 * tenth).padEnd(20)}] ${line}${done === total ? '\n' : ''}`);
    else if (tenth > told) process.stderr.write(`${line}\n`);
    told = Math.max(told, tenth);
  };
}
