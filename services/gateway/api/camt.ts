import { hash } from 'node:crypto';
import Builder from 'fast-xml-builder';
import { isLoanNumber } from '#libs/contracts/accounts.ts';
import { idBits } from '#libs/contracts/ids.ts';
import type { EntryLine, Statement } from '#libs/contracts/statements.ts';
import { bankName, bankTime, endOfDay, startOfDay } from '#libs/service/formats.ts';

/**
 * ISO 20022 camt.053.001.08 (BankToCustomerStatement), which accounting software reads: the elements and the lengths of
 * their texts are those of its schema, and the codes are of the external code sets.
 */

/** What a file says besides its entries. */
export interface CamtStatement {
  /** The first page of the statement of one day by value date. */
  statement: Statement;
  on: string;
  /** The name of the account's owner, if the caller may see it. */
  holder: string | undefined;
  /** In ms since 1970. */
  created_at: number;
}

/** Elements in their order. Undefined ones are left out, and lists are repeated. */
interface Xml {
  [name: string]: string | Xml | readonly (string | Xml)[] | undefined;
}

/** What XML 1.0 cannot contain (section 2.2), and half surrogate pairs. */
const notXml = /[^\t\n\r\u{20}-\u{d7ff}\u{e000}-\u{fffd}\u{10000}-\u{10ffff}]/gu;
const builder = new Builder({
  attributeNamePrefix: '@',
  ignoreAttributes: false,
  tagValueProcessor: (_name, value) => String(value).replace(notXml, '\ufffd'),
});
const build = (xml: Xml): string => builder.build(xml);

const accountTypes = new Map([
  ['SAV', 'SVGS'],
  ['CHK', 'CACC'],
  ['CUR', 'CACC'],
  ['LOA', 'LOAN'],
]);
const isLoan = ({ account_number }: Statement): boolean => isLoanNumber(account_number);

/** Returns the text before the entries. */
export const camtStart = (about: CamtStatement): string => `<?xml version="1.0" encoding="UTF-8"?>
<Document xmlns="urn:iso:std:iso:20022:tech:xsd:camt.053.001.08"><BkToCstmrStmt>
${build({ GrpHdr: { MsgId: messageId(about), CreDtTm: bankTime(about.created_at) } })}
<Stmt>${build(statementHead(about))}
`;

/** Returns the text of a page of entries. */
export const camtEntries = (page: Statement, on: string): string =>
  page.entries.map((entry) => `${build({ Ntry: entryElements(entry, on, isLoan(page)) })}\n`).join('');

/** The text after the entries. */
export const camtEnd = '</Stmt></BkToCstmrStmt></Document>\n';

/**
 * Entries are only ever added, so the balance before the day and the number of its entries say whether two files have the same
 * content. Programs that have read a message do not read it again.
 */
function messageId({ statement, on }: CamtStatement): string {
  const { account_id, opening_balance, entry_count } = statement;
  return hash('sha256', [account_id, on, opening_balance, entry_count].join(' ')).slice(0, 32);
}

function statementHead({ statement, on, holder, created_at }: CamtStatement): Xml {
  const { account_number, currency, opening_balance, closing_balance, credit_total, debit_total } = statement;
  const type = accountTypes.get(account_number.slice(0, 3));
  // On a loan, a credit raises what is owed: in the books, a debit (contract: double-entry-3).
  const [credits, debits] = isLoan(statement) ? [debit_total, credit_total] : [credit_total, debit_total];
  const balance = (code: string, amount: string) => ({
    Tp: { CdOrPrtry: { Cd: code } },
    Amt: money(amount.replace('-', ''), currency),
    CdtDbtInd: indicator(!/[1-9]/.test(amount) || amount.startsWith('-') === isLoan(statement)),
    Dt: { Dt: on },
  });
  return {
    Id: `${account_number}-${on}`,
    CreDtTm: bankTime(created_at),
    FrToDt: { FrDtTm: bankTime(Date.parse(startOfDay(on))), ToDtTm: bankTime(Date.parse(endOfDay(on)) - 1) },
    Acct: {
      Id: { Othr: { Id: account_number } },
      Tp: type && { Cd: type },
      Ccy: currency,
      Ownr: holder === undefined ? undefined : { Nm: pieces(holder, 140)[0] },
      Svcr: { FinInstnId: { Nm: pieces(bankName(), 140)[0] } },
    },
    Bal: [balance('OPBD', opening_balance), balance('CLBD', closing_balance)],
    TxsSummry: {
      TtlNtries: { NbOfNtries: String(statement.entry_count) },
      TtlCdtNtries: { Sum: sum(credits) },
      TtlDbtNtries: { Sum: sum(debits) },
    },
  };
}

function entryElements(entry: EntryLine, on: string, isOfLoan: boolean): Xml {
  const { sequence, amount, currency, side, created_at, transaction_type, description, reference } = entry;
  const { transaction_id, transfer_id, reverses_transaction_id, counterparty_account_number: counterparty } = entry;
  const isReversal = reverses_transaction_id !== undefined;
  // A reversal has the code and the parties of what it reverses.
  const isOfCredit = (side === 'CR') !== isReversal;
  const [family, subfamily] = isOfLoan ? [] : codes(transaction_type, isOfCredit);
  const [short, long] = reference && [...reference].length > 35 ? [undefined, reference] : [reference || undefined];
  return {
    NtryRef: String(sequence),
    Amt: money(amount, currency),
    CdtDbtInd: indicator(side === 'CR'),
    RvslInd: isReversal ? 'true' : undefined,
    Sts: { Cd: 'BOOK' },
    BookgDt: { DtTm: bankTime(Date.parse(created_at)) },
    ValDt: { Dt: on },
    AcctSvcrRef: idBits(transaction_id),
    BkTxCd: {
      Domn: family && { Cd: 'PMNT', Fmly: { Cd: family, SubFmlyCd: subfamily } },
      Prtry: { Cd: transaction_type },
    },
    NtryDtls: {
      TxDtls: {
        Refs: { AcctSvcrRef: idBits(transaction_id), EndToEndId: short, TxId: transfer_id && idBits(transfer_id) },
        RltdPties: counterparty && { [isOfCredit ? 'DbtrAcct' : 'CdtrAcct']: { Id: { Othr: { Id: counterparty } } } },
        RmtInf: description ? { Ustrd: pieces(description, 140) } : undefined,
        AddtlTxInf: long,
      },
    },
    AddtlNtryInf: transaction_type,
  };
}

/** Returns the family and subfamily of payments, where there is one that says exactly this. */
function codes(type: EntryLine['transaction_type'], isCredit: boolean): [] | [family: string, subfamily: string] {
  if (type === 'Deposit' && isCredit) return ['CNTR', 'CDPT'];
  if (type === 'Withdrawal' && !isCredit) return ['CNTR', 'CWDL'];
  return type === 'Transfer' ? [isCredit ? 'RCDT' : 'ICDT', 'BOOK'] : [];
}

const indicator = (isCredit: boolean): string => (isCredit ? 'CRDT' : 'DBIT');
const money = (amount: string, currency: string): Xml => ({ '@Ccy': currency, '#text': amount });

/** A sum has at most 18 digits; a larger one, of thousands of the largest amounts, is left out. */
const sum = (amount: string): string | undefined => (amount.replace('.', '').length > 18 ? undefined : amount);

/** Cuts a text into pieces of at most so many characters, which the schema counts as code points. */
function pieces(text: string, length: number): string[] {
  const characters = [...text];
  return Array.from({ length: Math.ceil(characters.length / length) }, (_, i) =>
    characters.slice(i * length, (i + 1) * length).join(''),
  );
}
