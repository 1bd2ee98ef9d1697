import { randomUUID } from 'node:crypto';
import { Readable } from 'node:stream';
import type { FastifyInstance } from 'fastify';
import { z } from 'zod';
import type { Account } from '#libs/contracts/accounts.ts';
import { type Batch, type BatchSummary, batchMode } from '#libs/contracts/batches.ts';
import { clientName } from '#libs/contracts/clients.ts';
import { endpoints } from '#libs/contracts/endpoints.ts';
import { violationsRefusal } from '#libs/contracts/errors.ts';
import { NumberText, plainMoney } from '#libs/contracts/money.ts';
import { listViolations } from '#libs/contracts/violations.ts';
import { type Html, html } from '#libs/service/html.ts';
import { ApiRefused, inTurns } from '../api.ts';
import { actorText, readActorNames } from '../html/actors.ts';
import { jsonNumber } from '../html/amounts.ts';
import { type CsvColumn, csvHead, csvRows } from '../html/csv.ts';
import { enteredIdempotencyKey } from '../html/forms.ts';
import { addDownload, addForm, addPage, type PageRequest, type PageResult } from '../html/frame.ts';
import { type List, showList, withChosen } from '../html/lists.ts';
import { accountsBy, findAccountId, readAccountNumbers, readClients, readTogether } from '../html/owners.ts';
import { checkLines, type RefusedLine, toBatchItem, toSentPayment } from './batch-check.ts';
import { type FileLine, linesIn, maxPayments } from './batch-file.ts';
import {
  askAgain,
  batchesUrl,
  batchPage,
  batchTable,
  type Names,
  preview,
  type ResultRow,
  refusedBatch,
  resultParts,
  resultRows,
  resultWords,
  type SentBefore,
  sayNotKept,
  startPage,
  toOmitted,
  unknownBatch,
} from './batch-views.ts';
import { createSealed, isUnknown } from './confirmation.ts';
import { explainRefusal } from './counter-instructions.ts';
import { readRules } from './needs-approval.ts';

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
  sha256: z.string(),
  mode: batchMode,
  idempotency_key: z.string(),
  repeated: z.array(z.number()),
  /** The lines that cannot be sent, as metadata of the batch. Pages that were made before this was added do not have it. */
  omitted: z.record(z.string(), z.string()).catch({}).default({}),
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
  addPage(app, batchesUrl, page, (visit) => {
    const batch = visit.query.get('batch')?.trim() ?? '';
    if (batch !== '') return { redirectTo: `${batchesUrl}/${encodeURIComponent(batch)}` };
    const start = startPage(visit.person, visit.query, {});
    return visit.person.scopes.has('transactions:read') ? showList(visit, sentFiles(visit, start)) : start;
  });
  addForm(app, `${batchesUrl}/preview`, upload, (visit) => look(visit, instructions));
  addForm(app, `${batchesUrl}/sending`, upload, (visit) => send(visit, instructions));
  addResults(app);
}

/** The list of what was sent by anybody, from files and by programs. */
const sentFiles = (visit: PageRequest, above: Html): List<BatchSummary> => ({
  path: '/batches',
  pageSize: 20,
  hasDays: true,
  filters: [
    {
      name: 'actor',
      label: 'Sent by',
      options: withChosen([[visit.actor, 'Me']], visit.query.get('actor'), actorText),
    },
  ],
  above: () => above,
  show: async (rows, sort, isFiltered) =>
    batchTable(rows, await readActorNames(visit, rows, 'actor'), sort, isFiltered),
});

/** Shows every payment of the file and every refused line. Nothing is sent yet. */
async function look(visit: PageRequest, instructions: Sealed): Promise<PageResult> {
  const { fields, person, actor } = visit;
  const mode = batchMode.catch('independent').parse(fields.get('mode'));
  const refuseFile = (file: string): PageResult => {
    visit.logRefused();
    return { status: 400, content: startPage(person, fields, { fields: { file } }) };
  };
  const read = await linesIn(fields.get('file') ?? '');
  if ('wrong' in read) return refuseFile(read.wrong);
  if (mode === 'atomic' && read.lines.length > maxPayments / 2)
    return refuseFile(`At most ${maxPayments / 2} payments can be posted all or none.`);
  const [accounts, rules] = await Promise.all([findAccounts(visit, read.lines), readRules(visit)]);
  const checked = checkLines(read.lines, accounts, person.scopes, mode, rules);
  const isSendable =
    checked.payments.length > 0 &&
    checked.unapproved.length === 0 &&
    (mode === 'independent' || checked.refused.length === 0);
  const instruction = {
    actor,
    file: nameIn(fields.get('file_name') ?? ''),
    sha256: fields.get('file_sha256') ?? '',
    mode,
    idempotency_key: enteredIdempotencyKey(visit) ?? randomUUID(),
    repeated: checked.repeated,
    omitted: toOmitted(checked.refused),
    payments: checked.payments.map(toSentPayment),
  };
  const wrong = isSendable ? brokenRule(instruction) : undefined;
  if (wrong !== undefined) return refuseFile(wrong);
  const before = isSendable ? await sentBefore(visit, instruction) : { batches: [], actors: new Map() };
  const names = await readOwnerNames(visit, [...accounts.values()]);
  const sealed = isSendable ? instructions.seal(instruction) : undefined;
  const { file } = instruction;
  return {
    title: `Payments of ${file}: is this right?`,
    content: preview(visit, { file, isAtomic: mode === 'atomic', checked, names, sealed, before }),
  };
}

/** Returns the name of a file as it can be stored. */
function nameIn(given: string): string {
  const shown = given.toWellFormed().replaceAll(/[\u0000-\u001f\u007f-\u009f]/g, '');
  return [...shown].slice(0, 200).join('') || 'your file';
}

/**
 * The body of POST /batches. The form is stored with the batch, so that a repeat of the form is known from another one, and
 * so are the lines that are not in it, so that nobody believes later that they were paid.
 */
function toBody(
  { mode, payments, sha256, file, idempotency_key: form, omitted }: Instruction,
  toAmount: (amount: string) => unknown = jsonNumber,
): object {
  const items = payments.map((payment) => toBatchItem(payment, toAmount(payment.amount)));
  return { mode, items, external_id: sha256, metadata: { file_name: file, form, ...omitted } };
}

/** Reads the request as the API will, and returns why it would be refused as a whole. */
function brokenRule(instruction: Instruction): string | undefined {
  const { bodyLimit } = endpoints.create_batch;
  if (Buffer.byteLength(JSON.stringify(toBody(instruction))) > bodyLimit)
    return 'The payments are too many to be sent at once. Divide the file into several.';
  const body = toBody(instruction, (amount) => new NumberText(amount));
  const { error } = endpoints.create_batch.body.safeParse(body);
  if (!error) return undefined;
  const { message } = violationsRefusal(listViolations(error, body, 'unknown_field'));
  return `The bank cannot take this file: ${message}.`;
}

/** Returns the batches that other forms sent with the content of this file, unless nothing of them was posted. */
async function sentBefore(visit: PageRequest, { sha256, idempotency_key }: Instruction): Promise<SentBefore> {
  const { data } = await visit.api.get<BatchSummary[]>(`/batches?external_id=${sha256}&limit=20`);
  const batches = data.filter(
    ({ counts, metadata }) =>
      Number(counts.completed) + Number(counts.pending) > 0 && metadata?.['form'] !== idempotency_key,
  );
  return { batches, actors: await readActorNames(visit, batches, 'actor') };
}

/** Returns the accounts that the lines name, by number. */
async function findAccounts(visit: PageRequest, lines: readonly FileLine[]): Promise<Map<string, Account>> {
  const numbers = new Set(lines.flatMap(({ from, to }) => [from, to]).filter((number) => number !== ''));
  const ids: string[] = [];
  await inTurns([...numbers], async (number) => {
    const id = await findAccountId(visit.api, number);
    if (id !== undefined) ids.push(id);
  });
  // Unlike in lists, a failed read must not look like a missing account.
  const accounts = await readTogether<Account>(visit.api, ids, '/accounts?account_ids=');
  return new Map(accounts.map((account) => [account.account_number, account]));
}

/** Returns the owners of the accounts if the person may read clients. */
async function readOwnerNames(visit: PageRequest, accounts: readonly Account[]): Promise<Names> {
  const clients = await readClients(visit, accounts);
  return new Map(
    accounts.flatMap(({ account_id, client_id }) => {
      const owner = clients.get(client_id);
      return owner ? [[account_id, clientName(owner)] as const] : [];
    }),
  );
}

/**
 * Calls the API with the form's idempotency key. A file that was sent before, perhaps while this person looked at it, is
 * sent again only if they confirm that.
 */
async function send(visit: PageRequest, instructions: Sealed): Promise<PageResult> {
  const sealed = visit.fields.get('of') ?? '';
  const instruction = instructions.open(sealed, visit.actor);
  if (!instruction)
    return {
      status: 404,
      title: 'Not found',
      content: refusedBatch([], 'This page is not yours, or can no longer be read.'),
    };
  const { file, payments, repeated, idempotency_key } = instruction;
  if (visit.fields.get('confirmed') !== 'yes') {
    const before = await sentBefore(visit, instruction);
    if (before.batches.length > 0 || repeated.length > 0)
      return { status: 409, title: `Send ${file}?`, content: askAgain(visit, { file, sealed, before, repeated }) };
  }
  try {
    const { data } = await visit.api.post<Batch>('/batches', toBody(instruction), idempotency_key);
    return { redirectTo: `${batchesUrl}/${data.batch_id}` };
  } catch (error) {
    if (!(error instanceof ApiRefused) || error.status === 401) throw error;
    if (isUnknown(error)) return { title: 'Not known yet', content: unknownBatch(visit, file, sealed) };
    const rows = refusedLines(error, payments);
    const text = rows.length > 0 ? 'Correct these lines, and upload it again.' : explainRefusal(error.problem.code);
    return { status: error.status, title: 'The file was refused', content: refusedBatch(rows, text) };
  }
}

function refusedLines({ problem }: ApiRefused, payments: Instruction['payments']): RefusedLine[] {
  return (problem.errors ?? []).flatMap(({ field, code }) => {
    const line = payments[Number(/^items\[(\d+)\]/.exec(field)?.[1])]?.line;
    return line ? [{ line, reason: explainRefusal(code) }] : [];
  });
}

const pageSize = 50;

function addResults(app: FastifyInstance): void {
  const page = { title: 'Batch', scope: 'transactions:read' } as const;
  const readBatch = async ({ api, id }: PageRequest) => (await api.get<Batch>(`/batches/${id}`)).data;
  addPage(app, `${batchesUrl}/:batch_id`, page, async (visit) => {
    const batch = await wholeOrRefused(() => readBatch(visit));
    if ('content' in batch) return batch;
    const [, only] = resultParts.find(([part]) => part === (visit.query.get('only') ?? '')) ?? [];
    const shown = resultRows(batch).filter(({ status }) => only === undefined || status === only);
    const at = Math.max(0, Number.parseInt(visit.query.get('cursor') ?? '0', 10) || 0);
    const rows = shown.slice(at, at + pageSize);
    const next = at + pageSize < shown.length ? String(at + pageSize) : undefined;
    const accounts = await accountsBy(visit, listPlaces(rows));
    const [names, actors] = await Promise.all([
      readOwnerNames(visit, [...accounts.values()]),
      readActorNames(visit, [batch], 'actor'),
    ]);
    return {
      title: `Payments of ${batch.metadata?.['file_name'] ?? 'a program'}`,
      content: batchPage(visit, { batch, rows, accounts, names, actors, only, next }),
    };
  });
  addDownload(app, `${batchesUrl}/:batch_id/results.csv`, { ...page, title: 'Batch results' }, async (visit) => {
    const batch = await readBatch(visit);
    const notKept = sayNotKept(batch);
    const rows = [...resultRows(batch), ...(notKept === undefined ? [] : [noRow(notKept)])];
    const numbers = await readAccountNumbers(visit, listPlaces(rows));
    const columns = resultColumns(numbers);
    return Readable.from([csvHead(columns, visit.query.has('sep')), csvRows(columns, rows)]);
  });
}

/** The last row of the file, which says what is not in it. */
const noRow = (reason: string): ResultRow => ({
  ...{ line: '', status: 'Never sent', kind: '', from: '', to: '', amount: '', currency: '', reason },
  ...{ reference: '', description: '', id: undefined },
});

const listPlaces = (rows: readonly ResultRow[]) =>
  rows.flatMap(({ status, from, to }) => (status === 'Never sent' ? [] : [from, to]));

/** If an item was refused and nothing was posted, the API returns the same error as for the request. */
async function wholeOrRefused(read: () => Promise<Batch>): Promise<Batch | (PageResult & { content: unknown })> {
  try {
    return await read();
  } catch (error) {
    if (!(error instanceof ApiRefused) || ![400, 409, 422].includes(error.status)) throw error;
    const items = (error.problem.errors ?? []).map(({ field, code }) => {
      const index = Number(/\d+/.exec(field)?.[0]);
      return html`<li>Payment ${String(index + 1)}: ${explainRefusal(code)}</li>`;
    });
    return {
      title: 'The batch was refused',
      content: html`${refusedBatch([], items.length > 0 ? 'A single refused payment is enough.' : explainRefusal(error.problem.code))}<ul>${items}</ul>`,
    };
  }
}

function resultColumns(numbers: ReadonlyMap<string, string>): CsvColumn<ResultRow>[] {
  const place = (id: string | undefined) => id && (numbers.get(id) ?? id);
  return [
    'line',
    { title: 'status', value: ({ status }) => resultWords[status] },
    { title: 'why', value: ({ reason }) => reason },
    { title: 'type', value: ({ kind }) => kind },
    { title: 'from', value: ({ from }) => place(from) },
    { title: 'to', value: ({ to }) => place(to) },
    {
      title: 'amount',
      value: ({ status, amount, currency }) =>
        status === 'Never sent' || amount === '' ? amount : plainMoney(amount, currency),
    },
    'currency',
    'reference',
    'description',
    'id',
  ];
}
