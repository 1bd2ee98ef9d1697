import { type Html, html } from '#libs/service/html.ts';

/** Charts of amounts by day, as SVG in the page. All amounts are exact; only pixels are rounded. */

const width = 900;
const lineHeight = 120;
const barHeight = 36;

/** Where an amount is, from 0 to `most` pixels with one decimal, between these two. */
function pixel(value: bigint, low: bigint, high: bigint, most: number): number {
  return high === low ? 0 : Number(((value - low) * BigInt(most * 10)) / (high - low)) / 10;
}

/** Returns the largest of these, at least 0. */
export const highest = (values: readonly bigint[]) => values.reduce((most, value) => (value > most ? value : most), 0n);
const lowest = (values: readonly bigint[]) => values.reduce((least, value) => (value < least ? value : least), 0n);

export interface ChartDay {
  /** Amounts in the minor unit of one currency. */
  balance: bigint;
  moneyIn: bigint;
  moneyOut: bigint;
  /** What people read who point at the day. */
  title: string;
}

/**
 * Shows a balance by day as a line from zero, and what arrived and left on each day as bars, up and down; the last day is
 * marked. `label`: what the picture says, for those who do not see it.
 */
export function dayChart(days: readonly ChartDay[], label: string): Html {
  const step = width / Math.max(1, days.length);
  const round = (value: number) => value.toFixed(1);
  const balances = days.map(({ balance }) => balance);
  const [low, high] = [lowest(balances), highest(balances)];
  const y = (value: bigint) => round(lineHeight - pixel(value, low, high, lineHeight - 8) - 2);
  // A balance is that of the whole day, so the line is of steps.
  const points = days.map(
    ({ balance }, i) => `${round(i * step)},${y(balance)} ${round((i + 1) * step)},${y(balance)}`,
  );
  const most = highest(days.flatMap(({ moneyIn, moneyOut }) => [moneyIn, moneyOut]));
  const middle = lineHeight + 16 + barHeight;
  const bars = days.map(({ moneyIn, moneyOut, title }, i) => {
    const bar = (kind: string, amount: bigint, isUp: boolean) => {
      if (amount <= 0n) return false;
      const height = Math.max(1, pixel(amount, 0n, most, barHeight));
      return html`<rect class="${kind}" x="${round(i * step + step * 0.2)}" y="${round(isUp ? middle - height : middle)}" width="${round(step * 0.6)}" height="${round(height)}"/>`;
    };
    return html`<g${i === days.length - 1 && html` class="last"`}>${bar('in', moneyIn, true)}${bar('out', moneyOut, false)}<rect class="day" x="${round(i * step)}" y="0" width="${round(step)}" height="${String(middle + barHeight)}"><title>${title}</title></rect></g>`;
  });
  return html`<svg class="days" viewBox="0 0 ${String(width)} ${String(middle + barHeight)}" preserveAspectRatio="none" role="img" aria-label="${label}">
<polygon class="area" points="0,${y(0n)} ${points.join(' ')} ${String(width)},${y(0n)}"/>
<polyline class="line" points="${points.join(' ')}" vector-effect="non-scaling-stroke"/>
<line class="zero" x1="0" x2="${String(width)}" y1="${String(middle)}" y2="${String(middle)}" vector-effect="non-scaling-stroke"/>
${bars}</svg>`;
}

/** Shows one amount or number of each period as a bar, with what people read who point at it. */
export function barChart(bars: readonly { value: bigint; title: string }[], label: string): Html {
  const step = width / Math.max(1, bars.length);
  const most = highest(bars.map(({ value }) => value));
  const drawn = bars.map(({ value, title }, i) => {
    const height = value <= 0n ? 0 : Math.max(1, pixel(value, 0n, most, lineHeight));
    return html`<g><rect class="in" x="${(i * step + step * 0.15).toFixed(1)}" y="${(lineHeight - height).toFixed(1)}" width="${(step * 0.7).toFixed(1)}" height="${height.toFixed(1)}"/><rect class="day" x="${(i * step).toFixed(1)}" y="0" width="${step.toFixed(1)}" height="${String(lineHeight)}"><title>${title}</title></rect></g>`;
  });
  return html`<svg class="days" viewBox="0 0 ${String(width)} ${String(lineHeight)}" preserveAspectRatio="none" role="img" aria-label="${label}">${drawn}</svg>`;
}
