import type { FastifyInstance } from 'fastify';
import { html } from '#libs/service/html.ts';
import { addPage } from '../html/frame.ts';
import { sectionsOf } from '../html/navigation.ts';

/** The first page: what this person can do here. */
export function addHome(app: FastifyInstance): void {
  addPage(app, '/admin/ui', { title: 'Administration', scope: null }, ({ person }) => {
    const sections = sectionsOf(person.scopes).filter(({ url }) => url !== '/admin/ui');
    return {
      content: html`<p>Signed in as <strong>${person.name}</strong>.</p>
${sections.length === 0 && html`<p role="status">Your account allows nothing here yet. Ask an administrator for the permissions that you need.</p>`}
<div class="cards">${sections.map(({ url, title, about }) => html`<article><h2><a href="${url}">${title}</a></h2><p>${about}</p></article>`)}</div>
<details><summary>Your permissions</summary><p class="tags">${[...person.scopes].sort().map((scope) => html`<code>${scope}</code> `)}</p></details>`,
    };
  });
}
