// Draws the postings over time. A table below contains the same numbers.
function draw(place) {
  if (place.dataset.drawn || typeof uPlot === 'undefined') return;
  place.dataset.drawn = 'yes';
  place.hidden = false;
  // A canvas needs the colour that the theme gives, not the expression that chooses it.
  const colour = (name) => {
    place.style.color = `var(${name})`;
    const { color } = getComputedStyle(place);
    place.style.color = '';
    return color;
  };
  const [text, grid, first, second] = ['--pico-color', '--pico-muted-border-color', '--pico-primary', '--pico-ins-color'].map(colour);
  const axis = (more) => ({ stroke: text, grid: { stroke: grid, width: 1 }, ticks: { stroke: grid, width: 1 }, ...more });
  const short = new Intl.NumberFormat('en', { notation: 'compact', maximumFractionDigits: 1 });
  // The Swedish format is that of ISO 8601, as in the table.
  const clock = new Intl.DateTimeFormat('sv-SE', { timeZone: place.dataset.zone, dateStyle: 'short', timeStyle: 'short' });
  const timeOf = (seconds) => clock.format(seconds * 1000).slice(...(place.dataset.unit === 'day' ? [5, 10] : [11, 16]));
  const size = () => ({ width: place.clientWidth, height: 300 });
  const chart = new uPlot({
    ...size(),
    tzDate: (seconds) => uPlot.tzDate(new Date(seconds * 1000), place.dataset.zone),
    cursor: { drag: { x: false, y: false } },
    scales: { operations: { range: (_chart, _low, high) => [0, Math.max(1, high * 1.1)] }, amount: { range: (_chart, _low, high) => [0, Math.max(1, high * 1.1)] } },
    axes: [axis({ values: (_chart, ticks) => ticks.map(timeOf) }), axis({ scale: 'operations', size: 60, values: (_chart, ticks) => ticks.map((tick) => short.format(tick)) }), axis({ scale: 'amount', side: 1, size: 60, grid: { show: false }, values: (_chart, ticks) => ticks.map((tick) => short.format(tick)) })],
    series: [
      { label: 'Time', value: '{YYYY}-{MM}-{DD} {HH}:{mm}' },
      { label: 'Operations', scale: 'operations', stroke: first, fill: first.replace(/^rgb\((.*)\)$/, 'rgba($1, 0.25)'), paths: uPlot.paths.bars({ size: [0.7, 40] }), points: { show: false } },
      { label: `Amount in ${place.dataset.currency}`, scale: 'amount', stroke: second, width: 2, points: { show: false } },
    ],
  }, JSON.parse(place.dataset.points), place);
  const resized = new ResizeObserver(() => chart.setSize(size()));
  resized.observe(place);
  // uPlot keeps the colours with which the chart was created.
  matchMedia('(prefers-color-scheme: dark)').addEventListener('change', () => {
    resized.disconnect();
    chart.destroy();
    delete place.dataset.drawn;
    draw(place);
  }, { once: true });
}
const drawAll = () => document.querySelectorAll('.chart[data-points]').forEach(draw);
drawAll();
document.addEventListener('htmx:afterSettle', drawAll);
