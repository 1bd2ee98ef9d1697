/** Sub-buckets per power of two, for an error of less than one percent. */
const subBits = 7;
const sub = 1 << subBits;
const buckets = (32 - subBits + 1) * sub;

/**
 * Latencies in whole microseconds, up to 71 minutes, in buckets that are less than one percent wide
 * (as in HDR histograms).
 */
export class Histogram {
  readonly #counts = new Float64Array(buckets);
  #count = 0;
  #sum = 0;
  #max = 0;

  record(us: number): void {
    const value = us < 0 ? 0 : us > 0xffffffff ? 0xffffffff : Math.round(us);
    const index = indexOf(value);
    this.#counts[index] = (this.#counts[index] ?? 0) + 1;
    this.#count += 1;
    this.#sum += value;
    if (value > this.#max) this.#max = value;
  }

  get count(): number {
    return this.#count;
  }

  /** Returns the value, in µs, that `share` (0 to 1) of all values do not exceed; 0 if there are none. */
  percentile(share: number): number {
    const wanted = Math.max(1, Math.ceil(share * this.#count));
    let seen = 0;
    for (let index = 0; index < buckets && this.#count > 0; index++) {
      seen += this.#counts[index] ?? 0;
      if (seen >= wanted) return Math.min(this.#max, largestInBucket(index));
    }
    return 0;
  }

  /** Returns all reported values, in milliseconds. */
  summary(): Latency {
    const ms = (us: number) => Math.round(us) / 1000;
    const at = (share: number) => ms(this.percentile(share));
    return {
      mean: ms(this.#count === 0 ? 0 : this.#sum / this.#count),
      p50: at(0.5),
      p90: at(0.9),
      p99: at(0.99),
      p999: at(0.999),
      max: ms(this.#max),
    };
  }
}

/** Milliseconds. */
export interface Latency {
  mean: number;
  p50: number;
  p90: number;
  p99: number;
  p999: number;
  max: number;
}

function indexOf(value: number): number {
  const shift = Math.max(0, 32 - Math.clz32(value) - subBits - 1);
  return shift * sub + (value >>> shift);
}

/** Returns the largest value of a bucket. */
function largestInBucket(index: number): number {
  if (index < 2 * sub) return index;
  const shift = Math.floor(index / sub) - 1;
  return (index - shift * sub + 1) * 2 ** shift - 1;
}
