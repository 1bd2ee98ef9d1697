import type { FastifyInstance } from 'fastify';
import { type DeadLetter, type DeadLetterContent, deadLetterState } from '#libs/contracts/dead-letters.ts';
import { deadLetterTopics } from '#libs/contracts/topics.ts';
import { type Html, html } from '#libs/service/html.ts';
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
} from '../html/forms.ts';
import { addPage, type PageRequest, type PageResult } from '../html/frame.ts';
import { addListPage, type List, type Sorting } from '../html/lists.ts';
import { facts, numeric, showFullTime, showStatus, showTime, table } from '../html/show.ts';

export const deadLettersUrl = '/admin/ui/operations/dead-letters';

type Decision = 'redrive' | 'drop';

const verbs: Record<Decision, string> = { redrive: 'Redrive', drop: 'Drop' };

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

/** Adds the pages of dead letters: list, show, redrive, drop. */
export function addDeadLetters(app: FastifyInstance): void {
  addListPage(app, deadLettersUrl, { title: 'Dead letters', scope }, deadLetterList, columns);
  addPage(app, `${deadLettersUrl}/:dead_letter_id`, { title: 'Dead letter', scope }, async (visit) => {
    const letter = await readLetter(visit);
    return {
      title: `Dead letter of ${letter.source_topic}`,
      content: showContent(letter, await readKeyNames(visit, [letter], 'decided_by'), visit.query.has('decided')),
    };
  });
  for (const decision of ['redrive', 'drop'] as const) {
    const page = { title: `${verbs[decision]} a dead letter`, scope } as const;
    addFormPage(app, `${deadLettersUrl}/:dead_letter_id/${decision}`, page, {
      draw: async (visit, values, wrong) => decisionForm(visit, await readLetter(visit), decision, values, wrong),
      take: (visit) => decide(visit, decision),
    });
  }
}

const readLetter = async ({ api, id }: PageRequest) => (await api.get<DeadLetterContent>(`${path}/${id}`)).data;

/** Redrives or drops a dead letter after a confirmation. Sending the form again has no further effect. */
async function decide(visit: PageRequest, decision: Decision): Promise<PageResult> {
  const { api, fields, id } = visit;
  checkConfirmed(visit);
  const body =
    decision === 'redrive' ? { renew_deadline: fields.get('renew_deadline') === 'yes' } : enteredIn(['reason'], fields);
  await api.post(`${path}/${id}/${decision}`, body, enteredIdempotencyKey(visit));
  return { redirectTo: `${deadLettersUrl}/${id}?decided` };
}

function deadLetterTable(rows: readonly DeadLetter[], names: KeyNames, sort: Sorting): Html {
  return table<DeadLetter>(
    'Dead letters',
    [
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
    ],
    rows,
    'No dead letter matches.',
  );
}

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
${letter.state === 'open' && html`<p class="actions">${letter.available && html`<a role="button" href="${deadLetterUrl(letter)}/redrive">Redrive</a> `}<a role="button" class="secondary" href="${deadLetterUrl(letter)}/drop">Drop</a></p>`}
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
  letter: DeadLetter,
  decision: Decision,
  values: URLSearchParams,
  wrong: Wrong,
): Html {
  const isRedrive = decision === 'redrive';
  const reason = {
    name: 'reason',
    label: 'Reason',
    type: 'textarea',
    maxLength: 255,
    hint: 'Stored with the dead letter and in the audit.',
  } as const;
  const content = html`<p role="alert">${isRedrive ? 'The same message is sent to its topic again. A command that was executed before is recognised by its id and not executed again. One that is past its deadline is recorded as Failed, unless the deadline is renewed.' : 'The dashboard cannot send this message again later, and the request is not executed.'}</p>
${letterFacts(letter, new Map())}
${isRedrive ? html`<label><input type="checkbox" name="renew_deadline" value="yes"${values.get('renew_deadline') === 'yes' && html` checked`}> Give it a new deadline of 30 seconds. Choose this only if the caller has not repeated the request</label>` : showField(reason, values, wrong)}
${confirmation(isRedrive ? 'Send this message again' : 'Drop this message for good', wrong)}`;
  return showForm(
    visit,
    { wrong, button: verbs[decision], cancel: deadLetterUrl(letter), isDangerous: !isRedrive },
    content,
  );
}
