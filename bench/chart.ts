/** A line of a picture. Its points are in the order of x. */
export interface Series {
  name: string;
  dashed?: boolean;
  /** Series of one contender have the same color. */
  colour: number;
  points: { x: number; y: number }[];
}

export interface Chart {
  title: string;
  x: Axis;
  y: Axis;
  series: Series[];
}

interface Axis {
  label: string;
  scale: 'log' | 'linear';
}

const size = { width: 760, height: 440 };
const plot = { left: 70, top: 44, right: 210, bottom: 56 };
/**
 * Colors that most color-blind readers can distinguish, on white and on near-black (after Okabe and
 * Ito).
 */
const colours = ['#0072b2', '#d55e00', '#009e73', '#cc79a7', '#e69f00', '#56b4e9', '#999999'];
const style = `text{font:12px system-ui,sans-serif;fill:#24292f}.title{font-size:15px;font-weight:600}.back{fill:#fff}.grid{stroke:#d0d7de;stroke-width:1}path{fill:none;stroke-width:2}
@media (prefers-color-scheme:dark){text{fill:#e6edf3}.back{fill:#0d1117}.grid{stroke:#30363d}}`;

/**
 * Returns an SVG picture of lines with a legend, readable on light and on dark pages. Log scales omit values that are
 * not positive.
 */
export function svg({ title, x, y, series }: Chart): string {
  const shown = series.map((one) => ({
    ...one,
    points: one.points.filter(
      (point) => (x.scale === 'linear' || point.x > 0) && (y.scale === 'linear' || point.y > 0),
    ),
  }));
  const points = shown.flatMap((one) => one.points);
  const across = createScale(
    x,
    points.map((point) => point.x),
    plot.left,
    size.width - plot.right,
  );
  const up = createScale(
    y,
    points.map((point) => point.y),
    size.height - plot.bottom,
    plot.top,
  );
  const lines = shown.map(({ colour, dashed, points }) => {
    const path = points.map((point, i) => `${i === 0 ? 'M' : 'L'}${across.at(point.x)} ${up.at(point.y)}`).join('');
    return `<path d="${path}" stroke="${pickColour(colour)}"${dashed ? ' stroke-dasharray="5 4"' : ''}/>`;
  });
  return [
    ...opening(title, size.height),
    ...across.ticks.map(
      (tick) =>
        `${grid(across.at(tick), plot.top, across.at(tick), size.height - plot.bottom)}${text(across.at(tick), size.height - plot.bottom + 18, short(tick), 'middle')}`,
    ),
    ...up.ticks.map(
      (tick) =>
        `${grid(plot.left, up.at(tick), size.width - plot.right, up.at(tick))}${text(plot.left - 8, up.at(tick) + 4, short(tick), 'end')}`,
    ),
    text((plot.left + size.width - plot.right) / 2, size.height - 14, x.label, 'middle'),
    `<g transform="translate(18 ${(plot.top + size.height - plot.bottom) / 2}) rotate(-90)">${text(0, 0, y.label, 'middle')}</g>`,
    ...lines,
    ...shown.map(legend),
    '</svg>\n',
  ].join('\n');
}

/** Draws one horizontal bar for each row, divided into named parts. Parts of one name have the same color. */
export function stackedBars(
  title: string,
  unit: string,
  rows: { name: string; parts: [name: string, value: number][] }[],
): string {
  /** The names of the rows are to the left of it. */
  const first = 150;
  const names = [...new Set(rows.flatMap(({ parts }) => parts.map(([name]) => name)))];
  const total = ({ parts }: (typeof rows)[number]) => parts.reduce((sum, [, value]) => sum + value, 0);
  const most = Math.max(1, ...rows.map(total));
  const width = (value: number) => (value / most) * (size.width - first - plot.right - 60);
  const step = 44;
  const height = plot.top + rows.length * step + 20;
  const bars = rows.flatMap((row, i) => {
    const y = plot.top + i * step;
    let x = first;
    const rects = row.parts.map(([name, value]) => {
      const rect = `<rect x="${round(x)}" y="${y}" width="${round(width(value))}" height="28" fill="${pickColour(names.indexOf(name))}"/>`;
      x += width(value);
      return rect;
    });
    return [
      text(first - 8, y + 18, row.name, 'end'),
      ...rects,
      text(x + 6, y + 18, `${short(Math.round(total(row)))} ${unit}`, 'start'),
    ];
  });
  const legends = names.map((name, i) => {
    const [left, y] = [size.width - plot.right + 16, plot.top + 10 + i * 20];
    return `<rect x="${left}" y="${y - 6}" width="26" height="12" fill="${pickColour(i)}"/>${text(left + 34, y + 4, name, 'start')}`;
  });
  return [...opening(title, Math.max(height, plot.top + names.length * 20)), ...bars, ...legends, '</svg>\n'].join(
    '\n',
  );
}

function opening(title: string, height: number): string[] {
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${size.width} ${height}" width="${size.width}" height="${height}" role="img" aria-label="${escape(title)}">`,
    `<style>${style}</style><rect class="back" width="100%" height="100%"/>`,
    text(plot.left, 24, title, 'start', 'title'),
  ];
}

function legend({ name, colour, dashed }: Series, i: number): string {
  const left = size.width - plot.right + 16;
  const y = plot.top + 10 + i * 20;
  return `<path d="M${left} ${y}h26" stroke="${pickColour(colour)}"${dashed ? ' stroke-dasharray="5 4"' : ''}/>${text(left + 34, y + 4, name, 'start')}`;
}

/** Returns the position of values between two pixels, and the values with grid lines. */
function createScale(
  { scale }: Axis,
  values: number[],
  from: number,
  to: number,
): { at: (value: number) => number; ticks: number[] } {
  const [least, most] = values.length === 0 ? [1, 10] : [Math.min(...values), Math.max(...values)];
  const ticks = scale === 'log' ? logTicks(least, most) : linearTicks(most);
  const [first, last] = [ticks[0] ?? 0, ticks.at(-1) ?? 1];
  const place = (value: number) => (scale === 'log' ? Math.log10(value) : value);
  const at = (value: number) =>
    round(from + ((place(value) - place(first)) / (place(last) - place(first))) * (to - from));
  return { at, ticks };
}

/** Returns powers of ten around the values, with 2 and 5 in between if there are few. */
function logTicks(least: number, most: number): number[] {
  const [low, high] = [Math.floor(Math.log10(least)), Math.ceil(Math.log10(most) + 1e-9)];
  const steps = high - low > 3 ? [1] : [1, 2, 5];
  const all = Array.from({ length: high - low + 1 }, (_, i) => steps.map((step) => step * 10 ** (low + i))).flat();
  const first = all.filter((tick) => tick <= least).at(-1) ?? all[0] ?? 1;
  const last = all.find((tick) => tick >= most && tick > first) ?? 10 ** high;
  return all.filter((tick) => tick >= first && tick <= last);
}

function linearTicks(most: number): number[] {
  const rough = Math.max(most, 1e-9) / 5;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = ([1, 2, 5, 10].find((factor) => factor * power >= rough) ?? 10) * power;
  return Array.from({ length: Math.ceil(most / step) + 1 }, (_, i) => round(i * step));
}

function text(x: number, y: number, value: string, anchor: string, name?: string): string {
  return `<text x="${x}" y="${y}" text-anchor="${anchor}"${name === undefined ? '' : ` class="${name}"`}>${escape(value)}</text>`;
}

function grid(x1: number, y1: number, x2: number, y2: number): string {
  return `<line class="grid" x1="${x1}" y1="${y1}" x2="${x2}" y2="${y2}"/>`;
}

const round = (value: number): number => Math.round(value * 100) / 100;
const pickColour = (colour: number): string => colours[colour % colours.length] ?? '';
const short = (value: number): string => value.toLocaleString('en-US', { maximumFractionDigits: 3 });
const escape = (value: string): string =>
  value.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('"', '&quot;');
