import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { z } from 'zod';
import { ConfigError, loadConfig, url } from '#libs/service/config.ts';
import { type Bank, BankError, createBank, NoAnswerError } from '../clients/typescript/index.ts';

/** Why a command did not do what it was asked; ends the process with that code. */
export class Failure extends Error {
  readonly exitCode: 1 | 2 | 3;

  constructor(exitCode: 1 | 2 | 3, message: string) {
    super(message);
    this.exitCode = exitCode;
  }
}

const cliConfig = z.object({
  BANK_URL: url('http', 'https').optional().describe('Base URL of the bank'),
  BANK_API_KEY: z.string().optional().describe('API key that the command line uses'),
  LOCAL_DIR: z.string().default(join(import.meta.dirname, '..', '.local')).describe('Where the local bank keeps connection.json'),
});

/** The bank to talk to, and the key. Throws a Failure that says what is missing. */
function connection(): { base_url: string; api_key: string } {
  try {
    const { BANK_URL: base_url, BANK_API_KEY: api_key, LOCAL_DIR } = loadConfig(cliConfig);
    if (base_url !== undefined && api_key !== undefined) return { base_url, api_key };
    if (base_url !== undefined || api_key !== undefined) throw new Failure(2, 'BANK_URL and BANK_API_KEY are given together, or neither');
    return JSON.parse(readFileSync(join(LOCAL_DIR, 'connection.json'), 'utf8')) as { base_url: string; api_key: string };
  } catch (error) {
    if (error instanceof ConfigError) throw new Failure(2, error.message);
    if (error instanceof Failure) throw error;
    throw new Failure(2, 'no bank: set BANK_URL and BANK_API_KEY, or start the local one (npm start)');
  }
}

/** A client of the bank to talk to. Throws a Failure that says what is missing. */
export function openBank(): Bank {
  const { base_url, api_key } = connection();
  return createBank({ baseUrl: base_url, apiKey: api_key, attempts: 3, deadlineMs: 30_000 });
}

/** What a call of the bank threw, as a Failure with the bank's own words; anything else as it is. */
export function failureOf(error: unknown): unknown {
  if (error instanceof BankError) return new Failure(error.status < 500 ? 1 : 3, printable(`${error.status} ${error.code}: ${error.message}`));
  return error instanceof NoAnswerError ? new Failure(3, error.message) : error;
}

/** Text from outside, for a terminal: control characters, which could drive it, are shown as their code points. */
export function printable(text: string): string {
  return text.replace(/[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u202a-\u202e\u2066-\u2069]/g, (char) => `\\u${char.charCodeAt(0).toString(16).padStart(4, '0')}`);
}

export function print(text: string): void {
  process.stdout.write(`${printable(text)}\n`);
}

export function printJson(data: unknown): void {
  process.stdout.write(`${JSON.stringify(data, null, 2)}\n`);
}
