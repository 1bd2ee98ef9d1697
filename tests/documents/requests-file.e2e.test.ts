import { execFile, execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { useSharedBank } from '../support/world.ts';

/** Sends requests.http with httpYac, which it is written for, in the version that it names. */
const file = join(import.meta.dirname, '../../requests.http');
const text = readFileSync(file, 'utf8');
const [, version = ''] = /httpyac@(\S+)/.exec(text) ?? [];
const dir = mkdtempSync(join(tmpdir(), 'core-banking-httpyac-'));
const world = useSharedBank();

beforeAll(() => {
  execFileSync('npm', ['install', '--prefix', dir, '--no-audit', '--prefer-offline', `httpyac@${version}`], {
    stdio: 'ignore',
  });
  const { bank } = world;
  const connection = {
    base_url: world.api.baseUrl,
    api_key: bank.api_key,
    token_endpoint: `${bank.issuer}/token`,
    client_id: 'core-banking-local',
    client_secret: process.env['TEST_CLIENT_SECRET'],
  };
  writeFileSync(join(dir, 'connection.json'), JSON.stringify(connection));
}, 300_000);
afterAll(() => rmSync(dir, { recursive: true }));

it('requests.http works from top to bottom', async () => {
  interface Sent {
    summary: { totalRequests: number };
    requests: { title: string; testResults: { message: string; status: string }[] }[];
  }
  const httpYac = join(dir, 'node_modules/httpyac/bin/httpyac.js');
  const { stdout } = await promisify(execFile)(
    process.execPath,
    [httpYac, 'send', file, '--all', '--json', '--output', 'none'],
    { env: { ...process.env, LOCAL_DIR: dir }, timeout: 50_000 },
  ).catch((failed: { stdout: string }) => failed);
  const { requests } = JSON.parse(stdout) as Sent;
  const wanted = [...text.matchAll(/^### (.*)\n[\s\S]*?^\?\? (.*)$/gm)];
  expect(wanted.length).toBeGreaterThan(40);
  expect(requests.map(({ title, testResults }) => [title, testResults])).toEqual(
    wanted.map(([, title, message]) => [title, [{ message, status: 'SUCCESS' }]]),
  );
});
