import { createHash } from 'node:crypto';
import type { Html } from '#libs/service/html.ts';
import { html, trusted } from '#libs/service/html.ts';
import { users } from './users.ts';

/** The pages of the local identity provider: HTML without scripts, with all input escaped. */

const style = `
:root { color-scheme: light dark; --page: #eef1f5; --card: #fff; --text: #1b2430; --quiet: #566274; --line: #7b8798; --accent: #0b5cad; --on-accent: #fff; --note: #fff3d1; --note-text: #5c4300; --bad: #b3151f; }
@media (prefers-color-scheme: dark) {
  :root { --page: #11161d; --card: #1a212b; --text: #e6ebf2; --quiet: #a5b1c2; --line: #76839a; --accent: #7db7f5; --on-accent: #0b1825; --note: #3a2f10; --note-text: #f6dd9a; --bad: #ff9b9f; }
}
* { box-sizing: border-box; }
body { margin: 0; min-height: 100vh; display: grid; place-items: center; padding: 1rem; background: var(--page); color: var(--text); font: 1rem/1.5 system-ui, sans-serif; }
main { width: 100%; max-width: 25rem; padding: 1.75rem; border-radius: .75rem; background: var(--card); box-shadow: 0 1px 4px rgb(0 0 0 / .25); overflow-wrap: anywhere; }
h1 { margin: 0; font-size: 1.5rem; line-height: 1.25; }
h2 { margin: 1.75rem 0 .25rem; font-size: 1rem; }
.bank { margin: 0 0 .25rem; color: var(--quiet); }
.note { margin: 1rem 0; padding: .6rem .8rem; border-radius: .4rem; background: var(--note); color: var(--note-text); }
.bad { margin: 1rem 0 0; color: var(--bad); font-weight: 600; }
label { display: block; margin: 1rem 0 .25rem; font-weight: 600; }
input, button { width: 100%; min-height: 2.75rem; padding: .5rem .75rem; border-radius: .4rem; font: inherit; }
input { border: 1px solid var(--line); background: var(--card); color: var(--text); }
button { margin-top: 1.25rem; border: 0; background: var(--accent); color: var(--on-accent); font-weight: 600; cursor: pointer; }
:focus-visible { outline: 3px solid var(--accent); outline-offset: 2px; }
dl { display: grid; grid-template-columns: auto 1fr; gap: .25rem .75rem; margin: 0; color: var(--quiet); }
dt { font-weight: 600; color: var(--text); }
dd { margin: 0; }
`;

/**
 * Returns the Content-Security-Policy, which allows only this style. `formTargets` are the origins to which a form's
 * response may redirect. Scripts are not allowed from 'self'; oidc-provider adds the hash of its own if a response_mode
 * needs one.
 */
export function contentSecurityPolicy(formTargets: readonly string[]): string {
  const hash = createHash('sha256').update(style).digest('base64');
  return `default-src 'none'; script-src 'self'; style-src 'sha256-${hash}'; img-src data:; form-action ${["'self'", ...formTargets].join(' ')}; base-uri 'none'; frame-ancestors 'none'`;
}

function page(title: string, body: Html): string {
  return `<!doctype html>\n${
    html`<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>${title} · Core banking (development)</title>
<link rel="icon" href="data:,">
<style>${trusted(style)}</style>
</head>
<body>
<main>
<p class="bank">Core banking</p>
<h1>${title}</h1>
${body}
</main>
</body>
</html>`.text
  }\n`;
}

/**
 * Returns a form for user name and password; `refusedName` is the user name of a failed attempt. The form posts to the
 * page's own address.
 */
export function signInPage(refusedName?: string): string {
  const refused = refusedName !== undefined;
  const described = refused && html` aria-invalid="true" aria-describedby="refused"`;
  const people = users.map(({ user_name, name, role }) => html`<dt>${user_name}</dt><dd>${name}, ${role}</dd>\n`);
  return page(
    'Sign in',
    html`<p class="note"><strong>For development only.</strong> This identity provider belongs to a bank on one machine; no real person signs in here.</p>
${refused && html`<p class="bad" id="refused" role="alert">That user name and password do not belong together.</p>`}
<form method="post">
<label for="user_name">User name</label>
<input id="user_name" name="user_name" autocomplete="username" autocapitalize="none" spellcheck="false" maxlength="64" required value="${refusedName}"${described}${!refused && html` autofocus`}>
<label for="password">Password</label>
<input id="password" name="password" type="password" autocomplete="current-password" maxlength="256" required${described}${refused && html` autofocus`}>
<button type="submit">Sign in</button>
</form>
<h2>Who can sign in</h2>
<dl>
${people}
</dl>
<p>All of them have the same password: it was printed with the API key.</p>`,
  );
}

/**
 * Asks for confirmation before ending a session that the caller did not prove to own. `form` is
 * oidc-provider's, with the id op.logoutForm.
 */
export function signOutPage(form: string): string {
  return page(
    'Sign out?',
    html`<p>You are signed in at the identity provider for development.</p>
${trusted(form)}
<button type="submit" form="op.logoutForm" name="logout" value="yes" autofocus>Sign out</button>`,
  );
}

export function messagePage(title: string, text: string): string {
  return page(title, html`<p>${text}</p>`);
}
