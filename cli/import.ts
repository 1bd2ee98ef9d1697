import { closeSync, openSync, rmSync, writeSync } from 'node:fs';
import { type Command, InvalidArgumentError } from 'commander';
import { endpoints } from '#libs/contracts/endpoints.ts';
import { homeCountry, isCountry } from '#libs/contracts/phones.ts';
import { csvLine } from '#libs/service/csv.ts';
import { parseFields } from '#services/gateway/api/input.ts';
import { Refused } from '#services/gateway/http/errors.ts';
import { createProgress, Failure, jsonOption, openBank, print, printJson, say } from './api.ts';
import { Lines } from './import-names.ts';
import { booksBefore, type Counts, compareBooks, type Report, readBooks, Sums, writeReport } from './import-report.ts';
import {
  accountBody,
  asRead,
  clientBody,
  type Row,
  readRows,
  refusedColumns,
  type Surveyed,
  survey,
} from './import-rows.ts';
import { createImporter, type Outcome } from './import-send.ts';
import { inLanes } from './lanes.ts';

interface ImportOptions {
  clients?: string;
  accounts?: string;
  country?: string;
  callingCode?: string;
  dryRun?: true;
  json?: true;
}

/** `bank import`: clients and accounts of another system (docs/moving-in.md). */
export function addImport(command: Command): void {
  command
    .option('--clients <file>', 'CSV of clients')
    .option('--accounts <file>', 'CSV of accounts; their clients are in --clients, or in the bank')
    .option('--country <code>', 'country of phone numbers without country code, such as KE', (code: string) => {
      if (isCountry(code)) return code;
      throw new InvalidArgumentError('must be the code of a country in ISO 3166, such as KE.');
    })
    .option('--calling-code <digits>', 'the same by its calling code, such as 254', (text: string) => {
      if (/^[1-9]\d{0,2}$/.test(text)) return text;
      throw new InvalidArgumentError('must be a calling code of 1 to 3 digits.');
    })
    .option('--dry-run', 'check every row without sending anything')
    .addOption(jsonOption())
    .addHelpText(
      'after',
      `
Refused rows are written with their reason to <file>.refused.csv, which you can correct and import. The report is
<file>.report.json. An interrupted import continues when it is run again: external_id is the key, and nothing is added
twice. docs/moving-in.md describes the columns and the procedure.

Example:
  bank import --clients clients.csv --accounts accounts.csv --dry-run`,
    )
    .action(async (options: ImportOptions) => {
      const files = await Promise.all(
        (['clients', 'accounts'] as const).flatMap((kind) =>
          options[kind] === undefined ? [] : [survey(kind, options[kind])],
        ),
      );
      const [last] = files.slice(-1);
      if (last === undefined) throw new Failure(2, '--clients, --accounts, or both are needed');
      const { report, refusedFiles } = options.dryRun
        ? await tryOut(files, options)
        : await importAll(files, `${baseName(last.path)}.report.json`, options);
      if (options.json) printJson(report);
      else show(report, options);
      if (refusedFiles.length > 0) throw new Failure(1, `refused rows: ${refusedFiles.join(', ')}`);
      if (report.currencies.some(({ agrees }) => !agrees))
        throw new Failure(
          1,
          'the books differ from the imported sums: somebody else has posted since the import began, or the report of its first run is missing',
        );
    });
}

interface Result {
  report: Report;
  refusedFiles: string[];
}

async function importAll(files: Surveyed[], reportFile: string, options: ImportOptions): Promise<Result> {
  const bank = openBank({ attempts: 8, deadlineMs: 120_000 });
  const books_before = await booksBefore(reportFile, bank);
  const importer = createImporter(bank, homeCountry(options.country ?? options.callingCode));
  const { counts, sums, refusedFiles } = await takeAll(files, (kind, row) => importer[kind](row));
  const report = { ...counts, currencies: sums.against(compareBooks(books_before, await readBooks(bank))) };
  writeReport(reportFile, { books_before, ...report });
  return { report, refusedFiles };
}

/** Applies the bank's own rules to each row. Only the bank knows whether a number or id is already used. */
async function tryOut(files: Surveyed[], options: ImportOptions): Promise<Result> {
  const clients = files.find(({ kind }) => kind === 'clients');
  const judge = (kind: Surveyed['kind'], row: Row): Outcome => {
    const client = row.values['client_external_id'] ?? '';
    if (kind === 'accounts' && clients?.externalIds.has(client) === false)
      return { refused: `client_external_id: ${clients.path} has no client ${client}` };
    try {
      if (kind === 'clients')
        parseFields(endpoints.create_client.body, clientBody(row, homeCountry(options.country ?? options.callingCode)));
      else parseFields(endpoints.open_account.body, asRead(accountBody(row, '')));
      return 'imported';
    } catch (error) {
      if (error instanceof Refused) return { refused: `${error.refusal.code}: ${error.refusal.message}` };
      throw error;
    }
  };
  const { counts, sums, refusedFiles } = await takeAll(files, async (kind, row) => judge(kind, row));
  return { report: { ...counts, currencies: sums.against() }, refusedFiles };
}

type Take = (kind: Surveyed['kind'], row: Row) => Promise<Outcome>;

async function takeAll(
  files: Surveyed[],
  take: Take,
): Promise<{ counts: Partial<Record<Surveyed['kind'], Counts>>; sums: Sums; refusedFiles: string[] }> {
  const sums = new Sums();
  const counts: Partial<Record<Surveyed['kind'], Counts>> = {};
  const refusedFiles: string[] = [];
  for (const file of files) {
    const count = await takeRows(file, async (row) => {
      const outcome = await take(file.kind, row);
      const { account_type = '', currency = '', opening_balance = '0' } = row.values;
      if (file.kind === 'accounts' && typeof outcome === 'string') sums.add(account_type, currency, opening_balance);
      return outcome;
    });
    counts[file.kind] = count;
    if (count.refused > 0) refusedFiles.push(refusedName(file));
  }
  return { counts, sums, refusedFiles };
}

/**
 * Processes every row of a file; refused rows are written unchanged with the reason to a separate
 * file.
 */
async function takeRows(file: Surveyed, take: (row: Row) => Promise<Outcome>): Promise<Counts> {
  const counts: Counts = { rows: file.rows, imported: 0, already_there: 0, refused: 0 };
  const [externalIds, accountNumbers] = [new Lines(file.externalIds), new Lines(file.accountNumbers)];
  const repeated = ({ line, values }: Row): string | undefined => {
    const [name, number] = [
      externalIds.before(values['external_id'], line),
      accountNumbers.before(values['account_number'], line),
    ];
    if (name !== undefined) return `external_id is that of line ${name}`;
    return number === undefined ? undefined : `account_number is that of line ${number}`;
  };
  const kept = file.columns.filter((column) => !(refusedColumns as readonly string[]).includes(column));
  const told = createProgress(file.kind, file.rows);
  const out = openSync(refusedName(file), 'w', 0o600);
  const begun = performance.now();
  try {
    writeSync(out, csvLine([...kept, ...refusedColumns]));
    await inLanes(readRows(file), async (row) => {
      const fault = row.fault ?? repeated(row);
      const outcome = fault === undefined ? await take(row) : { refused: fault };
      if (typeof outcome === 'string') counts[outcome]++;
      else {
        counts.refused++;
        writeSync(
          out,
          csvLine([
            ...row.fields.filter((_, at) => kept.includes(file.columns[at] ?? '')),
            String(row.line),
            // The field of POST /accounts, by the name of its column.
            outcome.refused.replaceAll('initial_deposit', 'opening_balance'),
          ]),
        );
      }
      told(counts.imported + counts.already_there + counts.refused);
    });
  } finally {
    closeSync(out);
  }
  if (counts.refused === 0) rmSync(refusedName(file));
  say(`${file.kind}: ${file.rows} rows in ${((performance.now() - begun) / 1000).toFixed(1)} s`);
  return counts;
}

const baseName = (path: string): string => path.replace(/\.csv$/i, '');
const refusedName = ({ path }: Surveyed): string => `${baseName(path)}.refused.csv`;

function show({ clients, accounts, currencies }: Report, { dryRun }: ImportOptions): void {
  for (const [kind, counts] of Object.entries({ clients, accounts })) {
    if (!counts) continue;
    const { rows, imported, already_there, refused } = counts;
    print(
      `${kind}: ${rows} rows, ${dryRun ? `${imported} valid` : `${imported} imported, ${already_there} already existed`}, ${refused} refused`,
    );
  }
  for (const { currency, accounts: count, deposits, loans, deposits_in_books, loans_in_books, agrees } of currencies) {
    const sums = `${currency}: ${count} accounts, deposits ${deposits}, loans ${loans}`;
    if (dryRun) print(sums);
    else
      print(`${sums}; the books ${agrees ? 'match' : `have deposits ${deposits_in_books}, loans ${loans_in_books}`}`);
  }
}
