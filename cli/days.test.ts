import { execFile } from 'node:child_process';
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, expect, it } from 'vitest';

/** A bank whose totals have more digits than a double. */
const closing =
  '{"date":"2026-01-31","closed_at":"2026-02-01T00:00:00.000Z","closed_by":"key_1","totals":[{"currency":"USD","class":"asset","opening":0.1,"debits":100000000000000003.5,"credits":0,"closing":100000000000000003.61,"entry_count":12}],"hash":"ab"}';
const server = createServer((_request, response) => void response.end(`{"status":"success","data":${closing}}`));
beforeAll(() => once(server.listen(0, '127.0.0.1'), 'listening'));
afterAll(() => {
  server.closeAllConnections();
  server.close();
});

async function show(...options: string[]): Promise<string> {
  const { stdout } = await promisify(execFile)(
    process.execPath,
    [join(import.meta.dirname, 'bank.mjs'), 'days', 'show', '2026-01-31', ...options],
    {
      env: {
        ...process.env,
        BANK_URL: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
        BANK_API_KEY: 'any',
      },
      timeout: 60_000,
    },
  );
  return stdout;
}

it('shows every digit of the totals of a day, in words and as JSON', async () => {
  expect(await show()).toContain(
    'opening 0.10 USD  debits 100000000000000003.50 USD  credits 0.00 USD  closing 100000000000000003.61 USD  entries 12',
  );
  const json = await show('--json');
  expect(json).toContain('"debits": 100000000000000003.5,');
  expect(json).toContain('"closing": 100000000000000003.61,');
}, 60_000);
