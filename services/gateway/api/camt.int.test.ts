import { readFileSync } from 'node:fs';
import fc from 'fast-check';
import { afterEach, beforeAll, describe, expect, it } from 'vitest';
import { currencies, fromMinor, maxMinor } from '#libs/contracts/money.ts';
import type { EntryLine, Statement } from '#libs/contracts/statements.ts';
import { setBankFormats } from '#libs/service/formats.ts';
import { readCamtSchema } from '../../../tests/support/camt-schema.ts';
import { ids } from '../test/test-app.ts';
import { type CamtStatement, camtEnd, camtEntries, camtStart } from './camt.ts';

/** Checks statements as camt.053 against the schema of ISO 20022. */
let find: Awaited<ReturnType<typeof readCamtSchema>>;
beforeAll(async () => {
  find = await readCamtSchema();
});
afterEach(() => setBankFormats({ timeZone: 'UTC', locale: undefined }));

const on = '2026-01-31';
const line: EntryLine = {
  entry_id: 'ent_1',
  operation_id: 'opr_1',
  transaction_id: ids.transaction,
  account_id: ids.account,
  sequence: 1,
  direction: 'credit',
  side: 'CR',
  amount: '10.00',
  currency: 'USD',
  balance_after: '10.00',
  created_at: '2026-02-01T23:30:00.000Z',
  effective_date: on,
  transaction_type: 'Deposit',
  description: null,
  reference: null,
};
const statement = (changes: Partial<Statement> = {}): Statement => ({
  account_id: ids.account,
  account_number: 'SAV-1234567897',
  currency: 'USD',
  from: null,
  to: null,
  effective_from: on,
  effective_to: on,
  opening_balance: '0.00',
  closing_balance: '10.00',
  debit_total: '0.00',
  credit_total: '10.00',
  entry_count: 1,
  entries: [],
  ...changes,
});
function write(about: Partial<CamtStatement>): string {
  const all = { statement: statement(), on, holder: undefined, created_at: 1.8e12, ...about };
  return camtStart(all) + camtEntries(all.statement, on) + camtEnd;
}
const ofEntries = (...entries: Partial<EntryLine>[]) =>
  write({ statement: statement({ entries: entries.map((entry) => ({ ...line, ...entry })) }) });
const valuesIn = (text: string, ...paths: string[]) => paths.map((path) => find(text, path).join(' '));

const signed = (digits: string) =>
  fc.bigInt({ min: -maxMinor, max: maxMinor }).map((minor) => fromMinor(minor, digits));
const above = (currency: string) => fc.bigInt({ min: 1n, max: maxMinor }).map((minor) => fromMinor(minor, currency));
const total = (currency: string) => fc.bigInt({ min: 0n, max: 10n ** 20n }).map((minor) => fromMinor(minor, currency));
/** Texts of any characters, with half surrogate pairs, and up to the lengths that the API accepts. */
const anyText = (maxLength: number) =>
  fc.oneof(
    fc.string({ unit: 'binary', maxLength }),
    fc.array(fc.integer({ min: 0, max: 0xffff }), { maxLength }).map((codes) => String.fromCharCode(...codes)),
  );
const digits = (minLength: number, maxLength: number) =>
  fc.array(fc.integer({ min: 0, max: 9 }), { minLength, maxLength }).map((list) => list.join(''));
const number = fc.tuple(fc.constantFrom('SAV', 'CHK', 'CUR', 'LOA'), digits(4, 20)).map((parts) => parts.join('-'));
const id = fc
  .array(fc.constantFrom(...'0123456789abcdef'), { minLength: 32, maxLength: 32 })
  .map((bits) => bits.join(''));
const time = fc.date({ min: new Date('1970-01-01'), max: new Date('2099-12-31'), noInvalidDate: true });

const anyEntry = (currency: string) =>
  fc.record<EntryLine>(
    {
      entry_id: fc.constant('ent_1'),
      operation_id: fc.constant('opr_1'),
      transaction_id: id.map((bits) => `txn_${bits}`),
      account_id: fc.constant(ids.account),
      sequence: fc.maxSafeNat(),
      direction: fc.constantFrom('debit', 'credit'),
      side: fc.constantFrom('DR', 'CR'),
      amount: above(currency),
      currency: fc.constant(currency),
      balance_after: signed(currency),
      created_at: time.map((date) => date.toISOString()),
      transaction_type: fc.constantFrom('Deposit', 'Withdrawal', 'Transfer', 'Loan Payment'),
      description: fc.option(anyText(255)),
      reference: fc.option(anyText(100)),
      counterparty_account_number: number,
      transfer_id: id.map((bits) => `trf_${bits}`),
      reverses_transaction_id: id.map((bits) => `txn_${bits}`),
    },
    {
      requiredKeys: [
        'entry_id',
        'operation_id',
        'transaction_id',
        'account_id',
        'sequence',
        'direction',
        'side',
        'amount',
        'currency',
        'balance_after',
        'created_at',
        'transaction_type',
        'description',
        'reference',
      ],
    },
  );
const anyStatement = fc.constantFrom(...currencies).chain((currency) =>
  fc.record({
    statement: fc.record({
      account_number: number,
      currency: fc.constant(currency),
      opening_balance: signed(currency),
      closing_balance: signed(currency),
      debit_total: total(currency),
      credit_total: total(currency),
      entry_count: fc.nat(100_000),
      entries: fc.array(anyEntry(currency), { maxLength: 4 }),
    }),
    holder: fc.option(
      anyText(300).filter((name) => name !== ''),
      { nil: undefined },
    ),
    bank: anyText(200).filter((name) => name !== ''),
    day: time.map((date) => date.toISOString().slice(0, 10)),
    created_at: time.map(Number),
    timeZone: fc.constantFrom('UTC', 'Pacific/Kiritimati', 'Pacific/Apia', 'America/St_Johns', 'Africa/Monrovia'),
  }),
);

describe('a statement as camt.053', () => {
  it('is valid whatever the texts, amounts, currencies, and times are', () => {
    // contract: days-23, days-26
    fc.assert(
      fc.property(anyStatement, ({ statement: figures, holder, bank, day, created_at, timeZone }) => {
        setBankFormats({ name: bank, timeZone, locale: undefined });
        const all = statement(figures);
        const text = write({ statement: all, holder, created_at, on: day });
        expect(find(text, 'Ntry/Amt')).toEqual(all.entries.map(({ amount }) => amount));
        // What XML can contain is read as it was written; a reader shows CR and CRLF as LF.
        const readable = (given: string) =>
          given
            .replace(/[^\t\n\r\u{20}-\u{d7ff}\u{e000}-\u{fffd}\u{10000}-\u{10ffff}]/gu, '\ufffd')
            .replace(/\r\n?/g, '\n');
        const described = all.entries.map(({ description }) => readable(description ?? '')).join('');
        expect(find(text, 'Ustrd').join('')).toBe(described);
      }),
      { numRuns: 300 },
    );
  });

  it('has the balances, totals, and dates of the day in the time zone of the bank', () => {
    // contract: days-24
    setBankFormats({ name: 'Bank of Nairobi', timeZone: 'Africa/Nairobi', locale: 'en-KE' });
    const figures = {
      opening_balance: '-30.00',
      closing_balance: '70.00',
      debit_total: '5.00',
      credit_total: '105.00',
    };
    const text = write({ statement: statement({ ...figures, entries: [line] }), holder: 'Baraka & Sons' });
    expect(
      valuesIn(
        text,
        'Stmt/Id',
        'FrDtTm',
        'ToDtTm',
        'Acct/Id/Othr/Id',
        'Acct/Tp/Cd',
        'Acct/Ccy',
        'Ownr/Nm',
        'FinInstnId/Nm',
      ),
    ).toEqual([
      'SAV-1234567897-2026-01-31',
      '2026-01-31T00:00:00.000+03:00',
      '2026-01-31T23:59:59.999+03:00',
      'SAV-1234567897',
      'SVGS',
      'USD',
      'Baraka & Sons',
      'Bank of Nairobi',
    ]);
    expect(valuesIn(text, 'Bal/Tp/CdOrPrtry/Cd', 'Bal/Amt', 'Bal/Amt/@Ccy', 'Bal/CdtDbtInd', 'Bal/Dt/Dt')).toEqual([
      'OPBD CLBD',
      '30.00 70.00',
      'USD USD',
      'DBIT CRDT',
      `${on} ${on}`,
    ]);
    expect(valuesIn(text, 'NbOfNtries', 'TtlCdtNtries/Sum', 'TtlDbtNtries/Sum')).toEqual(['1', '105.00', '5.00']);
    // 23:30 UTC is the next day in Nairobi.
    expect(valuesIn(text, 'Ntry/BookgDt/DtTm', 'Ntry/ValDt/Dt')).toEqual(['2026-02-02T02:30:00.000+03:00', on]);
  });

  it('says what each entry is, and with whom', () => {
    // contract: days-25
    const [txn, trf] = [ids.transaction.slice(4), ids.transfer.slice(4)];
    const counterparty_account_number = 'CHK-9876543217';
    const transfer = { transaction_type: 'Transfer' as const, counterparty_account_number, transfer_id: ids.transfer };
    const out = { direction: 'debit' as const, side: 'DR' as const };
    const reverses_transaction_id = ids.transaction;
    const paths = [
      'CdtDbtInd',
      'RvslInd',
      'BkTxCd/Domn/Fmly/Cd',
      'BkTxCd/Domn/Fmly/SubFmlyCd',
      'BkTxCd/Prtry/Cd',
      'NtryDtls/TxDtls/Refs/TxId',
      'NtryDtls/TxDtls/RltdPties/DbtrAcct',
      'NtryDtls/TxDtls/RltdPties/CdtrAcct',
    ];
    const said = (entry: Partial<EntryLine>) => valuesIn(ofEntries(entry), ...paths.map((path) => `Ntry/${path}`));
    expect(said({})).toEqual(['CRDT', '', 'CNTR', 'CDPT', 'Deposit', '', '', '']);
    expect(said({ transaction_type: 'Withdrawal', ...out })).toEqual([
      'DBIT',
      '',
      'CNTR',
      'CWDL',
      'Withdrawal',
      '',
      '',
      '',
    ]);
    expect(said(transfer)).toEqual(['CRDT', '', 'RCDT', 'BOOK', 'Transfer', trf, counterparty_account_number, '']);
    expect(said({ ...transfer, ...out })).toEqual([
      'DBIT',
      '',
      'ICDT',
      'BOOK',
      'Transfer',
      trf,
      '',
      counterparty_account_number,
    ]);
    // The reversal of what was received: the code and the party are those of the original.
    expect(said({ ...transfer, ...out, reverses_transaction_id })).toEqual([
      'DBIT',
      'true',
      'RCDT',
      'BOOK',
      'Transfer',
      trf,
      counterparty_account_number,
      '',
    ]);
    expect(said({ ...transfer, ...out, transaction_type: 'Loan Payment' })).toEqual([
      'DBIT',
      '',
      '',
      '',
      'Loan Payment',
      trf,
      '',
      counterparty_account_number,
    ]);
    expect(
      valuesIn(ofEntries({ sequence: 7 }), 'Ntry/NtryRef', 'Ntry/Sts/Cd', 'Ntry/AcctSvcrRef', 'Ntry/AddtlNtryInf'),
    ).toEqual(['7', 'BOOK', txn, 'Deposit']);
  });

  it.each([
    ['CHK', 'CACC'],
    ['CUR', 'CACC'],
  ])('of an account %s has the type %s', (prefix, type) => {
    // contract: days-24
    const text = write({ statement: statement({ account_number: `${prefix}-1234567897`, entries: [line] }) });
    expect(find(text, 'Acct/Tp/Cd')).toEqual([type]);
  });

  it('of a loan has what is owed as a debit', () => {
    // contract: days-24
    const entries = [
      { ...line, side: 'DR' as const, transaction_type: 'Withdrawal' as const, amount: '50.00' },
      {
        ...line,
        side: 'CR' as const,
        direction: 'debit' as const,
        transaction_type: 'Loan Payment' as const,
        amount: '20.00',
      },
    ];
    const figures = {
      account_number: 'LOA-1234567897',
      closing_balance: '30.00',
      credit_total: '50.00',
      debit_total: '20.00',
    };
    const text = write({ statement: statement({ ...figures, entries }) });
    expect(
      valuesIn(text, 'Acct/Tp/Cd', 'Bal/CdtDbtInd', 'Ntry/CdtDbtInd', 'TtlCdtNtries/Sum', 'TtlDbtNtries/Sum', 'Domn'),
    ).toEqual(['LOAN', 'CRDT DBIT', 'DBIT CRDT', '20.00', '50.00', '']);
  });

  it('keeps texts whole: in pieces of 140 characters, and a reference of more than 35 beside its place', () => {
    // contract: days-26
    const description = `${'😀'.repeat(139)}ab${'c'.repeat(114)}`;
    const text = ofEntries({ description, reference: 'R'.repeat(35) });
    expect(find(text, 'Ustrd')).toEqual([`${'😀'.repeat(139)}a`, `b${'c'.repeat(114)}`]);
    expect(valuesIn(text, 'EndToEndId', 'AddtlTxInf')).toEqual(['R'.repeat(35), '']);
    expect(valuesIn(ofEntries({ reference: 'R'.repeat(36) }), 'EndToEndId', 'AddtlTxInf')).toEqual([
      '',
      'R'.repeat(36),
    ]);
    expect(valuesIn(ofEntries({ description: 'a\u0001\ud800<b>&' }), 'Ustrd')).toEqual(['a\ufffd\ufffd<b>&']);
  });

  it('has the same MsgId exactly if it has the same content', () => {
    // contract: days-27
    const messageId = (changes: Partial<Statement>, about: Partial<CamtStatement> = {}) =>
      find(write({ statement: statement(changes), ...about }), 'MsgId')[0];
    expect(messageId({}, { created_at: 1.9e12 })).toBe(messageId({}));
    const others = [
      messageId({}),
      messageId({}, { on: '2026-02-01' }),
      messageId({ entry_count: 2 }),
      messageId({ opening_balance: '1.00' }),
      messageId({ account_id: `acc_${'0'.repeat(32)}` }),
    ];
    expect(new Set(others).size).toBe(5);
  });

  it('in the OpenAPI document is one', () => {
    const document = JSON.parse(readFileSync(new URL('../../../docs/openapi.json', import.meta.url), 'utf8'));
    const { responses } = document.paths['/accounts/{account_id}/statement'].get;
    expect(find(responses['200'].content['application/xml'].example, 'Ntry/Amt')).toEqual(['25.00']);
  });
});
