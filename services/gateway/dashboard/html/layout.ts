import type { Html } from '#libs/service/html.ts';
import { html } from '#libs/service/html.ts';
import type { AssetName } from './assets.ts';
import { assetPath } from './assets.ts';
import { decimalMark } from './formats.ts';
import { sectionsOf } from './navigation.ts';

/** Who looks at a page. */
export interface Person {
  name: string;
  scopes: ReadonlySet<string>;
  /** The token of the forms on it. */
  csrf: string;
}

export interface PageParts {
  title: string;
  content: Html;
  /** Absent before sign-in. */
  person?: Person | undefined;
  /** Path of the page: its entry of the navigation is marked. */
  path?: string;
  /** What this page needs besides what every page has. */
  assets?: readonly AssetName[] | undefined;
}

/** htmx must neither write styles into the page nor evaluate text: the content policy allows neither. */
const htmxConfig = JSON.stringify({
  includeIndicatorStyles: false,
  includeIndicatorCSS: false,
  allowEval: false,
  allowScriptTags: false,
  selfRequestsOnly: true,
  historyCacheSize: 0,
});

/** A whole page. */
export function renderPage({ title, content, person, path = '', assets = [] }: PageParts): string {
  return `<!doctype html>\n${
    html`<html lang="en" data-decimal="${decimalMark()}">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta name="htmx-config" content="${htmxConfig}">
<title>${title} – Core Banking</title>
<link rel="icon" href="data:,">
<link rel="stylesheet" href="${assetPath('pico.css')}">
<link rel="stylesheet" href="${assetPath('admin.css')}">
<script src="${assetPath('htmx.js')}" defer></script>
<script src="${assetPath('admin.js')}" defer></script>
${assets.map((name) => (name.endsWith('.css') ? html`<link rel="stylesheet" href="${assetPath(name)}">` : html`<script src="${assetPath(name)}" defer></script>`))}
</head>
<body>
<a class="skip" href="#content">Skip to content</a>
<header class="bar"><div class="container">${person ? signedInBar(person, path) : html`<span class="brand">Core Banking</span>`}</div></header>
<main id="content" class="container" tabindex="-1">
<h1>${title}</h1>
${content}
</main>
</body>
</html>`.text
  }\n`;
}

/** Without any of them a search finds nothing. */
const searchKinds = ['clients:read', 'accounts:read', 'transactions:read', 'audit:read'];

function signedInBar({ name, scopes, csrf }: Person, path: string): Html {
  const isHere = (url: string) => path === url || (url !== '/admin/ui' && path.startsWith(`${url}/`));
  return html`<a class="brand" href="/admin/ui">Core Banking</a>
<nav aria-label="Sections"><ul>${sectionsOf(scopes).map(({ url, title, count }) => html`<li><a href="${url}"${isHere(url) && html` aria-current="page"`}>${title}${count && scopes.has(count.scope) && html` <span hx-get="${count.url}" hx-trigger="load" hx-select="#${count.id}"></span>`}</a></li>`)}</ul></nav>
${searchKinds.some((scope) => scopes.has(scope)) && html`<search><form class="find" method="get" action="/admin/ui/find"><input type="search" name="q" required maxlength="255" aria-label="Find anything" aria-keyshortcuts="/" placeholder="Search ( / )" autocomplete="off"><button>Find</button></form></search>`}
<form class="person" method="post" action="/admin/logout">${csrfField(csrf)}<span>${name}</span> <button class="outline secondary">Sign out</button></form>`;
}

/** What every form that changes something carries. */
export function csrfField(csrf: string): Html {
  return html`<input type="hidden" name="csrf_token" value="${csrf}">`;
}
