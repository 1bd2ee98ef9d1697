// What pages do beyond links and forms. Everything works without it, but copying by a button.
document.addEventListener('click', async (event) => {
  const button = event.target.closest('[data-copy]');
  if (!button) return;
  const source = document.getElementById(button.dataset.copy);
  const said = document.getElementById(button.getAttribute('aria-describedby'));
  try {
    await navigator.clipboard.writeText(source.value);
    said.textContent = 'Copied.';
  } catch {
    // Without https there is no clipboard: the text is marked, to be copied by hand.
    source.focus();
    source.select();
    said.textContent = 'Press Ctrl+C to copy.';
  }
});
for (const button of document.querySelectorAll('[data-copy]')) button.hidden = false;

// Pages that refresh themselves wait while nobody sees them, and while something is open that would close.
document.addEventListener('htmx:beforeRequest', (event) => {
  if (document.hidden || event.target.querySelector('details[open]')) event.preventDefault();
});

// A page that is made to be printed.
document.addEventListener('click', (event) => {
  if (event.target.closest('[data-print]')) window.print();
});
for (const button of document.querySelectorAll('[data-print]')) button.hidden = false;

// Sorts the rows of one page by any column; the whole list is turned around by the API, by the link in its column.
const collator = new Intl.Collator('en', { numeric: true, sensitivity: 'base' });
const numberIn = (text) => Number.parseFloat(text.replaceAll('\u00a0', '').replace('−', '-'));
function compare(kind, a, b) {
  if (kind === 'text') return collator.compare(a, b);
  const [x, y] = [numberIn(a), numberIn(b)];
  return Number.isNaN(x) || Number.isNaN(y) ? Number(Number.isNaN(x)) - Number(Number.isNaN(y)) : x - y;
}
function sortBy(head) {
  const table = head.closest('table');
  const descending = head.ariaSort === 'ascending';
  for (const other of table.tHead.rows[0].cells) other.ariaSort = null;
  head.ariaSort = descending ? 'descending' : 'ascending';
  const textOf = (row) => row.cells[head.cellIndex].textContent.trim();
  const body = table.tBodies[0];
  const isEmpty = (row) => Number(textOf(row) === '');
  // What has no value comes last, whichever way.
  body.append(...[...body.rows].sort((a, b) => isEmpty(a) - isEmpty(b) || (descending ? -1 : 1) * compare(head.dataset.sort, textOf(a), textOf(b))));
  const said = table.closest('.scroll').nextElementSibling;
  if (said?.matches('.sorted')) said.textContent = `Sorted by ${head.textContent}, ${head.ariaSort}: the rows of this page only.`;
}
for (const head of document.querySelectorAll('th[data-sort]')) {
  const button = document.createElement('button');
  button.type = 'button';
  button.className = 'sort';
  button.textContent = head.textContent;
  button.addEventListener('click', () => sortBy(head));
  head.replaceChildren(button);
}
