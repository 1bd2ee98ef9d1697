import { randomUUID } from 'node:crypto';
import { Readable } from 'node:stream';
import type { FastifyInstance } from 'fastify';
import { z } from 'zod';
import { type Account, type Batch, batchMode } from '#libs/contracts/resources.ts';
import { plainMoney } from '#libs/service/formats.ts';
import { html } from '#libs/service/html.ts';
import { ApiRefused, inTurns } from '../api.ts';
import { jsonNumber } from '../html/amounts.ts';
import { type CsvColumn, csvHead, csvRows } from '../html/csv.ts';
import { idempotencyKeyOf } from '../html/forms.ts';
import { addDownload, addForm, addPage, type Shown, type Visit } from '../html/frame.ts';
import { accountIdOf, clientsOf, numbersOf, readTogether } from '../html/owners.ts';
import { checkLines, type Payment, type RefusedLine } from './batch-check.ts';
import { type FileLine, linesIn, maxPayments } from './batch-file.ts';
import {
  batchesUrl,
  batchPage,
  type Names,
  preview,
  type ResultRow,
  reasonOf,
  refusedBatch,
  resultRow,
  startPage,
  unknownBatch,
} from './batch-views.ts';
import { nameOf } from './client-views.ts';
import { createSealed, isUnknown } from './confirmation.ts';

const lineSchema = z.object({
  line: z.number(),
  from: z.string(),
  to: z.string(),
  amount: z.string(),
  currency: z.string(),
  reference: z.string(),
  description: z.string(),
});
/** A checked file that can be sent. */
const instructionSchema = z.object({
  actor: z.string(),
  file: z.string(),
  mode: batchMode,
  idempotency_key: z.string(),
  payments: z.array(
    z.object({
      line: lineSchema,
      from_id: z.string().optional(),
      to_id: z.string().optional(),
      amount: z.string(),
      currency: z.string(),
    }),
  ),
});
type Instruction = z.infer<typeof instructionSchema>;
type Sealed = ReturnType<typeof createSealed<Instruction>>;

const page = { title: 'Payments from a file', scope: ['transactions:write', 'transfers:write'] } as const;
/** A file and the result of its check. */
const upload = { ...page, bodyLimit: 2 * 1024 * 1024 };

/** Batches: upload a file of payments, check it, send it, follow its progress, download the results. */
export function addBatches(app: FastifyInstance, secrets: readonly string[]): void {
  const instructions = createSealed(instructionSchema, 'batch', secrets);
  addPage(app, batchesUrl, page, ({ person, query }) => {
    const batch = query.get('batch')?.trim() ?? '';
    if (batch !== '') return { goTo: `${batchesUrl}/${encodeURIComponent(batch)}` };
    return { content: startPage(person, query, {}) };
  });
  addForm(app, `${batchesUrl}/preview`, upload, (visit) => look(visit, instructions));
  addForm(app, `${batchesUrl}/sending`, upload, (visit) => send(visit, instructions));
  addResults(app);
}

/** Shows every payment of the file and every refused line. Nothing is sent yet. */
async function look(visit: Visit, instructions: Sealed): Promise<Shown> {
  const { fields, person, actor } = visit;
  const mode = batchMode.catch('independent').parse(fields.get('mode'));
  const read = linesIn(fields.get('file') ?? '');
  const isTooLong = 'lines' in read && mode === 'atomic' && read.lines.length > maxPayments / 2;
  if ('wrong' in read || isTooLong) {
    const file = 'wrong' in read ? read.wrong : `At most ${maxPayments / 2} payments can be posted all or none.`;
    visit.logRefused();
    return { status: 400, content: startPage(person, fields, { fields: { file } }) };
  }
  const accounts = await accountsOf(visit, read.lines);
  const checked = checkLines(read.lines, accounts, person.scopes, mode);
  const isSendable = checked.payments.length > 0 && (mode === 'independent' || checked.refused.length === 0);
  const file = (fields.get('file_name') ?? '').slice(0, 200) || 'your file';
  const sealed = isSendable
    ? instructions.seal({
        actor,
        file,
        mode,
        idempotency_key: idempotencyKeyOf(visit) ?? randomUUID(),
        payments: checked.payments.map(entered),
      })
    : undefined;
  const names = await namesOf(visit, [...accounts.values()]);
  return {
    title: `Payments of ${file}: is this right?`,
    content: preview(visit, { file, isAtomic: mode === 'atomic', checked, names, sealed }),
  };
}

const entered = ({ line, from, to, amount, currency }: Payment): Instruction['payments'][number] => ({
  line,
  amount,
  currency,
  ...(from && { from_id: from.account_id }),
  ...(to && { to_id: to.account_id }),
});

/** Returns the accounts that the lines name, by number. */
async function accountsOf(visit: Visit, lines: readonly FileLine[]): Promise<Map<string, Account>> {
  const numbers = new Set(lines.flatMap(({ from, to }) => [from, to]).filter((number) => number !== ''));
  const ids: string[] = [];
  await inTurns([...numbers], async (number) => {
    const id = await accountIdOf(visit.api, number);
    if (id !== undefined) ids.push(id);
  });
  // Unlike in lists, a failed read must not look like a missing account.
  const accounts = await readTogether<Account>(visit.api, ids, '/accounts?account_ids=');
  return new Map(accounts.map((account) => [account.account_number, account]));
}

/** Returns the owners of the accounts if the person may read clients. */
async function namesOf(visit: Visit, accounts: readonly Account[]): Promise<Names> {
  const clients = await clientsOf(visit, accounts);
  return new Map(
    accounts.flatMap(({ account_id, client_id }) => {
      const owner = clients.get(client_id);
      return owner ? [[account_id, nameOf(owner)] as const] : [];
    }),
  );
}

/**
 * The item of the batch for one payment. It contains the line number of the file, so that results
 * can be matched to lines for as long as the batch is kept.
 */
function itemOf({ line, from_id, to_id, amount, currency }: Instruction['payments'][number], file: string): object {
  const { description, reference } = line;
  const common = {
    amount: jsonNumber(amount),
    currency,
    metadata: { line: String(line.line), file },
    ...(description !== '' && { description }),
  };
  if (from_id !== undefined && to_id !== undefined)
    return { transfer: { from_account_id: from_id, to_account_id: to_id, ...common } };
  const cash = { ...common, ...(reference !== '' && { reference }) };
  return from_id === undefined
    ? { transaction: { account_id: to_id, transaction_type: 'Deposit', ...cash } }
    : { transaction: { account_id: from_id, transaction_type: 'Withdrawal', ...cash } };
}

/** Calls the API with the form's idempotency key. */
async function send(visit: Visit, instructions: Sealed): Promise<Shown> {
  const sealed = visit.fields.get('of') ?? '';
  const instruction = instructions.open(sealed, visit.actor);
  if (!instruction)
    return {
      status: 404,
      title: 'Not found',
      content: refusedBatch([], 'This page is not yours, or can no longer be read.'),
    };
  const { file, mode, payments, idempotency_key } = instruction;
  try {
    const items = payments.map((payment) => itemOf(payment, file));
    const { data } = await visit.api.post<Batch>('/batches', { mode, items }, idempotency_key);
    return { goTo: `${batchesUrl}/${data.batch_id}` };
  } catch (error) {
    if (!(error instanceof ApiRefused) || error.status === 401) throw error;
    if (isUnknown(error)) return { title: 'Not known yet', content: unknownBatch(visit, file, sealed) };
    const rows = refusedLines(error, payments);
    const text = rows.length > 0 ? 'Correct these lines, and upload it again.' : reasonOf(error.problem.code);
    return { status: error.status, title: 'The file was refused', content: refusedBatch(rows, text) };
  }
}

/** Returns the lines for which a whole batch was refused. */
function refusedLines({ problem }: ApiRefused, payments: Instruction['payments']): RefusedLine[] {
  return (problem.errors ?? []).flatMap(({ field, code }) => {
    const line = payments[Number(/^items\[(\d+)\]/.exec(field)?.[1])]?.line;
    return line ? [{ line, reason: reasonOf(code) }] : [];
  });
}

const pageSize = 50;

function addResults(app: FastifyInstance): void {
  const page = { title: 'Batch', scope: 'transactions:read' } as const;
  const batchOf = async ({ api, id }: Visit) => (await api.get<Batch>(`/batches/${id}`)).data;
  addPage(app, `${batchesUrl}/:batch_id`, page, async (visit) => {
    const batch = await wholeOrRefused(() => batchOf(visit));
    if ('content' in batch) return batch;
    const isRefusedOnly = visit.query.get('only') === 'refused';
    const shown = isRefusedOnly ? batch.results.filter(({ status }) => status === 'Failed') : batch.results;
    const at = Math.max(0, Number.parseInt(visit.query.get('cursor') ?? '0', 10) || 0);
    const rows = shown.slice(at, at + pageSize).map(resultRow);
    const next = at + pageSize < shown.length ? String(at + pageSize) : undefined;
    const numbers = await numbersOf(visit, placesOf(rows));
    return {
      title: 'Batch of payments',
      content: batchPage(visit, { batch, rows, numbers, isRefusedOnly, next }),
    };
  });
  addDownload(app, `${batchesUrl}/:batch_id/results.csv`, { ...page, title: 'Batch results' }, async (visit) => {
    const rows = (await batchOf(visit)).results.map(resultRow);
    const numbers = await numbersOf(visit, placesOf(rows));
    const columns = resultColumns(numbers);
    return Readable.from([csvHead(columns), csvRows(columns, rows)]);
  });
}

const placesOf = (rows: readonly ResultRow[]) => rows.flatMap(({ from, to }) => [from, to]);

/** If an item was refused and nothing was posted, the API returns the same error as for the request. */
async function wholeOrRefused(read: () => Promise<Batch>): Promise<Batch | (Shown & { content: unknown })> {
  try {
    return await read();
  } catch (error) {
    if (!(error instanceof ApiRefused) || ![400, 409, 422].includes(error.status)) throw error;
    const items = (error.problem.errors ?? []).map(({ field, code }) => {
      const index = Number(/\d+/.exec(field)?.[0]);
      return html`<li>Payment ${String(index + 1)}: ${reasonOf(code)}</li>`;
    });
    return {
      title: 'The batch was refused',
      content: html`${refusedBatch([], items.length > 0 ? 'A single refused payment is enough.' : reasonOf(error.problem.code))}<ul>${items}</ul>`,
    };
  }
}

function resultColumns(numbers: ReadonlyMap<string, string>): CsvColumn<ResultRow>[] {
  const place = (id: string | undefined) => id && (numbers.get(id) ?? id);
  return [
    'line',
    'status',
    { title: 'why', value: ({ reason }) => reason },
    { title: 'type', value: ({ kind }) => kind },
    { title: 'from', value: ({ from }) => place(from) },
    { title: 'to', value: ({ to }) => place(to) },
    { title: 'amount', value: ({ amount, currency }) => (amount === '' ? '' : plainMoney(amount, currency)) },
    'currency',
    'reference',
    'description',
    'id',
  ];
}
