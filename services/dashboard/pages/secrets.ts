import type { FastifyInstance } from 'fastify';
import type { ApiKey } from '#libs/contracts/api-keys.ts';
import { html } from '#libs/service/html.ts';
import { known } from '../api.ts';
import { addForm, addPage, type PageRequest, type PageResult } from '../html/frame.ts';
import { csrfField } from '../html/layout.ts';
import { notice, resourcePage } from '../html/show.ts';
import { keyFacts } from './api-keys.ts';

const url = '/admin/ui/secret';

/** Keeps a secret that the API shows once, and returns the page that shows it until it is copied. */
export function showSecret({ secrets }: PageRequest, id: string, secret: string | undefined): PageResult {
  // A form that is sent again gets the same answer without the secret.
  if (secret !== undefined) secrets.keep(id, secret);
  return { redirectTo: `${url}?${new URLSearchParams({ of: id })}` };
}

const pageOf = (id: string) =>
  resourcePage(id) ?? (id.startsWith('apr_') ? `/admin/ui/approvals/${encodeURIComponent(id)}` : '/admin/ui');

/** Adds the page of a secret that is shown once. It can be reloaded until the person has copied it. */
export function addSecrets(app: FastifyInstance): void {
  addPage(app, url, { title: 'Secret', scope: null }, async (visit) => {
    const id = visit.query.get('of') ?? '';
    const secret = visit.secrets.read(id);
    const isKey = id.startsWith('key_');
    const key = isKey ? await known(visit.api.get<ApiKey>(`/admin/api-keys/${encodeURIComponent(id)}`)) : undefined;
    const [title, label] = isKey ? ['The new API key', 'API key'] : ['The secret of the webhook', 'Secret'];
    const facts = key && keyFacts(key.data);
    if (secret === undefined)
      return {
        title,
        content: html`${notice('info', 'It was shown, and cannot be shown again. Rotate it if it was lost.')}
${facts}<p><a role="button" href="${pageOf(id)}">Continue</a></p>`,
      };
    return {
      title,
      content: html`<div class="narrow">${notice('warning', html`Copy it now and hand it over safely. It is shown on this page, after a reload too, for ten minutes or until you say that you have copied it; then it cannot be shown again.${id.startsWith('apr_') && ' It signs as soon as the request is approved.'}`)}
<label for="secret">${label}</label>
<textarea id="secret" class="secret" readonly rows="3" spellcheck="false" autocomplete="off">${secret}</textarea>
<button type="button" data-copy-text="${secret}" hidden>Copy</button>
${facts}
<form method="post" action="${url}">${csrfField(visit.person.csrf)}<input type="hidden" name="of" value="${id}"><button>I have copied it</button></form></div>`,
    };
  });
  addForm(app, url, { title: 'Secret', scope: null }, ({ secrets, fields }) => {
    const id = fields.get('of') ?? '';
    secrets.forget(id);
    return { redirectTo: pageOf(id) };
  });
}
