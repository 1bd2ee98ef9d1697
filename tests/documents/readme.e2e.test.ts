import { execFileSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { describeInBrowser, useDashboard } from '../support/browser.ts';
import { useBank } from '../support/world.ts';

/**
 * Runs what a newcomer would try: the requests of the README and of the guide for API callers
 * in order, comparing the responses with those printed there (UPDATE_README=1 writes them instead), and the page /docs.
 */
const root = join(import.meta.dirname, '..', '..');
const example = /```sh\n([^`]*)```\n```json\n([^`]*)```/g;

const world = useBank();

/** Ids, times, account numbers, and request ids differ between runs. */
function stable(value: unknown): unknown {
  const text = JSON.stringify(value)
    .replace(/\b(cli|acc|txn|trf|opr|ent|key|aud)_[0-9a-f]{32}(-\d+)?/g, '$1_…')
    .replace(/\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z/g, 'time')
    .replace(/\d{4}-\d\d-\d\d(?=")/g, 'day')
    .replace(/\b(SAV|CHK|CUR|LOA)-\d{10}\b/g, '$1-…')
    .replace(/"request_id":"[^"]*"/g, '"request_id":"…"');
  return JSON.parse(text);
}

/** Values that a reader would copy from a response into a variable. */
function remember(answer: Record<string, unknown>, variables: Record<string, string>): void {
  const data = (answer['data'] ?? {}) as Record<string, unknown>;
  if (typeof data['account_type'] === 'string')
    variables[data['account_type'].toUpperCase()] = String(data['account_id']);
  else if (typeof data['client_type'] === 'string') variables['CLIENT_ID'] = String(data['client_id']);
}

it.each([
  ['docs/guides/api-client.md', 6],
  ['README.md', 1],
])('the requests of %s return the documented responses', (name, count) => {
  const file = join(root, name);
  const variables: Record<string, string> = { BASE_URL: world.api.baseUrl, API_KEY: world.bank.api_key };
  let examples = 0;
  const updated = readFileSync(file, 'utf8').replace(example, (_, command: string, shown: string) => {
    const output = execFileSync('bash', ['-c', command], {
      env: { ...process.env, ...variables },
      encoding: 'utf8',
      timeout: 20_000,
    });
    const answer = JSON.parse(output) as Record<string, unknown>;
    remember(answer, variables);
    examples++;
    if (process.env['UPDATE_README'] !== '1') expect(stable(answer), command).toEqual(stable(JSON.parse(shown)));
    return `\`\`\`sh\n${command}\`\`\`\n\`\`\`json\n${JSON.stringify(answer, null, 2)}\n\`\`\``;
  });
  expect(examples).toBe(count);
  if (process.env['UPDATE_README'] === '1') writeFileSync(file, updated);
});

describeInBrowser('/docs', () => {
  const { open } = useDashboard(world);

  it('/docs can send requests with an API key and with a token', async () => {
    const { page, complaints } = await open(world.bank.base_urls);
    await page.goto(`${world.api.baseUrl}/docs`);
    const authorize = async (credential: string, value: string) => {
      await page.locator('.btn.authorize').first().click();
      const boxes = page.locator('.auth-container');
      await boxes.first().waitFor();
      // Both credentials together would be refused as ambiguous.
      for (const logOut of await boxes
        .getByRole('button', { name: 'Remove authorization' })
        .or(boxes.getByText('Logout'))
        .all())
        await logOut.click();
      const box = boxes.filter({ hasText: credential });
      await box.locator('input').fill(value);
      await box.locator('button.authorize').click();
      await page.locator('.btn-done').first().click();
    };
    const tryOut = async (operation: string) => {
      const block = page.locator(`#operations-${operation}`);
      await block.locator('.opblock-summary').click();
      await block.getByRole('button', { name: 'Try it out' }).click();
      await block.getByRole('button', { name: 'Execute' }).click();
      return block.locator('.live-responses-table tbody .response-col_status').first().innerText();
    };
    await authorize('x-api-key', world.bank.api_key);
    expect(await tryOut('Accounts-list_accounts')).toContain('200');
    await authorize('bearer', await world.bank.token());
    expect(await tryOut('Clients-create_client')).toContain('201');
    expect(complaints).toEqual([]);
  });
});
