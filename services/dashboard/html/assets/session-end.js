// Warns before the session ends. The tabs of a browser have one session, so each knows when it was last used in another.
const warning = document.getElementById('session-end');
const { idleMs, mostMs, warnMs } = warning.dataset;
// What the tabs share: when the session ends, and whether it was said that it ends in spite of use.
let shared = {};
let told = '';
let usedAt = 0;

// Read again at each look, because a page that the browser shows again after going back has old times.
const readShared = () => {
  try {
    shared = JSON.parse(localStorage.getItem('session-end')) ?? shared;
  } catch {
    // Without storage this tab knows only of itself.
  }
};
const share = (news) => {
  shared = { ...shared, ...news };
  try {
    localStorage.setItem('session-end', JSON.stringify(shared));
  } catch {
    // As above.
  }
};
const remember = (idle, most) => {
  const ends = { idle: Date.now() + Number(idle), most: Date.now() + Number(most) };
  // The times of one session differ by how long its answers took.
  const isSameSession = Math.abs(ends.most - shared.most) < 30_000;
  share({ ...ends, isMostTold: isSameSession && shared.isMostTold });
};
// Closing the warning is no use.
const noteUse = ({ target }) => {
  if (!warning.contains(target)) usedAt = Date.now();
};
for (const type of ['keydown', 'pointerdown']) addEventListener(type, noteUse, { capture: true });

const leftText = (leftMs) => {
  const minutes = Math.round(leftMs / 60_000);
  return leftMs < 60_000 ? 'less than a minute' : minutes === 1 ? 'one minute' : `${minutes} minutes`;
};

function show(state, leftMs) {
  for (const place of warning.querySelectorAll('[data-minutes]')) place.textContent = leftText(leftMs);
  if (told === state) return;
  told = state;
  if (state === 'most') share({ isMostTold: true });
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
  readShared();
  const left = () => Math.min(shared.idle, shared.most) - Date.now();
  const state = () => (left() > Number(warnMs) ? '' : left() <= 0 ? 'over' : shared.idle < shared.most ? 'idle' : 'most');
  // Somebody who is typing is there.
  if (state() === 'idle' && Date.now() - usedAt < 60_000) await stay();
  const isSaid = state() === 'most' && shared.isMostTold && told !== 'most';
  if (state() !== '' && !isSaid) return show(state(), left());
  told = '';
  if (warning.open) warning.close();
}
warning.querySelector('[data-stay]').addEventListener('click', (event) => {
  event.preventDefault();
  stay().then(look);
});
readShared();
remember(idleMs, mostMs);
setInterval(look, 5_000);
