import type { FastifyInstance } from 'fastify';
import { type DeadLetter, type DeadLetterContent, deadLetterState } from '#libs/contracts/dead-letters.ts';
import { deadLetterTopics } from '#libs/contracts/topics.ts';
import { type Html, html } from '#libs/service/html.ts';
import { ApiRefused, inTurns } from '../api.ts';
import { type KeyNames, readKeyNames, showActor } from '../html/actors.ts';
import type { CsvColumn } from '../html/csv.ts';
import {
  addFormPage,
  checkConfirmed,
  confirmation,
  enteredIdempotencyKey,
  enteredIn,
  showField,
  showForm,
  type Wrong,
  waitingFor,
} from '../html/forms.ts';
import { addPage, type PageRequest, type PageResult } from '../html/frame.ts';
import { addListPage, type List, type Sorting } from '../html/lists.ts';
import { type Column, facts, numeric, showFullTime, showStatus, showTime, table } from '../html/show.ts';

export const deadLettersUrl = '/admin/ui/operations/dead-letters';

type Decision = 'redrive' | 'drop';

const decisions: Record<Decision, { title: string; verb: string; done: string }> = {
  redrive: { title: 'Redrive dead letters', verb: 'Redrive', done: 'Sent again' },
  drop: { title: 'Drop dead letters', verb: 'Drop', done: 'Dropped' },
};
const decisionUrl = (decision: Decision, id?: string) =>
  `${deadLettersUrl}/decision/${decision}${id === undefined ? '' : `?id=${id}`}`;

const deadLetterUrl = ({ dead_letter_id }: DeadLetter) => `${deadLettersUrl}/${dead_letter_id}`;
const findLink = (text: string) =>
  html`<a href="/admin/ui/find?${new URLSearchParams({ q: text }).toString()}"><code class="long">${text}</code></a>`;
const sizeText = (bytes: number) => `${bytes} ${Number(bytes) === 1 ? 'byte' : 'bytes'}`;
/** Its name, if it could be read, and its topic. */
const showMessage = ({ message, source_topic }: DeadLetter) =>
  html`<strong>${message ?? 'not readable'}</strong><br><span class="quiet">${source_topic}</span>`;

const scope = 'ops:manage';
const path = '/admin/dead-letters';

const columns: CsvColumn<DeadLetter>[] = [
  'dead_letter_id',
  'dead_at',
  'message',
  'code',
  'reason',
  'source_topic',
  'source_partition',
  'source_offset',
  'key',
  'request_id',
  'size_bytes',
  'state',
  'decided_by',
  'decided_at',
  'drop_reason',
];

const deadLetterList = (visit: PageRequest): List<DeadLetter> => ({
  path,
  above: () => html`<p><a href="/admin/ui/operations">To operations</a></p>`,
  filters: [
    { name: 'state', label: 'State', options: deadLetterState.options },
    { name: 'topic', label: 'Topic', options: deadLetterTopics },
  ],
  hasDays: true,
  show: async (rows, sort) => deadLetterTable(rows, await readKeyNames(visit, rows, 'decided_by'), sort),
  note: 'A dead letter is listed once, even if its message is delivered several times.',
});

/** Adds the pages of dead letters: list, show, and redrive or drop one or all selected ones. */
export function addDeadLetters(app: FastifyInstance): void {
  addListPage(app, deadLettersUrl, { title: 'Dead letters', scope }, deadLetterList, columns);
  addPage(app, `${deadLettersUrl}/:dead_letter_id`, { title: 'Dead letter', scope }, async (visit) => {
    const { data: letter } = await visit.api.get<DeadLetterContent>(`${path}/${visit.id}`);
    return {
      title: `Dead letter of ${letter.source_topic}`,
      content: showContent(letter, await readKeyNames(visit, [letter], 'decided_by'), visit.query.has('decided')),
    };
  });
  for (const decision of ['redrive', 'drop'] as const) {
    const page = { title: decisions[decision].title, scope } as const;
    addFormPage(app, decisionUrl(decision), page, {
      async draw(visit, values, wrong) {
        const ids = (values.size > 0 ? values : visit.query).getAll('id');
        return decisionForm(visit, await readSelected(visit, ids), decision, values, wrong);
      },
      take: (visit) => decide(visit, decision),
    });
  }
}

const mostAtOnce = 500;

/** Returns the selected dead letters that are still open. */
async function readSelected({ api }: PageRequest, ids: readonly string[]): Promise<DeadLetter[]> {
  const { data } = await api.get<DeadLetter[]>(`${path}?state=open&limit=${mostAtOnce}`);
  return data.filter(({ dead_letter_id }) => ids.includes(dead_letter_id));
}

/**
 * Redrives or drops one or several dead letters after one confirmation. Sending the form again has no further
 * effect.
 */
async function decide(visit: PageRequest, decision: Decision): Promise<PageResult> {
  const { api, fields } = visit;
  checkConfirmed(visit);
  const body =
    decision === 'redrive' ? { renew_deadline: fields.get('renew_deadline') === 'yes' } : enteredIn(['reason'], fields);
  const post = async (id: string) => {
    const url = `${path}/${encodeURIComponent(id)}/${decision}`;
    return (await api.post<DeadLetter>(url, body, `${enteredIdempotencyKey(visit)} ${id}`)).data;
  };
  const ids = fields.getAll('id');
  const [only] = ids;
  if (only !== undefined && ids.length === 1)
    return waitingFor(await post(only)) ?? { redirectTo: `${deadLettersUrl}/${encodeURIComponent(only)}?decided` };
  const outcomes: Outcome[] = [];
  await inTurns(ids, async (id) => {
    try {
      outcomes.push({ id, said: waitingFor(await post(id)) ? 'waiting for approval' : undefined });
    } catch (error) {
      if (!(error instanceof ApiRefused)) throw error;
      outcomes.push({ id, said: error.problem.message });
    }
  });
  return { title: decisions[decision].done, content: showOutcomes(outcomes, decision) };
}

/** Open dead letters can be selected, and redriven or dropped together. */
function deadLetterTable(rows: readonly DeadLetter[], names: KeyNames, sort: Sorting): Html {
  const columns = lettersColumns(names, sort);
  if (!rows.some(({ state }) => state === 'open'))
    return table('Dead letters', columns, rows, 'No dead letter matches.');
  const selection: Column<DeadLetter> = {
    title: 'Select',
    isPlain: true,
    show: ({ dead_letter_id, state, message }) =>
      html`${state === 'open' && html`<input type="checkbox" name="id" value="${dead_letter_id}" aria-label="Select ${message ?? 'this one'}">`}`,
  };
  return html`<form method="get" action="${decisionUrl('redrive')}">${table('Dead letters', [selection, ...columns], rows, '')}
<p class="actions"><button type="button" class="outline secondary" data-mark-all hidden>Select all on this page</button> <button>Redrive selected</button> <button class="secondary" formaction="${decisionUrl('drop')}">Drop selected</button></p></form>`;
}

const lettersColumns = (names: KeyNames, sort?: Sorting): Column<DeadLetter>[] => [
  { title: 'When', sort, show: (row) => html`<a href="${deadLetterUrl(row)}">${showTime(row.dead_at)}</a>` },
  { title: 'Message', show: showMessage },
  {
    title: 'Why',
    show: (row) =>
      html`<span class="details">${row.code ?? 'not said'}${row.reason !== null && html`<br><span class="quiet">${row.reason.slice(0, 200)}${row.reason.length > 200 && '…'}</span>`}</span>`,
  },
  {
    title: 'State',
    show: ({ state, decided_by, decided_at }) =>
      html`${showStatus(state)}${decided_by !== null && html`<br><span class="quiet">by ${showActor(decided_by, names)}<br>${showTime(decided_at)}</span>`}`,
  },
  { title: 'Request', show: ({ request_id }) => (request_id === null ? '–' : findLink(request_id)) },
  numeric('Size', ({ size_bytes }) => sizeText(size_bytes)),
];

function letterFacts(letter: DeadLetter, names: KeyNames): Html {
  const { source_topic, source_partition, source_offset, request_id, key, decided_by, decided_at } = letter;
  const place =
    source_partition === null
      ? source_topic
      : `${source_topic}, partition ${source_partition}, offset ${source_offset ?? 'not known'}`;
  return facts([
    ['State', showStatus(letter.state)],
    ['Why', letter.code],
    ['Reason', letter.reason],
    ['Message', letter.message],
    ['Sent to', place],
    ['Key', key !== null && findLink(key)],
    ['Request id', request_id !== null && findLink(request_id)],
    ['Dead-lettered', showFullTime(letter.dead_at)],
    ['Stored in', `${letter.topic}, partition ${letter.partition}, offset ${letter.offset}`],
    ['Size', sizeText(letter.size_bytes)],
    ['Decided', decided_by !== null && html`${showFullTime(decided_at)} by ${showActor(decided_by, names)}`],
    ['Dropped because', letter.drop_reason],
    ['Id', html`<code>${letter.dead_letter_id}</code>`],
  ]);
}

const outcomes: Record<DeadLetter['state'], string> = {
  open: 'It must be redriven or dropped.',
  redriven:
    'It was sent to its topic again. Search for its request id to find the outcome. If it could not be processed again, it is listed as a new dead letter.',
  dropped:
    'It will not be sent again. Another copy of the command may have been executed: look for its id. Its bytes remain in the topic until retention deletes them.',
};

/** The page of a dead letter: properties, headers, value, and actions. */
function showContent(letter: DeadLetterContent, names: KeyNames, isJustDecided: boolean): Html {
  const headers = Object.entries(letter.headers);
  return html`<p><a href="${deadLettersUrl}">To the dead letters</a></p>
<p class="notice" role="status">${isJustDecided && letter.state !== 'open' && html`<strong>Done.</strong> `}${outcomes[letter.state]}</p>
${letter.state === 'open' && html`<p class="actions">${letter.available && html`<a role="button" href="${decisionUrl('redrive', letter.dead_letter_id)}">Redrive</a> `}<a role="button" class="secondary" href="${decisionUrl('drop', letter.dead_letter_id)}">Drop</a></p>`}
${letterFacts(letter, names)}
${
  letter.available
    ? html`<h2>Value${letter.encoding === 'base64' && html` <span class="quiet">not UTF-8: in base64</span>`}</h2>
${letter.value === null ? html`<p>It has no value (null).</p>` : html`<pre class="payload" tabindex="0" aria-label="Value">${letter.value}</pre>`}
${letter.truncated && html`<p class="notice wrong" role="status">Only the first part is shown: the message is larger.</p>`}
<h2>Headers</h2>${table<[string, string]>(
        'Headers',
        [
          { title: 'Header', show: ([name]) => html`<code>${name}</code>` },
          { title: 'Value', show: ([, value]) => html`<span class="wide">${value}</span>` },
        ],
        headers,
        'It has no headers.',
      )}`
    : html`<p class="notice wrong" role="status">Its bytes have been deleted, so it can only be dropped.</p>`
}`;
}

/** The form that confirms a decision. */
function decisionForm(
  visit: PageRequest,
  letters: readonly DeadLetter[],
  decision: Decision,
  values: URLSearchParams,
  wrong: Wrong,
): Html {
  const [only] = letters;
  const cancel = only && letters.length === 1 ? deadLetterUrl(only) : `${deadLettersUrl}?state=open`;
  if (!only)
    return html`<p role="status">None of them is open. In the list, select those that you want to redrive or drop.</p><p><a role="button" href="${cancel}">To the dead letters</a></p>`;
  const isRedrive = decision === 'redrive';
  const them = letters.length === 1 ? 'this message' : `these ${letters.length} messages`;
  const reason = {
    name: 'reason',
    label: 'Reason',
    type: 'textarea',
    maxLength: 255,
    hint: 'Stored with the dead letter and in the audit.',
  } as const;
  const content = html`${letters.map(({ dead_letter_id }) => html`<input type="hidden" name="id" value="${dead_letter_id}">`)}
<p role="alert">${isRedrive ? 'The same message is sent to its topic again. A command that was executed before is recognised by its id and not executed again. One that is past its deadline is recorded as Failed, unless the deadline is renewed.' : `The dashboard cannot send ${them} again later, and the request is not executed.`}</p>
${letters.length === 1 ? letterFacts(only, new Map()) : table('Dead letters', lettersColumns(new Map()), letters, '')}
<div class="narrow">${isRedrive ? html`<label><input type="checkbox" name="renew_deadline" value="yes"${values.get('renew_deadline') === 'yes' && html` checked`}> Give ${letters.length === 1 ? 'it' : 'each'} a new deadline of 30 seconds. Choose this only if the caller has not repeated the request</label>` : showField(reason, values, wrong)}
${confirmation(isRedrive ? `Send ${them} again` : `Drop ${them} for good`, wrong)}</div>`;
  const isWide = letters.length > 1;
  return showForm(visit, { wrong, button: decisions[decision].verb, cancel, isDangerous: !isRedrive, isWide }, content);
}

/** The result for one of several dead letters; `said` is undefined if it was decided. */
interface Outcome {
  id: string;
  said: string | undefined;
}

function showOutcomes(outcomes: readonly Outcome[], decision: Decision): Html {
  const others = outcomes.filter(({ said }) => said !== undefined);
  const count = outcomes.length - others.length;
  return html`<p class="notice" role="status">${count} of ${outcomes.length} ${count === 1 ? 'was' : 'were'} ${decision === 'redrive' ? 'sent again. Messages that cannot be processed again are listed as new dead letters.' : 'dropped.'}</p>
${
  others.length > 0 &&
  table<Outcome>(
    'Not decided',
    [
      { title: 'Dead letter', show: ({ id }) => html`<a href="${deadLettersUrl}/${id}"><code>${id}</code></a>` },
      { title: 'Why not', show: ({ said }) => said ?? '' },
    ],
    others,
    '',
  )
}
<p><a role="button" href="${deadLettersUrl}?state=open">To the dead letters</a></p>`;
}
