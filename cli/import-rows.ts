import { createReadStream } from 'node:fs';
import { currencyDigits, isCurrency, NumberText } from '#libs/contracts/money.ts';
import type { HomeCountry } from '#libs/contracts/phones.ts';
import { CsvError, csvRecords, decodeText } from '#libs/service/csv.ts';
import { internationalPhones } from '#services/gateway/api/input.ts';
import { Failure } from './api.ts';
import { Names } from './import-names.ts';

/** Files of an import: their rows, and the requests for the rows. */

export type Kind = 'clients' | 'accounts';

const named = {
  clients: [
    'external_id',
    'client_type',
    'first_name',
    'last_name',
    'company_name',
    'registration_number',
    'email',
    'contact_number',
    'address',
    'ussd_phone_number',
    'ussd_status',
  ],
  accounts: [
    'external_id',
    'client_external_id',
    'account_number',
    'account_type',
    'currency',
    'opening_balance',
    'status',
  ],
} as const;
/** Columns of a file of refused rows, which can be corrected and imported unchanged. */
export const refusedColumns = ['refused_line', 'refused_because'] as const;
const needed = {
  clients: ['external_id', 'client_type'],
  accounts: ['external_id', 'client_external_id', 'account_type', 'currency'],
} as const;

export interface Row {
  line: number;
  fields: string[];
  /** Values by column, without empty ones. */
  values: Record<string, string>;
  /** The reason why the row cannot be sent to the bank. */
  fault: string | undefined;
}

/** A file that has been read once, to its end. */
export interface Surveyed {
  kind: Kind;
  path: string;
  columns: string[];
  rows: number;
  externalIds: Names;
  accountNumbers: Names;
}

/**
 * Reads the file once, to find errors that prevent its import before anything is sent. Throws a
 * Failure with the error.
 */
export async function survey(kind: Kind, path: string): Promise<Surveyed> {
  const surveyed: Surveyed = {
    kind,
    path,
    columns: [],
    rows: 0,
    externalIds: new Names(),
    accountNumbers: new Names(),
  };
  for await (const row of readRows(surveyed)) {
    surveyed.rows++;
    surveyed.externalIds.add(row.values['external_id']);
    surveyed.accountNumbers.add(row.values['account_number']);
  }
  surveyed.externalIds.seal();
  surveyed.accountNumbers.seal();
  return surveyed;
}

/** Reads the rows after the header, and sets the columns. */
export async function* readRows(file: Surveyed): AsyncGenerator<Row, void> {
  let columns: string[] | undefined;
  try {
    for await (const { line, fields, fault } of csvRecords(decodeText(createReadStream(file.path)))) {
      if (columns === undefined) columns = file.columns = checkedColumns(file, fields);
      else yield { line, fields, ...(fault === undefined ? read(columns, fields) : { values: {}, fault }) };
    }
  } catch (error) {
    if (error instanceof CsvError || (error instanceof Error && 'syscall' in error))
      throw new Failure(2, `${file.path}: ${error.message}`);
    throw error;
  }
  if (columns === undefined) throw new Failure(2, `${file.path}: is empty; its first line must name the columns`);
}

function checkedColumns({ kind, path }: Surveyed, columns: string[]): string[] {
  const known: readonly string[] = [...named[kind], ...refusedColumns];
  const unknown = columns.filter((column) => !known.includes(column) && !/^metadata\.[a-z0-9_.-]{1,40}$/.test(column));
  if (unknown.length > 0)
    throw new Failure(
      2,
      `${path}: unknown column ${unknown.join(', ')}: known are ${named[kind].join(', ')} and metadata.<key>`,
    );
  const twice = columns.filter((column, at) => columns.indexOf(column) !== at);
  if (twice.length > 0) throw new Failure(2, `${path}: column ${twice.join(', ')} is repeated`);
  const missing = needed[kind].filter((column) => !columns.includes(column));
  if (missing.length > 0) throw new Failure(2, `${path}: column ${missing.join(', ')} is missing`);
  return columns;
}

/** The bank trims the values of all other columns, too. */
const isKeptAsWritten = (column: string): boolean => /external_id$|^metadata\./.test(column);

function read(columns: string[], fields: string[]): Pick<Row, 'values' | 'fault'> {
  const values = Object.fromEntries(
    columns
      .map((column, at) => [column, isKeptAsWritten(column) ? (fields[at] ?? '') : (fields[at] ?? '').trim()])
      .filter(([column = '', text]) => text !== '' && !(refusedColumns as readonly string[]).includes(column)),
  );
  return { values, fault: findFault(columns, values) };
}

/**
 * Returns why the row cannot be sent, before the bank's own rules are checked: without an external_id, it could not be
 * found again.
 */
function findFault(
  columns: string[],
  { external_id, opening_balance = '0', ...values }: Record<string, string>,
): string | undefined {
  if (external_id === undefined || !/^[\x20-\x7e]{1,128}$/.test(external_id))
    return 'external_id must have 1 to 128 printable ASCII characters';
  if (columns.includes('client_external_id') && values['client_external_id'] === undefined)
    return 'client_external_id is required';
  // A double represents 15 digits unchanged.
  const isAmount =
    /^\d{1,15}(\.\d{1,4})?$/.test(opening_balance) && opening_balance.replace(/\D|^0+/g, '').length <= 15;
  if (!isAmount) return 'opening_balance must be an amount not below 0 such as 250.75, of at most 15 digits';
  const { currency = '' } = values;
  const further = isCurrency(currency) ? opening_balance.split('.')[1]?.slice(currencyDigits(currency)) : undefined;
  // The bank's own rules refuse other digits than zeros.
  return further !== undefined && /^0+$/.test(further)
    ? `opening_balance has more decimal places than ${currency} has: a point never groups digits`
    : undefined;
}

type Body = Record<string, unknown>;

/** Returns the body of POST /clients. */
export function clientBody({ values }: Row, home: HomeCountry | undefined): Body {
  return internationalPhones(toFields(values), home);
}

/** Returns the body of POST /accounts. The amount is a JSON number with the digits of the file. */
export function accountBody(
  { values: { client_external_id: _, opening_balance = '0', ...values } }: Row,
  client_id: string,
): Body {
  return { client_id, ...toFields(values), initial_deposit: Number(opening_balance), migrated: true };
}

/** Parses the row as the bank does: numbers keep their digits. */
export function asRead(body: Body): Body {
  return 'initial_deposit' in body
    ? { ...body, initial_deposit: new NumberText(String(body['initial_deposit'])) }
    : body;
}

function toFields(values: Record<string, string>): Body {
  const isNote = ([column]: [string, string]) => column.startsWith('metadata.');
  const notes = Object.entries(values)
    .filter(isNote)
    .map(([column, text]) => [column.slice('metadata.'.length), text]);
  return {
    ...Object.fromEntries(Object.entries(values).filter((entry) => !isNote(entry))),
    ...(notes.length === 0 ? {} : { metadata: Object.fromEntries(notes) }),
  };
}
