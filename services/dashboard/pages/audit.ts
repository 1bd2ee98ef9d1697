import type { FastifyInstance } from 'fastify';
import type { AuditActor, AuditRecord } from '#libs/contracts/audit.ts';
import { bankTime } from '#libs/service/formats.ts';
import { type Html, html } from '#libs/service/html.ts';
import { type ActorNames, actorText, readActorNames } from '../html/actors.ts';
import type { CsvColumn } from '../html/csv.ts';
import type { PageContent, PageRequest } from '../html/frame.ts';
import { addListPage, type Filter, type List, type Sorting, withChosen } from '../html/lists.ts';
import { emptyState, idText, notice, resourceLink, showFullTime, showSecond, table, toned } from '../html/show.ts';
import { actionGroups, actionText } from './audit-words.ts';

const url = '/admin/ui/audit';

const outcomes = [
  ['success', 'Done'],
  ['insufficient_scope', 'Refused: not allowed'],
  ['invalid_credentials', 'Refused: invalid credentials'],
  ['missing_credentials', 'Refused: no credentials'],
  ['own_approval', 'Refused: own request'],
] as const;
const outcomeText = (outcome: string): string =>
  outcomes.find(([value]) => value === outcome)?.[1] ?? `Refused: ${outcome.replaceAll('_', ' ')}`;

/** Who acted, as far as it was asked: everybody whose name was entered, or all. */
interface Who {
  typed: string;
  found: readonly AuditActor[];
}

const me = 'Me';

async function readActors(api: PageRequest['api'], q: string): Promise<AuditActor[]> {
  const asked = q === '' ? '' : `?${new URLSearchParams({ q })}`;
  return (await api.get<AuditActor[]>(`/admin/audit/actors${asked}`)).data;
}

async function readWho({ api, actor, query }: PageRequest): Promise<Who> {
  const typed = query.get('who')?.trim() ?? '';
  const chosen = query.get('actor');
  // The field is not shown beside a chosen actor. A key's name is not for everybody to read elsewhere.
  if (chosen !== null)
    return { typed: '', found: chosen.startsWith('key:') ? await readActors(api, chosen.slice(0, 255)) : [] };
  if (typed.toLowerCase() === me.toLowerCase()) return { typed, found: [{ actor, name: me }] };
  const data = await readActors(api, typed);
  return { typed, found: [...data.filter(({ name }) => name === typed), ...data.filter(({ name }) => name !== typed)] };
}

/** The address of the list with this actor instead of what was entered. */
function byActor(query: URLSearchParams, actor: string): string {
  const others = [...query].filter(([name]) => !['who', 'actor', 'cursor'].includes(name));
  return `${url}?${new URLSearchParams([['actor', actor], ...others])}`;
}

/** Leads to the records of the person who was entered, or shows which there are. */
function chooseWho(query: URLSearchParams, { typed, found }: Who): PageContent {
  const [first, second] = found;
  if (typed === '') return html``;
  if (first && (!second || (first.name === typed && second.name !== typed)))
    return { redirectTo: byActor(query, first.actor) };
  if (first)
    return notice(
      'info',
      html`Several match “${typed}”: ${found.map(({ actor, name }) => html`<a href="${byActor(query, actor)}" title="${actor}">${name}</a> `)}`,
    );
  return notice('info', `Nobody in the audit has a name with “${typed}”.`);
}

function filtersFor(names: ActorNames, { typed, found }: Who, query: URLSearchParams): Filter[] {
  const suggestions = typed === '' ? [me, ...new Set(found.map(({ name }) => name))] : [];
  return [
    { name: 'reads', label: 'Records of', any: 'changes', options: [['with', 'changes and reads']], isMain: true },
    query.has('actor')
      ? { name: 'actor', label: 'Who', fromLink: (actor) => html`By ${actorText(actor, names)} only.` }
      : { name: 'who', label: 'Who', hint: 'officer', suggestions, isOwn: true, isMain: true },
    { name: 'action', label: 'What', groups: withChosenAction(query.get('action')), isMain: true },
    { name: 'outcome', label: 'Outcome', options: withChosen(outcomes, query.get('outcome'), outcomeText) },
    { name: 'resource_id', label: 'Resource', fromLink: (id) => html`Records about ${idText(id)} only.` },
    { name: 'request_id', label: 'Request', fromLink: (id) => html`Of the request <code>${id}</code> only.` },
  ];
}

/** The groups of actions, with the chosen one if it is in none. */
const withChosenAction = (chosen: string | null): NonNullable<Filter['groups']> =>
  !chosen || actionGroups.some(([, actions]) => actions.some(([name]) => name === chosen))
    ? actionGroups
    : [['Chosen', [[chosen, actionText(chosen)]]], ...actionGroups];

/** Reads are shown only on request or by a link, because otherwise there would be more of them than changes. */
const showsReads = (query: URLSearchParams) =>
  ['reads', 'action', 'resource_id', 'request_id'].some((name) => (query.get(name) ?? '') !== '');

/** Adds the page of the audit: who did what, or was refused. */
export function addAudit(app: FastifyInstance): void {
  addListPage(app, url, { title: 'Audit', scope: 'audit:read' }, auditList, columns);
}

const columns: CsvColumn<AuditRecord>[] = [
  'audit_id',
  { title: 'created_at', value: (row) => bankTime(Date.parse(row.created_at)) },
  'actor',
  'address',
  'action',
  'outcome',
  'resource_id',
  'request_id',
  { title: 'details', value: (row) => JSON.stringify(row.details) },
];

async function auditList(visit: PageRequest): Promise<List<AuditRecord>> {
  const { query, person } = visit;
  const who = await readWho(visit);
  const found = new Map(who.found.map(({ actor, name }) => [actor, name]));
  const withNames = async (rows: readonly { actor: string }[]): Promise<ActorNames> =>
    new Map([...found, ...(await readActorNames(visit, rows, 'actor'))]);
  const chosen = query.get('actor');
  return {
    path: '/admin/audit',
    fixed: {
      ...(!showsReads(query) && { reads: 'without' }),
      // Until one is chosen, no records are shown.
      ...(who.typed !== '' && { actor: 'to be chosen' }),
    },
    filters: filtersFor(await withNames(chosen === null ? [] : [{ actor: chosen }]), who, query),
    hasDays: true,
    above: () => chooseWho(query, who),
    async show(rows, sort) {
      return records(rows, { names: await withNames(rows), scopes: person.scopes }, sort);
    },
    note: 'Records are never changed or deleted.',
  };
}

/** The records of one request on this page. */
interface OneRequest {
  first: AuditRecord;
  all: AuditRecord[];
}

function records(
  rows: readonly AuditRecord[],
  { names, scopes }: { names: ActorNames; scopes: ReadonlySet<string> },
  sort: Sorting,
): Html {
  const narrowed = (name: string, value: string, text = value) =>
    html`<a href="${url}?${new URLSearchParams({ [name]: value }).toString()}"${text !== value && html` title="${value}"`}>${text}</a>`;
  const requests = [...Map.groupBy(rows, ({ request_id }) => request_id).values()].flatMap((all): OneRequest[] =>
    all[0] ? [{ first: all[0], all }] : [],
  );
  return table<OneRequest>(
    'Audit records',
    [
      { title: 'When', sort, show: ({ first }) => showSecond(first.created_at) },
      {
        title: 'Who',
        show: ({ first: { actor, address } }) =>
          html`<span class="name">${narrowed('actor', actor, actorText(actor, names))}</span>${address !== null && html`<br><span class="quiet whole">from ${address}</span>`}`,
      },
      {
        title: 'What',
        show: ({ all }) =>
          html`${all.map(({ action, outcome }) => html`<div class="name">${narrowed('action', action, actionText(action))}${outcome !== 'success' && html`<br>${toned('bad', 'refused', outcomeText(outcome))}`}</div>`)}`,
      },
      {
        title: 'Resource',
        show: ({ all }) =>
          html`${[...new Set(all.flatMap(({ resource_id }) => resource_id ?? []))].map((id) => html`<div>${resourceLink(id, scopes)}</div>`)}`,
      },
      {
        title: 'Details',
        show: ({ first, all }) =>
          html`<details class="details wide-open"><summary>Show</summary><div><span class="quiet">request</span> ${narrowed('request_id', first.request_id)}</div>${all
            .flatMap(({ details }) => Object.entries(details))
            .filter(([, value]) => value !== null)
            .map(
              ([name, value]) =>
                html`<div><span class="quiet">${name.replaceAll('_', ' ')}</span> ${factText(value)}</div>`,
            )}</details>`,
      },
    ],
    requests,
    emptyState('No record matches. Choose more days, or records of reads too.', {
      href: url,
      text: 'Clear the filters',
    }),
  );
}

const isoTime = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/;

function factText(value: unknown): Html | string {
  if (typeof value === 'string') return isoTime.test(value) ? showFullTime(value) : value;
  return Array.isArray(value) ? value.join(', ') : JSON.stringify(value);
}
