import { execFileSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { type Bank, startBank } from './support/bank.ts';

/**
 * Runs README's requests in order and compares the answers with those printed there. With UPDATE_README=1 it writes the
 * answers into README instead.
 */
const file = join(import.meta.dirname, '..', 'README.md');
const example = /```sh\n([\s\S]*?)```\n```json\n([\s\S]*?)```/g;

let bank: Bank;
beforeAll(async () => {
  bank = await startBank();
});
afterAll(() => bank?.stop());

/** Ids, times, account numbers and request ids differ from run to run. */
function stable(value: unknown): unknown {
  const text = JSON.stringify(value)
    .replace(/\b(cli|acc|txn|trf|opr|ent|key|aud)_[0-9a-f]{32}(-\d+)?/g, '$1_…')
    .replace(/\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z/g, 'time')
    .replace(/\b(SAV|CHK|CUR|LOA)-\d{10}\b/g, '$1-…')
    .replace(/"request_id":"[^"]*"/g, '"request_id":"…"');
  return JSON.parse(text);
}

/** What a reader would copy from an answer into a variable. */
function remember(answer: Record<string, unknown>, variables: Record<string, string>): void {
  const data = (answer['data'] ?? {}) as Record<string, unknown>;
  if (typeof data['account_type'] === 'string') variables[data['account_type'].toUpperCase()] = String(data['account_id']);
  else if (typeof data['client_type'] === 'string') variables['CLIENT_ID'] = String(data['client_id']);
}

it('gives the answers that README shows', () => {
  const readme = readFileSync(file, 'utf8');
  const variables: Record<string, string> = { BASE_URL: bank.base_urls[0] ?? '', API_KEY: bank.api_key };
  let examples = 0;
  const updated = readme.replace(example, (_, command: string, shown: string) => {
    const output = execFileSync('bash', ['-c', command], { env: { ...process.env, ...variables }, encoding: 'utf8', timeout: 20_000 });
    const answer = JSON.parse(output) as Record<string, unknown>;
    remember(answer, variables);
    examples++;
    if (process.env['UPDATE_README'] !== '1') expect(stable(answer), command).toEqual(stable(JSON.parse(shown)));
    return `\`\`\`sh\n${command}\`\`\`\n\`\`\`json\n${JSON.stringify(answer, null, 2)}\n\`\`\``;
  });
  expect(examples).toBeGreaterThanOrEqual(9);
  if (process.env['UPDATE_README'] === '1') writeFileSync(file, updated);
});
