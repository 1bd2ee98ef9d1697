import { type Html, html } from '#libs/service/html.ts';
import type { Person } from './layout.ts';

/**
 * The warning before a session ends, which session-end.js opens. It says what can be done: nothing that was entered is
 * lost, because a form that is sent too late is kept (kept-form.ts).
 */
export function sessionEnd({ idle_ms, most_ms, warn_ms }: Person['left']): Html {
  const kept = 'If you send a form after that, it is kept: you sign in, and get it back.';
  return html`<dialog id="session-end" aria-labelledby="session-end-title" aria-describedby="session-end-text" data-idle-ms="${idle_ms}" data-most-ms="${most_ms}" data-warn-ms="${warn_ms}"><article>
<h2 id="session-end-title">Your session</h2>
<div id="session-end-text"><p data-for="idle">Nothing has been done in the dashboard for a while. Your session ends in <strong data-minutes></strong>. ${kept}</p>
<p data-for="most">You must sign in again in <strong data-minutes></strong>. ${kept}</p>
<p data-for="over">Your session has ended. What you have entered on this page is still here: if you send it, it is kept; you sign in, and get it back.</p></div>
<form method="dialog" class="actions"><button data-stay autofocus>Stay signed in</button> <button data-close class="secondary">Close</button></form>
</article></dialog>`;
}
