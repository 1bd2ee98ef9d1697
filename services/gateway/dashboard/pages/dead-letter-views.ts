import type { DeadLetter, DeadLetterContent } from '#libs/contracts/administration.ts';
import type { Html } from '#libs/service/html.ts';
import { html } from '#libs/service/html.ts';
import type { KeyNames } from '../html/actors.ts';
import { actorOf } from '../html/actors.ts';
import type { Wrong } from '../html/forms.ts';
import { confirmation, inputOf, once, problem } from '../html/forms.ts';
import type { Person } from '../html/layout.ts';
import { csrfField } from '../html/layout.ts';
import type { Sorting } from '../html/lists.ts';
import { facts, fullTimeOf, statusOf, table, timeOf } from '../html/show.ts';

/** The dead letter pages. */

export const deadLettersUrl = '/admin/ui/operations/dead-letters';

export type Decision = 'redrive' | 'drop';

const pageOf = ({ dead_letter_id }: DeadLetter) => `${deadLettersUrl}/${dead_letter_id}`;
const findLink = (text: string) =>
  html`<a href="/admin/ui/find?${new URLSearchParams({ q: text }).toString()}"><code class="long">${text}</code></a>`;
const sizeText = (bytes: number) => `${bytes} ${Number(bytes) === 1 ? 'byte' : 'bytes'}`;
/** Its name, as far as it could be read, and the topic that it was sent to. */
const messageOf = ({ message, source_topic }: DeadLetter) =>
  html`<strong>${message ?? 'not readable'}</strong><br><span class="quiet">${source_topic}</span>`;

export function deadLetterTable(rows: readonly DeadLetter[], names: KeyNames, sort: Sorting): Html {
  return table<DeadLetter>(
    'Dead letters',
    [
      { title: 'When', sort, show: (row) => html`<a href="${pageOf(row)}">${timeOf(row.dead_at)}</a>` },
      { title: 'Message', show: messageOf },
      {
        title: 'Why',
        show: (row) =>
          html`<span class="details">${row.code ?? 'not said'}${row.reason !== null && html`<br><span class="quiet">${row.reason.slice(0, 200)}${row.reason.length > 200 && '…'}</span>`}</span>`,
      },
      {
        title: 'State',
        show: ({ state, decided_by, decided_at }) =>
          html`${statusOf(state)}${decided_by !== null && html`<br><span class="quiet">by ${actorOf(decided_by, names)}<br>${timeOf(decided_at)}</span>`}`,
      },
      { title: 'Request', show: ({ request_id }) => (request_id === null ? '–' : findLink(request_id)) },
      { title: 'Size', isNumber: true, show: ({ size_bytes }) => sizeText(size_bytes) },
    ],
    rows,
    'No dead letter fits.',
  );
}

function letterFacts(letter: DeadLetter, names: KeyNames): Html {
  const { source_topic, source_partition, source_offset, request_id, key, decided_by, decided_at } = letter;
  const place =
    source_partition === null
      ? source_topic
      : `${source_topic}, partition ${source_partition}, offset ${source_offset ?? 'not known'}`;
  return facts([
    ['State', statusOf(letter.state)],
    ['Why', letter.code],
    ['Reason', letter.reason],
    ['Message', letter.message],
    ['Sent to', place],
    ['Key', key !== null && findLink(key)],
    ['Request id', request_id !== null && findLink(request_id)],
    ['Dead-lettered', fullTimeOf(letter.dead_at)],
    ['Lies in', `${letter.topic}, partition ${letter.partition}, offset ${letter.offset}`],
    ['Size', sizeText(letter.size_bytes)],
    ['Decided', decided_by !== null && html`${fullTimeOf(decided_at)} by ${actorOf(decided_by, names)}`],
    ['Dropped because', letter.drop_reason],
    ['Id', html`<code>${letter.dead_letter_id}</code>`],
  ]);
}

const outcomes: Record<DeadLetter['state'], string> = {
  open: 'It waits for somebody to redrive or drop it.',
  redriven:
    'It was sent to its topic again. What became of it is found by its request id; if it could not be processed again either, it is listed as a new dead letter.',
  dropped: 'It will not be sent again. Its bytes stay in the topic until retention deletes them.',
};

/** All of one: facts, headers, value, and what can be done with it. */
export function contentOf(letter: DeadLetterContent, names: KeyNames, isJustDecided: boolean): Html {
  const headers = Object.entries(letter.headers);
  return html`<p><a href="${deadLettersUrl}">To the dead letters</a></p>
<p class="notice" role="status">${isJustDecided && letter.state !== 'open' && html`<strong>Done.</strong> `}${outcomes[letter.state]}</p>
${letter.state === 'open' && html`<p class="actions">${letter.available && html`<a role="button" href="${pageOf(letter)}/redrive">Redrive</a> `}<a role="button" class="secondary" href="${pageOf(letter)}/drop">Drop</a></p>`}
${letterFacts(letter, names)}
${
  letter.available
    ? html`<h2>Value${letter.encoding === 'base64' && html` <span class="quiet">not UTF-8: in base64</span>`}</h2>
${letter.value === null ? html`<p>It has no value (null).</p>` : html`<pre class="payload" tabindex="0" aria-label="Value">${letter.value}</pre>`}
${letter.truncated && html`<p class="notice wrong" role="status">What is shown is cut: the message is larger.</p>`}
<h2>Headers</h2>${table<[string, string]>(
        'Headers',
        [
          { title: 'Header', show: ([name]) => html`<code>${name}</code>` },
          { title: 'Value', show: ([, value]) => html`<span class="wide">${value}</span>` },
        ],
        headers,
        'It has no headers.',
      )}`
    : html`<p class="notice wrong" role="status">Its bytes are no longer kept: it can only be dropped.</p>`
}`;
}

/** What the decision means, to be confirmed. */
export function decisionForm(
  person: Person,
  letter: DeadLetterContent,
  decision: Decision,
  values: URLSearchParams,
  wrong: Wrong,
): Html {
  const isRedrive = decision === 'redrive';
  return html`<form class="narrow" method="post" action="${pageOf(letter)}/${decision}">${csrfField(person.csrf)}${once()}
${problem(wrong)}
<p role="alert">${isRedrive ? 'Its very bytes are sent to its topic again. A command that was done before is recognised by its id, and not done twice; one past its deadline is recorded as Failed, unless the deadline is renewed.' : 'The message will never be sent again from here. What it asked for stays undone.'}</p>
${letterFacts(letter, new Map())}
${
  isRedrive
    ? html`<label><input type="checkbox" name="renew_deadline" value="yes"${values.get('renew_deadline') === 'yes' && html` checked`}> Give it 30 seconds again: only when its caller has not repeated it meanwhile</label>`
    : inputOf(
        {
          name: 'reason',
          label: 'Reason',
          type: 'textarea',
          maxLength: 255,
          hint: 'Stands with the dead letter and in the audit.',
        },
        values,
        wrong,
      )
}
${confirmation(isRedrive ? 'Send this message again' : 'Drop this message for good', wrong)}
<div class="actions"><button${!isRedrive && html` class="danger"`}>${isRedrive ? 'Redrive' : 'Drop'}</button> <a href="${pageOf(letter)}">Cancel</a></div>
</form>`;
}
