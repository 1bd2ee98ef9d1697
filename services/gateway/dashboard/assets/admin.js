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
