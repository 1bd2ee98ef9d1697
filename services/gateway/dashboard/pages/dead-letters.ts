import type { FastifyInstance } from 'fastify';
import type { DeadLetter, DeadLetterContent } from '#libs/contracts/administration.ts';
import { deadLetterState } from '#libs/contracts/administration.ts';
import { deadLetterTopics } from '#libs/contracts/topics.ts';
import { html } from '#libs/service/html.ts';
import { ApiRefused } from '../api.ts';
import { keyNamesOf } from '../html/actors.ts';
import { zoneText } from '../html/formats.ts';
import type { Wrong } from '../html/forms.ts';
import { idempotencyKeyOf, orForm, unconfirmed } from '../html/forms.ts';
import type { Visit } from '../html/frame.ts';
import { addForm, addPage } from '../html/frame.ts';
import type { List } from '../html/lists.ts';
import { addListFile, showList } from '../html/lists.ts';
import { waitingFor } from './approval-views.ts';
import type { Decision, Outcome } from './dead-letter-views.ts';
import {
  contentOf,
  deadLettersUrl,
  deadLetterTable,
  decisionForm,
  decisions,
  outcomesOf,
} from './dead-letter-views.ts';
import { inTurns } from './in-turns.ts';

const scope = 'ops:manage';
const path = '/admin/dead-letters';

const list: List<DeadLetter> = {
  url: deadLettersUrl,
  path,
  filters: [
    { name: 'state', label: 'State', options: deadLetterState.options },
    { name: 'topic', label: 'Topic', options: deadLetterTopics },
  ],
  hasDays: true,
  csv: [
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
  ],
  show: async (rows, sorting, visit) =>
    deadLetterTable(
      rows,
      await keyNamesOf(
        visit,
        rows.map(({ decided_by }) => decided_by),
      ),
      sorting,
    ),
};

/** Adds the pages of dead letters: list, show, and redrive or drop one or all marked ones. */
export function addDeadLetters(app: FastifyInstance): void {
  addPage(app, deadLettersUrl, { title: 'Dead letters', scope }, async (visit) => {
    const { status = 200, content } = await showList(visit, list);
    return {
      status,
      content: html`<p><a href="/admin/ui/operations">To operations</a></p>${content}<p class="quiet">Times are ${zoneText()}. A dead letter is listed once, even if its message is delivered several times.</p>`,
    };
  });
  addListFile(app, deadLettersUrl, { title: 'Dead letters', scope }, () => list);
  addPage(app, `${deadLettersUrl}/:dead_letter_id`, { title: 'Dead letter', scope }, async (visit) => {
    const { data: letter } = await visit.api.get<DeadLetterContent>(`${path}/${visit.id}`);
    return {
      title: `Dead letter of ${letter.source_topic}`,
      content: contentOf(letter, await keyNamesOf(visit, [letter.decided_by]), visit.query.has('decided')),
    };
  });
  for (const decision of ['redrive', 'drop'] as const) addDecision(app, decision);
}

const mostAtOnce = 500;

/** Returns the marked dead letters that are still open. */
async function markedOf({ api }: Visit, ids: readonly string[]): Promise<DeadLetter[]> {
  const { data } = await api.get<DeadLetter[]>(`${path}?state=open&limit=${mostAtOnce}`);
  return data.filter(({ dead_letter_id }) => ids.includes(dead_letter_id));
}

/**
 * Redrives or drops one or several dead letters after one confirmation. Sending the form again has no further
 * effect.
 */
function addDecision(app: FastifyInstance, decision: Decision): void {
  const page = { title: decisions[decision].title, scope } as const;
  const url = `${deadLettersUrl}/decision/${decision}`;
  const form = async (visit: Visit, ids: readonly string[], wrong: Wrong) =>
    decisionForm(visit.person, await markedOf(visit, ids), decision, visit.fields, wrong);
  addPage(app, url, page, async (visit) => ({ content: await form(visit, visit.query.getAll('id'), {}) }));
  addForm(app, url, page, async (visit) => {
    const { api, fields } = visit;
    const ids = fields.getAll('id');
    const [only] = ids;
    const wrong = unconfirmed(fields);
    if (wrong) {
      visit.logRefused();
      return { status: 400, content: await form(visit, ids, wrong) };
    }
    const reason = fields.get('reason')?.trim() ?? '';
    const body =
      decision === 'redrive'
        ? { renew_deadline: fields.get('renew_deadline') === 'yes' }
        : reason === ''
          ? {}
          : { reason };
    const decide = (id: string) =>
      api.post<DeadLetter>(`${path}/${encodeURIComponent(id)}/${decision}`, body, `${idempotencyKeyOf(fields)} ${id}`);
    if (only !== undefined && ids.length === 1)
      return orForm(
        async () =>
          waitingFor((await decide(only)).data) ?? { goTo: `${deadLettersUrl}/${encodeURIComponent(only)}?decided` },
        (refused) => form(visit, ids, refused),
      );
    const outcomes: Outcome[] = [];
    await inTurns(ids, async (id) => {
      try {
        const { data } = await decide(id);
        outcomes.push({ id, said: waitingFor(data) ? 'waiting for approval' : undefined });
      } catch (error) {
        if (!(error instanceof ApiRefused)) throw error;
        outcomes.push({ id, said: error.problem.message });
      }
    });
    return { title: decisions[decision].done, content: outcomesOf(outcomes, decision) };
  });
}
