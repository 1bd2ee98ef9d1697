import { beforeAll, expect, test } from 'vitest';
import { approvalRequired } from '#libs/contracts/approvals.ts';
import {
  ledgerReply,
  messageFor,
  newAccount,
  newClient,
  newId,
  openAccountCommand,
  readOutboxByKey,
  useAccounts,
} from '../test/harness.ts';

/** Tests the contract of given account numbers, for accounts of another system. */
const bank = useAccounts();
let client_id: string;
beforeAll(async () => {
  client_id = await newClient(bank);
});

let given = 0;
const freshNumber = () => `SAV-00${String(Date.now())}${given++}`;
const taken = (number: string) => ({
  ok: false,
  refusal: {
    code: 'duplicate_account_number',
    message: `Duplicate Account Number: an account with the number ${number} already exists`,
  },
});
const open = (account_number: string, rest = {}) => {
  const data = openAccountCommand(client_id, { account_number, ...rest });
  return bank.send('open_account', data, { message_id: data.account_id });
};

test('a given number is the number of the account, here and in the ledger', async () => {
  const account_number = freshNumber();
  const account_id = await newAccount(bank, client_id, { account_number });
  expect(await bank.send('get_account', { account_id })).toMatchObject({ ok: true, data: { account_number } });
  expect((await readOutboxByKey(bank.pool, account_id))[0]?.payload).toMatchObject({ account_number });
});

test('a number in use is duplicate_account_number, which is stored; no other number is generated', async () => {
  const account_number = freshNumber();
  await newAccount(bank, client_id, { account_number });
  const late = openAccountCommand(client_id, { account_number });
  expect(await bank.send('open_account', late, { message_id: late.account_id })).toMatchObject(taken(account_number));
  expect(await bank.send('open_account', late, { message_id: late.account_id })).toMatchObject({
    ...taken(account_number),
    replayed: true,
  });
  expect(await bank.send('get_account', { account_id: late.account_id })).toMatchObject({
    ok: false,
    refusal: { code: 'account_not_found' },
  });
});

test('the number of an opening that the ledger refused can be given to another account, as after an approval', async () => {
  const account_number = freshNumber();
  const asked = openAccountCommand(client_id, { account_number });
  await bank.send('open_account', asked, { message_id: asked.account_id });
  const required = { ok: false as const, refusal: approvalRequired() };
  await bank.handleCommands([ledgerReply(asked.account_id, asked.account_id, required)]);
  const approved = await newAccount(bank, client_id, { account_number });
  expect(await bank.send('get_account', { account_id: approved })).toMatchObject({
    ok: true,
    data: { account_number },
  });
  expect(await open(account_number)).toMatchObject(taken(account_number));
});

test('only one of ten concurrent openings with one number succeeds', async () => {
  const account_number = freshNumber();
  const replies = await Promise.all(Array.from({ length: 10 }, () => open(account_number)));
  expect(replies.filter((reply) => reply === undefined)).toHaveLength(1);
  expect(replies.filter((reply) => reply !== undefined)).toEqual(
    Array.from({ length: 9 }, () => expect.objectContaining(taken(account_number))),
  );
});

test('in one batch, a refused number does not affect the next, and other accounts get generated numbers', async () => {
  const [account_number, external_id] = [freshNumber(), newId('account')];
  await newAccount(bank, client_id, { account_number });
  const other = freshNumber();
  const openings = [
    { account_number, external_id },
    { external_id, account_number: other },
    { account_number: other },
    {},
    { external_id },
  ].map((rest) => openAccountCommand(client_id, rest));
  const commands = openings.map((data) => ({
    ...messageFor('open_account', data, { message_id: data.account_id }),
    partition: 0,
  }));
  await bank.handleCommands(commands);
  await bank.handleCommands(
    openings.map(({ account_id }) =>
      ledgerReply(account_id, account_id, {
        ok: true,
        data: { account_id, status: 'Active', status_version: 1, balance: '0' },
      }),
    ),
  );
  const codes = commands
    .map(({ headers }) => bank.repliesTo(headers['correlation-id'] ?? '')[0])
    .map((reply) => (reply?.ok ? 'done' : reply?.refusal.code));
  expect(codes).toEqual(['duplicate_external_id', 'done', 'duplicate_account_number', 'done', 'duplicate_external_id']);
});
