import type { FastifyInstance } from 'fastify';
import type { AuditActor, AuditRecord } from '#libs/contracts/audit.ts';
import { clientName } from '#libs/contracts/clients.ts';
import { subjectsIn } from '#libs/contracts/ids.ts';
import type { SearchHit } from '#libs/contracts/search.ts';
import { type Html, html } from '#libs/service/html.ts';
import { known } from '../api.ts';
import { type ActorNames, actorText, readActorNames, showActor } from '../html/actors.ts';
import type { CsvColumn } from '../html/csv.ts';
import type { PageContent, PageRequest } from '../html/frame.ts';
import { addListPage, type Filter, type List, type Sorting, withChosen } from '../html/lists.ts';
import { readNamed } from '../html/owners.ts';
import { emptyState, idText, notice, resourceLink, showFullTime, showSecond, table, toned } from '../html/show.ts';
import { type Subjects, showSubject, withAmounts, withNumbers } from './approval-subjects.ts';
import {
  actionText,
  changeGroups,
  detailText,
  isTechnical,
  readGroup,
  recordText,
  recordTitle,
} from './audit-words.ts';

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

function filtersFor({ names, subjects }: Known, { typed, found }: Who, query: URLSearchParams): Filter[] {
  const suggestions = typed === '' ? [me, ...new Set(found.map(({ name }) => name))] : [];
  return [
    { name: 'reads', label: 'Records of', any: 'changes', options: [['with', 'changes and reads']], isMain: true },
    query.has('actor')
      ? { name: 'actor', label: 'Who', fromLink: (actor) => html`By ${actorText(actor, names)} only.` }
      : { name: 'who', label: 'Who', hint: 'officer', suggestions, isOwn: true, isMain: true },
    { name: 'action', label: 'What', groups: groupsFor(query), isMain: true },
    { name: 'outcome', label: 'Outcome', options: withChosen(outcomes, query.get('outcome'), outcomeText) },
    query.has('subject')
      ? {
          name: 'subject',
          label: 'Customer or account',
          fromLink: (id) => html`About ${showSubject(id, subjects)} only.`,
        }
      : { name: 'about', label: 'Customer or account', hint: 'SAV-2501804179', isOwn: true, isMain: true },
    { name: 'resource_id', label: 'Resource', fromLink: (id) => html`Records about ${idText(id)} only.` },
    { name: 'request_id', label: 'Request', fromLink: (id) => html`Of the request <code>${id}</code> only.` },
  ];
}

/** The groups of actions that can be among the records, with the chosen action if it is in none. */
function groupsFor(query: URLSearchParams): NonNullable<Filter['groups']> {
  const chosen = query.get('action');
  const groups = query.get('reads') === 'with' ? [...changeGroups, readGroup] : changeGroups;
  return !chosen || groups.some(([, actions]) => actions.some(([name]) => name === chosen))
    ? groups
    : [['Chosen', [[chosen, actionText(chosen)]]], ...groups];
}

/** What people know by other names than the records have. */
interface Known {
  names: ActorNames;
  subjects: Subjects;
}

const subjectsOf = ({ resource_id, details }: AuditRecord): string[] =>
  subjectsIn(`${resource_id} ${JSON.stringify(details)}`);

const readAbout = async (visit: PageRequest, ids: readonly string[]): Promise<Subjects> => ({
  ...(await readNamed(visit, ids)),
  originals: new Map(),
});

const isHit = ({ kind }: SearchHit): boolean => kind === 'client' || kind === 'account';

/** What the records about a customer or an account do not contain, and where it is. */
function showMissing({ query, person }: PageRequest): Html {
  const subject = query.get('subject') ?? '';
  const days = new URLSearchParams([...query].filter(([name]) => ['from_day', 'to_day'].includes(name)));
  const [href, text] = subject.startsWith('acc_')
    ? [`/admin/ui/accounts/${subject}/transactions?${days}`, 'all transactions of the account']
    : [`/admin/ui/clients/${subject}`, 'the customer’s accounts, with their transactions'];
  const mayOpen = person.scopes.has(subject.startsWith('acc_') ? 'transactions:read' : 'clients:read');
  return html`${subject !== '' && notice('info', html`<strong>Postings by programs, and the payments of files, are not here.</strong>${mayOpen && html` See <a href="${href}">${text}</a>.`}`)}`;
}

/** Leads to the records about the customer or account that was entered, or shows which there are. */
async function chooseSubject(visit: PageRequest): Promise<PageContent> {
  const { api, query } = visit;
  const typed = query.get('about')?.trim() ?? '';
  if (typed === '') return showMissing(visit);
  const hits = (await known(api.get<SearchHit[]>(`/admin/search?${new URLSearchParams({ q: typed })}`)))?.data ?? [];
  const [first, ...others] = hits.filter(isHit);
  if (first === undefined) return notice('info', `No customer or account was found for “${typed}”.`);
  const rest = [...query].filter(([name]) => !['about', 'subject', 'cursor'].includes(name));
  const to = (id: string) => `${url}?${new URLSearchParams([['subject', id], ...rest])}`;
  if (others.length === 0) return { redirectTo: to(first.id) };
  return notice(
    'info',
    html`Several match “${typed}”: ${[first, ...others].map(({ id, title, subtitle }) => html`<a href="${to(id)}" title="${subtitle}">${title}</a> `)}`,
  );
}

/** Reads are shown only on request or by a link, because otherwise there would be more of them than changes. */
const showsReads = (query: URLSearchParams) =>
  ['reads', 'action', 'resource_id', 'request_id'].some((name) => (query.get(name) ?? '') !== '');

/** Adds the page of the audit: who did what, or was refused. */
export function addAudit(app: FastifyInstance): void {
  addListPage(app, url, { title: 'Audit', scope: 'audit:read' }, auditList, columns);
}

type Listed = AuditRecord & { name?: string | undefined; what?: string; accounts?: string; customers?: string };

/** What the record is about, in words. */
const textOf = ({ summary, action, ...details }: AuditRecord['details'], subjects: Subjects): string =>
  recordText(
    { action, ...details },
    typeof summary === 'string' ? withNumbers(withAmounts(summary, action), subjects) : undefined,
  );

const columns: CsvColumn<Listed>[] = [
  'created_at',
  { title: 'who', value: ({ actor, name }) => name ?? actorText(actor) },
  'what',
  { title: 'outcome', value: ({ outcome }) => outcomeText(outcome) },
  'accounts',
  'customers',
  'address',
  {
    title: 'details',
    value: ({ details }) =>
      Object.entries(details)
        .map(([name, value]) => `${name} ${detailText(value)}`)
        .join('; '),
  },
  'actor',
  'action',
  'resource_id',
  'request_id',
  'audit_id',
];

async function auditList(visit: PageRequest): Promise<List<Listed>> {
  const { query, person } = visit;
  const who = await readWho(visit);
  const found = new Map(who.found.map(({ actor, name }) => [actor, name]));
  const withNames = async (rows: readonly Partial<AuditRecord>[]): Promise<ActorNames> => {
    const actors = rows.flatMap(({ actor, details = {} }) => [actor, details['approved_by'], details['requested_by']]);
    const known = actors.flatMap((actor) => (typeof actor === 'string' ? [{ actor }] : []));
    return new Map([...found, ...(await readActorNames(visit, known, 'actor'))]);
  };
  const readKnown = async (rows: readonly AuditRecord[]): Promise<Known> => {
    const [names, subjects] = await Promise.all([withNames(rows), readAbout(visit, rows.flatMap(subjectsOf))]);
    return { names, subjects };
  };
  const [actor, subject] = [query.get('actor'), query.get('subject')];
  const chosen = {
    names: await withNames(actor === null ? [] : [{ actor }]),
    subjects: await readAbout(visit, subject === null ? [] : [subject]),
  };
  const isChoosing = who.typed !== '' || (query.get('about')?.trim() ?? '') !== '';
  return {
    path: '/admin/audit',
    fixed: {
      ...(!showsReads(query) && { reads: 'without' }),
      // Until one is chosen, no records are shown.
      ...(isChoosing && { actor: 'to be chosen' }),
    },
    filters: filtersFor(chosen, who, query),
    hasDays: true,
    above: async () => (who.typed === '' ? chooseSubject(visit) : chooseWho(query, who)),
    async show(rows, sort) {
      return records(rows, await readKnown(rows), person.scopes, sort);
    },
    async complete(rows) {
      const { names, subjects } = await readKnown(rows);
      return rows.map((row) => {
        const ids = subjectsOf(row);
        const accounts = ids.flatMap((id) => subjects.accounts.get(id) ?? []);
        const owners = [...ids, ...accounts.map(({ client_id }) => client_id)];
        const customers = [...new Set(owners)].flatMap((id) => subjects.clients.get(id) ?? []).map(clientName);
        return {
          ...row,
          name: names.get(row.actor),
          what: [recordTitle(row.action, row.details), textOf(row.details, subjects)].filter(Boolean).join(': '),
          accounts: accounts.map(({ account_number }) => account_number).join('; '),
          customers: customers.join('; '),
        };
      });
    },
    note: 'Records are never changed or deleted.',
  };
}

/** The id of a session tells people nothing. */
const isSession = (id: string): boolean => id.startsWith('ses_');

/** The records of one request on this page. */
interface OneRequest {
  first: AuditRecord;
  all: AuditRecord[];
}

function records(
  rows: readonly AuditRecord[],
  { names, subjects }: Known,
  scopes: ReadonlySet<string>,
  sort: Sorting,
): Html {
  const narrowed = (name: string, value: string, text = value) =>
    html`<a href="${url}?${new URLSearchParams({ [name]: value }).toString()}"${text !== value && html` title="${value}"`}>${text}</a>`;
  // What was approved was done later than its request, which asked for the approval.
  const together = ({ request_id, details }: AuditRecord) => `${request_id} ${details['approval_id']}`;
  const requests = [...Map.groupBy(rows, together).values()].flatMap((all): OneRequest[] =>
    all[0] ? [{ first: all[0], all }] : [],
  );
  const about = (all: readonly AuditRecord[]): Html[] => {
    const ids = [...new Set(all.flatMap(subjectsOf))].filter(
      (id) => subjects.accounts.has(id) || subjects.clients.has(id),
    );
    // The owner of an account is shown with it.
    const owners = new Set(ids.map((id) => subjects.accounts.get(id)?.client_id));
    const known = ids.filter((id) => !owners.has(id)).map((id) => showSubject(id, subjects));
    const resources = [...new Set(all.flatMap(({ resource_id }) => resource_id ?? []))].filter((id) => !isSession(id));
    return known.length > 0 ? known : resources.map((id) => resourceLink(id, scopes));
  };
  const detail = ([name, value]: [string, unknown]) =>
    html`<div><span class="quiet">${name.replaceAll('_', ' ')}</span> ${showDetail(name, value, names)}</div>`;
  return table<OneRequest>(
    'Audit records',
    [
      { title: 'When', sort, show: ({ first }) => showSecond(first.created_at) },
      {
        title: 'Who',
        show: ({ first: { actor, address } }) =>
          html`<span class="name">${narrowed('actor', actor, actorText(actor, names))}</span>${address !== null && html`<br><span class="quiet whole address">from ${address}</span>`}`,
      },
      {
        title: 'What',
        show: ({ all }) =>
          html`${all.map(({ action, outcome, details }) => html`<div class="name">${narrowed('action', action, recordTitle(action, details))}${textOf(details, subjects) !== '' && html`<br><span class="text">${textOf(details, subjects)}</span>`}${typeof details['approved_by'] === 'string' && html`<br><span class="quiet">approved by ${actorText(details['approved_by'], names)}</span>`}${outcome !== 'success' && html`<br>${toned('bad', 'refused', outcomeText(outcome))}`}</div>`)}`,
      },
      {
        title: 'About',
        show: ({ all }) => html`${about(all).map((one) => html`<div class="name">${one}</div>`)}`,
      },
      {
        title: 'Details',
        show({ first, all }) {
          const given = all.flatMap(({ details }) => Object.entries(details)).filter(([, value]) => value !== null);
          const [technical, others] = [
            given.filter(([name]) => isTechnical(name)),
            given.filter(([name]) => !isTechnical(name)),
          ];
          return html`<details class="details"><summary>Show</summary>${others.map(detail)}${first.address !== null && detail(['address', first.address])}<div><span class="quiet">request</span> ${narrowed('request_id', first.request_id)}</div>${technical.map(detail)}</details>`;
        },
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

function showDetail(name: string, value: unknown, names: ActorNames): Html | string {
  if (typeof value !== 'string') return detailText(value);
  if (isoTime.test(value)) return showFullTime(value);
  return name.endsWith('_by') ? showActor(value, names) : value;
}
