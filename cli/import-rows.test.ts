import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, test } from 'vitest';
import { endpoints } from '#libs/contracts/endpoints.ts';
import { clientBody, type Row, readRows, survey } from './import-rows.ts';

const folder = mkdtempSync(join(tmpdir(), 'import-'));
afterAll(() => rmSync(folder, { recursive: true }));

test('values are trimmed as the bank trims them, ids and metadata are kept', async () => {
  const path = join(folder, 'clients.csv');
  const columns =
    'external_id,client_type,first_name,last_name,email,contact_number,address,ussd_status,metadata.branch';
  const values = '" C-1 ",Retail ,\u00a0Ann,"Lee\n",info@münchen.example ,+254 700 000 001\t,  ,inactive ," 3 "';
  writeFileSync(path, `${columns}\n${values}\n`);
  const rows: Row[] = [];
  for await (const row of readRows(await survey('clients', path))) rows.push(row);
  expect(rows.map(({ fault }) => fault)).toEqual([undefined]);
  const [row] = rows;
  expect(row && endpoints.create_client.body.parse(clientBody(row, undefined))).toEqual({
    external_id: ' C-1 ',
    client_type: 'Retail',
    first_name: 'Ann',
    last_name: 'Lee',
    email: 'info@xn--mnchen-3ya.example',
    contact_number: '+254700000001',
    ussd_status: 'inactive',
    metadata: { branch: ' 3 ' },
  });
});
