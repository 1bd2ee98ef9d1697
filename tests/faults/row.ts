import type { Pool } from '#libs/postgres/pool.ts';
import type { Cluster } from './cluster.ts';
import type { Entrance } from './entrance.ts';
import type { EventLog } from './event-log.ts';
import type { Evidence } from './evidence.ts';
import type { Journal } from './journal.ts';
import type { Accounts, Load } from './load.ts';
import type { Random } from './random.ts';

/**
 * How to add a row: make one with the fields below in a file of rows/, and name it in rows/all.ts.
 * While `inject` runs, the load of load.ts goes on; it resolves when the cause is gone, and
 * everything else (load, recovery probe, drain, I1-I12) is done for it by campaign.ts. `npm run
 * test:faults -- --quick --only <name>` runs it alone.
 */
export interface Row {
  /** kebab-case; --only takes it. */
  name: string;
  /** What is injected, as the table in docs/ says it; `lasts` gives a duration as this run has it. */
  title: string | ((lasts: (ms: number) => string) => string);
  /**
   * What it hurts: in `simulate` rows overlap only when they have nothing in common. `all` excludes
   * every other row.
   */
  touches: readonly (string | 'all')[];
  /** How long until all is normal again, from the cause being gone. */
  recoveryMs: number;
  /**
   * What callers may see beyond 2xx, deserved 4xx and, as default, 202, 503, 504. `cut`:
   * connections of a gateway that is killed may be cut. `nothing`: no failed request at all, a 202
   * that ends Completed aside.
   */
  callers?: 'cut' | 'nothing';
  /** A gateway that stands still for a while: it answers nobody until it goes on. */
  frozen?: string;
  /** How long the load runs before it; default 1 s. */
  warmUpMs?: number;
  /** Where the load would disturb. */
  withoutLoad?: boolean;
  /** Injects the fault and takes it away. May return the moment (performance.now) at which the cause was gone. */
  inject(bench: Bench): Promise<number | void>;
  /**
   * How many answers of each status callers got that are not in the journal: refusals that were
   * counted and not followed.
   */
  counted?(): Record<string, number>;
  /** What must hold beyond I1-I12, when everything has come to rest. */
  check?(evidence: Evidence, bench: Bench): Promise<string[]>;
}

/** Thrown by `inject` where this machine cannot have the fault: says why. */
export class Skipped extends Error {}

/** So long does a fault last: as the issue has it, in the quick form at most 5 s. */
export function durationIn(quick: boolean): (ms: number) => number {
  return (ms) => (quick ? Math.min(ms, 5000) : ms);
}

/** The title of a row with the durations that the run has. */
export function titleOf({ title }: Row, quick: boolean): string {
  return typeof title === 'string' ? title : title((ms) => `${durationIn(quick)(ms) / 1000} s`);
}

/** What a row has at hand. */
export interface Bench {
  cluster: Cluster;
  load: Load;
  entrance: Entrance;
  journal: Journal;
  accounts: Accounts;
  events: EventLog;
  /** The superuser's, past all proxies; search_path ledger. */
  pool: Pool;
  random: Random;
  quick: boolean;
  /** By which bounds of time are multiplied (FAULTS_SLOWNESS). */
  slowness: number;
  /** As durationIn. */
  duration(ms: number): number;
  /** Printed below the row. */
  say(line: string): void;
}
