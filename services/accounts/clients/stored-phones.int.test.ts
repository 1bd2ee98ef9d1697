import { afterAll, beforeAll, expect, test } from 'vitest';
import { type Harness, newClient, retail, startHarness } from '../test/harness.ts';
import { findStrayPhones } from './stored-phones.ts';

let bank: Harness;
beforeAll(async () => {
  bank = await startHarness();
});
afterAll(() => bank.stop());

test('clients with a phone number in an older form are named, and those who share a telephone', async () => {
  // contract: clients-13
  const client = (ussd_phone_number: string, ussd_status: 'active' | 'inactive' = 'active') =>
    newClient(bank, { ...retail, ussd_phone_number, ussd_status });
  const holder = await client('+254711222333');
  const [doubled, again, lone, quiet] = [
    await client('+254711222334'),
    await client('+254711222335'),
    await client('+254711222336'),
    await client('+254711222337', 'inactive'),
  ];
  expect(await findStrayPhones(bank.owner)).toEqual({ strays: [], pairs: [] });
  // As versions without numbering plans stored them.
  const store = (client_id: string, number: string, column = 'ussd_phone_number') =>
    bank.owner.query(`update clients set ${column} = $2 where client_id = $1`, [client_id, number]);
  await store(doubled, '+2540711222333');
  await store(again, '+254 711222333');
  await store(lone, '+999999999999999', 'contact_number');
  await store(quiet, '+2540711222333');
  const { strays, pairs } = await findStrayPhones(bank.owner);
  expect(new Set(strays)).toEqual(new Set([doubled, again, lone, quiet]));
  expect(pairs.flat().filter((id) => id === lone || id === quiet)).toEqual([]);
  expect(new Set(pairs.flat())).toEqual(new Set([holder, doubled, again]));
});
