// Scripts of all pages. Without scripts everything works except the copy buttons.
document.addEventListener('click', async (event) => {
  const button = event.target.closest('[data-copy-text]');
  if (!button) return;
  try {
    await navigator.clipboard.writeText(button.dataset.copyText);
    button.textContent = 'Copied';
    button.ariaLabel = 'Copied';
  } catch {
    // Without https there is no clipboard: select the text so that it can be copied by hand.
    const source = button.previousElementSibling;
    if (source.matches('textarea')) source.select();
    else getSelection().selectAllChildren(source);
    button.textContent = 'Press Ctrl+C';
    button.ariaLabel = 'Press Ctrl+C to copy';
  }
});
const showScripted = () => {
  for (const button of document.querySelectorAll('[data-copy-text], [data-print]')) button.hidden = false;
};
showScripted();
document.addEventListener('htmx:afterSettle', showScripted);

// A part of a page does not refresh itself while its tab is hidden or while details in it are open.
document.addEventListener('htmx:beforeRequest', (event) => {
  if (document.hidden || event.target.querySelector('details[open]')) event.preventDefault();
});

// When the tab is shown again, these parts refresh immediately.
document.addEventListener('visibilitychange', () => {
  if (!document.hidden) for (const part of document.querySelectorAll('[hx-trigger$="refresh"]')) htmx.trigger(part, 'refresh');
});

// On a phone the pages of a resource are one line, which is scrolled to this page.
for (const here of document.querySelectorAll('.parts li > [aria-current]')) {
  const list = here.closest('ul');
  list.scrollLeft = here.offsetLeft - (list.clientWidth - here.offsetWidth) / 2;
}

// The next step needs no click and no Tab: an invalid field, a link with data-next, or the first field of a form has the
// focus, unless that would scroll the page.
const chosen = document.querySelector('main [autofocus]');
const field = document.querySelector('main [aria-invalid="true"]') ?? document.querySelector('main [data-next]') ?? document.querySelector('main form.narrow :is(input:not([type="hidden"]), select, textarea)');
if (field && !chosen && location.hash === '' && field.getBoundingClientRect().bottom <= innerHeight) field.focus();

// Enter in a select sends the form, as in every other field. On a choice that has the focus it takes that one.
document.addEventListener('keydown', (event) => {
  if (event.key === 'Enter' && event.target.matches('main [type="radio"]')) event.target.checked = true;
  if (event.key !== 'Enter' || !event.target.matches('form select')) return;
  event.preventDefault();
  event.target.form.requestSubmit();
});

// The key / moves to the search box, the arrow keys from result to result.
document.addEventListener('keydown', (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  const isText = event.target.matches('textarea, input:not([type="checkbox"], [type="radio"], [type="file"])');
  const isTyping = isText || event.target.matches('input, select');
  const box = document.querySelector('.find [name="q"]');
  if (event.key === '/' && !isText && box) {
    event.preventDefault();
    box.focus();
    return box.select();
  }
  const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
  const hits = [...document.querySelectorAll('[data-hit]')];
  if (!step || hits.length === 0 || (isTyping && isTyping !== box)) return;
  event.preventDefault();
  const here = document.activeElement;
  const next = hits.indexOf(here.closest('tr')?.querySelector('[data-hit]') ?? here) + step;
  (hits[next] ?? (next < 0 ? box : hits.at(-1)))?.focus();
});

// Alt and a digit follow the link that shows them, also from a field for text.
document.addEventListener('keydown', (event) => {
  const digit = event.altKey && !event.ctrlKey && /^Digit(\d)$/.exec(event.code)?.[1];
  const link = digit && document.querySelector(`a[aria-keyshortcuts="Alt+${digit}"]`);
  if (!link) return;
  event.preventDefault();
  link.click();
});

// A click on a row is one on its first link, unless it is on something else that can be pressed, or marks text.
document.addEventListener('click', (event) => {
  const row = event.target.closest('tr.opens');
  if (!row || event.target.closest('a, button, summary, details, label, input, select, textarea') || String(getSelection()) !== '') return;
  const { ctrlKey, metaKey, shiftKey } = event;
  row.querySelector('a[href]').dispatchEvent(new MouseEvent('click', { bubbles: true, cancelable: true, ctrlKey, metaKey, shiftKey }));
});

// A usual choice of scopes ticks them here. The link would open the form again, without what was entered.
document.addEventListener('click', (event) => {
  const link = event.target.closest('[data-ticks]');
  if (!link) return;
  event.preventDefault();
  const wanted = link.dataset.ticks.split(' ');
  for (const box of document.querySelectorAll('[name="scopes"]')) box.checked = wanted.includes(box.value);
});

// A form that is not answered at once says that it was sent, and cannot be sent again. A file leaves the page as it is.
document.addEventListener('submit', ({ target, submitter, defaultPrevented }) => {
  const button = submitter ?? target.querySelector('button');
  const isFile = /\.\w+$/.test(new URL(target.getAttribute('action') ?? '', location.href).pathname);
  if (defaultPrevented || !button || isFile || target.method === 'dialog' || target.target === '_blank') return;
  setTimeout(() => {
    button.ariaBusy = 'true';
    button.disabled = true;
  }, 300);
});
// The browser shows this page again as it was.
addEventListener('pageshow', () => {
  for (const button of document.querySelectorAll('button[aria-busy]')) {
    button.ariaBusy = null;
    button.disabled = false;
  }
});

// The counts in the menu are also where it is closed: on its button, and on the bar of a phone.
document.addEventListener('htmx:afterSettle', ({ target }) => {
  if (!target.closest('.menu')) return;
  for (const place of document.querySelectorAll('.counts')) {
    place.replaceChildren(...[...target.querySelectorAll('.count')].map((count) => count.cloneNode(true)));
  }
});

// A menu closes when something else is pressed, and by Escape.
const closeMenus = (except) => {
  for (const menu of document.querySelectorAll(':is(.user, .menu, .more)[open]')) if (!menu.contains(except)) menu.open = false;
};
document.addEventListener('click', ({ target }) => closeMenus(target));
document.addEventListener('keydown', ({ key, target }) => {
  if (key !== 'Escape') return;
  const menu = target.closest(':is(.user, .menu, .more)[open]');
  closeMenus(null);
  menu?.querySelector('summary').focus();
});

// The print button.
document.addEventListener('click', (event) => {
  if (event.target.closest('[data-print]')) window.print();
});

// The answer to a form is a page that cannot be read again. Reloading it, or going back to it, shows the page of the form,
// instead of asking whether to send the form again.
const { here } = document.documentElement.dataset;
if (here) history.replaceState(null, '', here);
