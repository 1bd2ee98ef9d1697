import { bankName, isTrial } from '#libs/service/formats.ts';
import { type Html, html } from '#libs/service/html.ts';
import { assetPath } from './assets.ts';
import { icon } from './icons.ts';
import { barSections, type Section, visibleSections } from './navigation.ts';
import { sessionEnd } from './session-end.ts';

/** The person who sees a page. */
export interface Person {
  name: string;
  scopes: ReadonlySet<string>;
  /** The token that every form contains. */
  csrf: string;
  /** For how long the session lasts without use, and at most, and when the person is warned, in milliseconds. */
  left: { idle_ms: number; most_ms: number; warn_ms: number };
}

export interface PageParts {
  title: string;
  /** The heading, if it is not the title. */
  heading?: Html | undefined;
  content: Html;
  /** Absent before sign-in. */
  person?: Person | undefined;
  /** The path of the page, which marks its entry in the navigation. */
  path?: string;
  /**
   * For the answer to a form: the address of a page that the browser reloads, and returns to, instead of sending the form
   * again.
   */
  here?: string | undefined;
}

/**
 * The content policy forbids htmx to add styles to the page and to evaluate text. A part of a page that is loaded later
 * must not rename the page.
 */
const htmxConfig = JSON.stringify({
  includeIndicatorStyles: false,
  includeIndicatorCSS: false,
  allowEval: false,
  allowScriptTags: false,
  selfRequestsOnly: true,
  ignoreTitle: true,
  historyCacheSize: 0,
});

/** Renders a complete page. */
export function renderPage({ title, heading, content, person, path = '', here }: PageParts): string {
  return `<!doctype html>\n${
    html`<html lang="en"${here !== undefined && html` data-here="${here}"`}>
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta name="htmx-config" content="${htmxConfig}">
<title>${title} – ${bankName()}</title>
<link rel="icon" href="${assetPath('mark')}">
<link rel="stylesheet" href="${assetPath('style.css')}">
<script src="${assetPath('htmx.js')}" defer></script>
<script src="${assetPath('admin.js')}" defer></script>
${person && html`<script src="${assetPath('session-end.js')}" defer></script>`}
</head>
<body${person && html` class="signed-in"`}>
<a class="skip" href="#content">Skip to content</a>
<header class="bar">${person ? signedInBar(person, path) : html`<span class="brand">${brand()}</span>`}</header>
<main id="content" class="container" tabindex="-1">
<h1>${heading ?? title}</h1>
${content}
</main>
${person && sessionEnd(person.left)}
</body>
</html>`.text
  }\n`;
}

/** Without any of these scopes a search finds nothing. */
const searchKinds = ['clients:read', 'accounts:read', 'transactions:read', 'audit:read'];

function signedInBar({ name, scopes, csrf }: Person, path: string): Html {
  const sections = visibleSections(scopes);
  // Scripts copy the counts to the other places (admin.js).
  const counts = html` <span class="counts"></span>`;
  const counted = ({ url, id }: NonNullable<Section['count']>) =>
    html` <span hx-get="${url}" hx-trigger="load" hx-select="#${id}"></span>`;
  const link = ({ url, title, icon: name, count }: Section, isOnBar = false) =>
    html`<li><a href="${url}"${isAt(url, path) && html` aria-current="page"`}>${icon(name)}${title}${count && (isOnBar ? counts : counted(count))}</a></li>`;
  const groups = [...new Set(sections.map(({ group }) => group))].map((group) => {
    const links = html`<ul>${sections.filter((section) => section.group === group).map((section) => link(section))}</ul>`;
    return group === undefined ? links : html`<p>${group}</p>${links}`;
  });
  return html`<a class="brand" href="/admin/ui">${brand()}</a>
${searchKinds.some((scope) => scopes.has(scope)) && html`<search><form class="find" method="get" action="/admin/ui/find"><input type="search" name="q" required maxlength="255" aria-label="Find anything" aria-keyshortcuts="/" placeholder="Search" autocomplete="off"><kbd aria-hidden="true">/</kbd><button class="secondary">Find</button></form></search>`}
<details class="user"><summary><span class="avatar" aria-hidden="true">${initials(name)}</span> <span class="user-name">${name}</span></summary><form method="post" action="/admin/logout">${csrfField(csrf)}<p>${name}</p><button class="secondary">Sign out</button></form></details>
<details class="menu wide-open"><summary>${icon('menu')}Menu${sections.some(({ count }) => count) && counts}</summary><nav aria-label="Sections">${groups}</nav></details>
<nav class="bottom" aria-label="Most used"><ul>${barSections(sections).map((section) => link(section, true))}</ul></nav>`;
}

const isAt = (url: string, path: string) => path === url || (url !== '/admin/ui' && path.startsWith(`${url}/`));

const brand = () =>
  html`<img class="mark" src="${assetPath('mark')}" alt="" width="28" height="28"><span>${bankName()}</span>${isTrial() && html`<small class="pill wait" title="Not for real money">Trial</small>`}`;

/** The first letters of a name. */
const initials = (name: string) =>
  name
    .split(/\s+/)
    .flatMap((word) => [...word][0] ?? [])
    .slice(0, 2)
    .join('');

/** The token that every form with POST contains. */
export function csrfField(csrf: string): Html {
  return html`<input type="hidden" name="csrf_token" value="${csrf}">`;
}
