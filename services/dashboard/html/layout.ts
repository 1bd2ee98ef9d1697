import { bankName } from '#libs/service/formats.ts';
import { type Html, html } from '#libs/service/html.ts';
import { type AssetName, assetPath } from './assets.ts';
import { visibleSections } from './navigation.ts';
import { sessionEnd } from './session-end.ts';

/** The person who sees a page. */
export interface Person {
  name: string;
  scopes: ReadonlySet<string>;
  /** The token that every form contains. */
  csrf: string;
  /** For how long the session lasts without use, and at most, in milliseconds. */
  left: { idle_ms: number; most_ms: number };
}

export interface PageParts {
  title: string;
  content: Html;
  /** Absent before sign-in. */
  person?: Person | undefined;
  /** The path of the page, which marks its entry in the navigation. */
  path?: string;
  /** Additional files of this page. */
  assets?: readonly AssetName[] | undefined;
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
export function renderPage({ title, content, person, path = '', assets = [] }: PageParts): string {
  return `<!doctype html>\n${
    html`<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta name="htmx-config" content="${htmxConfig}">
<title>${title} – ${bankName()}</title>
<link rel="icon" href="data:,">
<link rel="stylesheet" href="${assetPath('pico.css')}">
<link rel="stylesheet" href="${assetPath('admin.css')}">
<script src="${assetPath('htmx.js')}" defer></script>
<script src="${assetPath('admin.js')}" defer></script>
${person && html`<script src="${assetPath('session-end.js')}" defer></script>`}
${assets.map((name) => (name.endsWith('.css') ? html`<link rel="stylesheet" href="${assetPath(name)}">` : html`<script src="${assetPath(name)}" defer></script>`))}
</head>
<body>
<a class="skip" href="#content">Skip to content</a>
<header class="bar"><div class="container">${person ? signedInBar(person, path) : html`<span class="brand">${bankName()}</span>`}</div></header>
<main id="content" class="container" tabindex="-1">
<h1>${title}</h1>
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
  const isHere = (url: string) => path === url || (url !== '/admin/ui' && path.startsWith(`${url}/`));
  return html`<a class="brand" href="/admin/ui">${bankName()}</a>
<nav aria-label="Sections"><ul>${visibleSections(scopes).map(({ url, title, count }) => html`<li><a href="${url}"${isHere(url) && html` aria-current="page"`}>${title}${count && html` <span hx-get="${count.url}" hx-trigger="load" hx-select="#${count.id}"></span>`}</a></li>`)}</ul></nav>
${searchKinds.some((scope) => scopes.has(scope)) && html`<search><form class="find" method="get" action="/admin/ui/find"><input type="search" name="q" required maxlength="255" aria-label="Find anything" aria-keyshortcuts="/" placeholder="Search ( / )" autocomplete="off"><button class="secondary">Find</button></form></search>`}
<form class="person" method="post" action="/admin/logout">${csrfField(csrf)}<span>${name}</span> <button class="secondary">Sign out</button></form>`;
}

/** The token that every form with POST contains. */
export function csrfField(csrf: string): Html {
  return html`<input type="hidden" name="csrf_token" value="${csrf}">`;
}
