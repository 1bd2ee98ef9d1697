import type { FastifyInstance } from 'fastify';
import { html } from '#libs/service/html.ts';
import { addPage } from '../html/frame.ts';
import { sectionsOf } from '../html/navigation.ts';
import { todayPlace } from './today.ts';

/** The first page: today's figures, and the sections that this person may open. */
export function addHome(app: FastifyInstance): void {
  addPage(app, '/admin/ui', { title: 'Today', scope: null }, ({ person }) => {
    const sections = sectionsOf(person.scopes).filter(({ url }) => url !== '/admin/ui');
    return {
      content: html`${person.scopes.has('books:read') && todayPlace}
${sections.length === 0 && html`<p role="status">You have no permissions here yet. Ask an administrator for those that you need.</p>`}
<h2>Where to</h2>
<div class="cards">${sections.map(({ url, title, about }) => html`<article><h3><a href="${url}">${title}</a></h3><p>${about}</p></article>`)}</div>
<details><summary>Your permissions</summary><p class="tags">${[...person.scopes].sort().map((scope) => html`<code>${scope}</code> `)}</p></details>`,
    };
  });
}
