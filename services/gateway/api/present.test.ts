import { expect, test } from 'vitest';
import { z } from 'zod';
import { statusTransitionSchema } from '#libs/contracts/account-status.ts';
import { accountSchema } from '#libs/contracts/accounts.ts';
import { systemAccountSchema } from '#libs/contracts/books.ts';
import { clientSchema } from '#libs/contracts/clients.ts';
import { endpoints } from '#libs/contracts/endpoints.ts';
import { transactionSchema } from '#libs/contracts/transactions.ts';
import { createPresenter, jsonNumber } from './present.ts';

test('money becomes a JSON number with exactly the same digits', () => {
  // contract: money-1
  expect(
    JSON.stringify(
      ['10.50', '-0.01', '999999999999999', '9999999999999.99', '12345678901234567.89', '0.0001'].map(jsonNumber),
    ),
  ).toBe('[10.5,-0.01,999999999999999,9999999999999.99,12345678901234567.89,0.0001]');
});

test('fields that the schema marks as money are converted, also inside lists; others are not', () => {
  expect(createPresenter(accountSchema)?.({ account_id: 'a', balance: '1.10' })).toEqual({
    account_id: 'a',
    balance: 1.1,
  });
  expect(
    createPresenter(systemAccountSchema)?.({ balance: '2', slots: [{ balance: '1.5' }, { balance: '-3' }] }),
  ).toEqual({
    balance: 2,
    slots: [{ balance: 1.5 }, { balance: -3 }],
  });
  expect(createPresenter(transactionSchema)?.({ amount: '5.00', description: '5.00' })).toEqual({
    amount: 5,
    description: '5.00',
  });
  expect(createPresenter(clientSchema)?.({ client_id: 'c', address: '5.00' })).toEqual({
    client_id: 'c',
    address: '5.00',
  });
  expect(createPresenter(statusTransitionSchema)).toBeUndefined();
});

/** A value of the schema in which every resource has metadata of the bank, and how many there are. */
function withMetadata(schema: z.ZodType): { value: unknown; secrets: number } {
  if (schema instanceof z.ZodOptional || schema instanceof z.ZodNullable)
    return withMetadata(schema.unwrap() as z.ZodType);
  if (schema instanceof z.ZodArray) {
    const { value, secrets } = withMetadata(schema.element as z.ZodType);
    return { value: [value], secrets };
  }
  if (schema instanceof z.ZodDiscriminatedUnion) return withMetadata(schema.options[0] as unknown as z.ZodType);
  if (!(schema instanceof z.ZodObject)) return { value: 'x', secrets: 0 };
  const fields = Object.entries(schema.shape as Record<string, z.ZodType>).map(
    ([name, field]) => [name, withMetadata(field)] as const,
  );
  const own = fields.some(([name]) => name === 'metadata') ? 1 : 0;
  const value = Object.fromEntries(fields.map(([name, field]) => [name, field.value]));
  return {
    value: own === 0 ? value : { ...value, metadata: { risk: 'secret' } },
    secrets: fields.reduce((sum, [, { secrets }]) => sum + secrets, own),
  };
}

test('every response of the endpoints table hides metadata that others gave from bound callers, and only from them', () => {
  // contract: names-9
  const shown = Object.entries(endpoints).flatMap(([name, { result }]) => {
    const { value, secrets } = withMetadata(result);
    if (secrets === 0) return [];
    const present = createPresenter(result);
    const count = (bound?: string) => JSON.stringify(present?.(value, bound)).split('secret').length - 1;
    expect([name, count(), count('cli_1')]).toEqual([name, secrets, 0]);
    return [name];
  });
  expect(shown).toEqual(
    expect.arrayContaining([
      'get_client',
      'list_accounts',
      'get_transfer',
      'capture_hold',
      'get_batch',
      'open_account',
    ]),
  );
});
