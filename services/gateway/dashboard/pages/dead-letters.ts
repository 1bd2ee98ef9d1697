import type { FastifyInstance } from 'fastify';
import type { DeadLetter, DeadLetterContent } from '#libs/contracts/administration.ts';
import { deadLetterState } from '#libs/contracts/administration.ts';
import { deadLetterTopics } from '#libs/contracts/topics.ts';
import { html } from '#libs/service/html.ts';
import { keyNamesOf } from '../html/actors.ts';
import { zoneText } from '../html/formats.ts';
import type { Wrong } from '../html/forms.ts';
import { idempotencyKeyOf, orForm, unconfirmed } from '../html/forms.ts';
import type { FrameOptions, Visit } from '../html/frame.ts';
import { addForm, addPage } from '../html/frame.ts';
import { showList } from '../html/lists.ts';
import { waitingFor } from './approval-views.ts';
import type { Decision } from './dead-letter-views.ts';
import { contentOf, deadLettersUrl, deadLetterTable, decisionForm } from './dead-letter-views.ts';

const scope = 'ops:manage';
const path = '/admin/dead-letters';

const filters = [
  { name: 'state', label: 'State', options: deadLetterState.options },
  { name: 'topic', label: 'Topic', options: deadLetterTopics },
];

/**
 * Dead letters: list, show, redrive, drop. Deciding asks to be confirmed, and is done once however
 * often the form is sent.
 */
export function addDeadLetters(app: FastifyInstance, options: Pick<FrameOptions, 'origin'>): void {
  addPage(app, deadLettersUrl, { title: 'Dead letters', scope }, async (visit) => {
    const { status = 200, content } = await showList<DeadLetter>(visit, {
      url: deadLettersUrl,
      path,
      filters,
      hasDays: true,
      show: async (rows, sorting) =>
        deadLetterTable(
          rows,
          await keyNamesOf(
            visit,
            rows.map(({ decided_by }) => decided_by),
          ),
          sorting,
        ),
    });
    return {
      status,
      content: html`<p><a href="/admin/ui/operations">To operations</a></p>${content}<p class="quiet">Times are ${zoneText()}. A dead letter is listed once, however often its message is delivered.</p>`,
    };
  });
  addPage(app, `${deadLettersUrl}/:dead_letter_id`, { title: 'Dead letter', scope }, async (visit) => {
    const letter = await letterOf(visit);
    return {
      title: `Dead letter of ${letter.source_topic}`,
      content: contentOf(letter, await keyNamesOf(visit, [letter.decided_by]), visit.query.has('decided')),
    };
  });
  addDecision(
    app,
    'redrive',
    'Redrive a dead letter',
    ({ fields }) => ({ renew_deadline: fields.get('renew_deadline') === 'yes' }),
    options,
  );
  addDecision(
    app,
    'drop',
    'Drop a dead letter',
    ({ fields }) => {
      const reason = (fields.get('reason') ?? '').trim();
      return reason === '' ? {} : { reason };
    },
    options,
  );
}

const idIn = ({ params }: Visit) => encodeURIComponent(params['dead_letter_id'] ?? '');
const letterOf = async (visit: Visit) => (await visit.api.get<DeadLetterContent>(`${path}/${idIn(visit)}`)).data;

function addDecision(
  app: FastifyInstance,
  decision: Decision,
  title: string,
  bodyOf: (visit: Visit) => object,
  options: Pick<FrameOptions, 'origin'>,
): void {
  const page = { title, scope } as const;
  const url = `${deadLettersUrl}/:dead_letter_id/${decision}`;
  const form = async (visit: Visit, wrong: Wrong) =>
    decisionForm(visit.person, await letterOf(visit), decision, visit.fields, wrong);
  addPage(app, url, page, async (visit) => ({ content: await form(visit, {}) }));
  addForm(
    app,
    url,
    page,
    (visit) =>
      orForm(
        async () => {
          const wrong = unconfirmed(visit.fields);
          if (wrong) {
            const content = await form(visit, wrong);
            visit.logRefused();
            return { status: 400, content };
          }
          const { data } = await visit.api.post<DeadLetter>(
            `${path}/${idIn(visit)}/${decision}`,
            bodyOf(visit),
            idempotencyKeyOf(visit.fields),
          );
          return waitingFor(data) ?? { goTo: `${deadLettersUrl}/${idIn(visit)}?decided` };
        },
        (wrong) => form(visit, wrong),
      ),
    options,
  );
}
