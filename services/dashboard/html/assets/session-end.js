// Warns before the session ends. The tabs of a browser have one session, so each knows when it was last used in another.
const warning = document.getElementById('session-end');
const { idleMs, mostMs, warnMs } = warning.dataset;
let ends;
let told = '';
let usedAt = 0;

const remember = (idle, most) => {
  ends = { idle: Date.now() + Number(idle), most: Date.now() + Number(most) };
  try {
    localStorage.setItem('session-end', JSON.stringify(ends));
  } catch {
    // Without storage this tab knows only of itself.
  }
};
addEventListener('storage', ({ key, newValue }) => {
  if (key === 'session-end' && newValue) ends = JSON.parse(newValue);
});
for (const type of ['keydown', 'pointerdown']) addEventListener(type, () => (usedAt = Date.now()), { capture: true });

function show(state, leftMs) {
  const minutes = Math.max(1, Math.round(leftMs / 60_000));
  for (const place of warning.querySelectorAll('[data-minutes]')) place.textContent = minutes === 1 ? 'one minute' : `${minutes} minutes`;
  if (told === state) return;
  told = state;
  for (const text of warning.querySelectorAll('[data-for]')) text.hidden = text.dataset.for !== state;
  warning.querySelector('[data-stay]').hidden = state !== 'idle';
  if (!warning.open) warning.showModal();
  warning.querySelector(state === 'idle' ? '[data-stay]' : '[data-close]').focus();
}

async function stay() {
  try {
    const answer = await fetch('/admin/ui/session', { redirect: 'manual', cache: 'no-store' });
    if (answer.type === 'opaqueredirect') remember(0, 0);
    if (!answer.ok) return;
    const { idle_ms, most_ms } = await answer.json();
    remember(idle_ms, most_ms);
  } catch {
    // Asked again at the next look, as long as the page is used.
  }
}

async function look() {
  const left = () => Math.min(ends.idle, ends.most) - Date.now();
  const state = () => (left() > Number(warnMs) ? '' : left() <= 0 ? 'over' : ends.idle < ends.most ? 'idle' : 'most');
  // Somebody who is typing is there.
  if (state() === 'idle' && Date.now() - usedAt < 60_000) await stay();
  if (state() !== '') return show(state(), left());
  told = '';
  if (warning.open) warning.close();
}
warning.querySelector('[data-stay]').addEventListener('click', (event) => {
  event.preventDefault();
  stay().then(look);
});
remember(idleMs, mostMs);
setInterval(look, 5_000);
