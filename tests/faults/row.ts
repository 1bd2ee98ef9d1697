import type { Pool } from '#libs/postgres/pool.ts';
import type { Cluster } from './cluster.ts';
import type { Entrance } from './entrance.ts';
import type { EventLog } from './event-log.ts';
import type { Evidence } from './evidence.ts';
import type { Journal } from './journal.ts';
import type { Accounts, Load } from './load.ts';
import type { Random } from './random.ts';

/**
 * To add a row, define one with the fields below in a file of rows/, and add it to rows/all.ts. The load of load.ts
 * runs during `inject`, which resolves when the fault has ended; campaign.ts does everything else (load, recovery
 * probe, drain, I1-I12). `npm run test:faults -- --quick --only <name>` runs only this row.
 */
export interface Row {
  /** The name in kebab-case, for --only. */
  name: string;
  /** The fault, as described in the table of docs/; `lasts` formats a duration of this run. */
  title: string | ((lasts: (ms: number) => string) => string);
  /**
   * The parts that it affects: `simulate` runs rows concurrently only if they have no part in
   * common. `all` excludes every other row.
   */
  touches: readonly (string | 'all')[];
  /** The time within which everything must be normal again after the fault has ended. */
  recoveryMs: number;
  /**
   * The failures that callers may get besides 2xx and justified 4xx: 202, 503, and 504 by default. `cut`: connections
   * of a killed gateway may also be closed. `nothing`: no failed request, except a 202 that becomes Completed.
   */
  callers?: 'cut' | 'nothing';
  /** A gateway that is frozen for a while and does not respond during that time. */
  frozen?: string;
  /** The time for which the load runs before the fault; default 1 s. */
  warmUpMs?: number;
  /** Runs the row without load, for rows that the load would disturb. */
  withoutLoad?: boolean;
  /** Injects the fault and removes it. May return the time (performance.now) at which the fault ended. */
  inject(bench: Bench): Promise<number | void>;
  /**
   * The number of responses by status that are not in the journal: refusals that were counted but
   * not followed.
   */
  counted?(): Record<string, number>;
  /** Additional invariants of this row, checked after all activity has ended. */
  check?(evidence: Evidence, bench: Bench): Promise<string[]>;
}

/** Thrown by `inject` with the reason if the fault is not possible on this machine. */
export class Skipped extends Error {}

/** Returns the duration of a fault: the given one, or at most 5 s in the quick form. */
export function durationIn(quick: boolean): (ms: number) => number {
  return (ms) => (quick ? Math.min(ms, 5000) : ms);
}

/** Returns the title of a row with the durations of this run. */
export function rowTitle({ title }: Row, quick: boolean): string {
  return typeof title === 'string' ? title : title((ms) => `${durationIn(quick)(ms) / 1000} s`);
}

/** The parts of the cluster that a row can use. */
export interface Bench {
  cluster: Cluster;
  load: Load;
  entrance: Entrance;
  journal: Journal;
  accounts: Accounts;
  events: EventLog;
  /** The superuser's, without proxies; search_path ledger. */
  pool: Pool;
  random: Random;
  quick: boolean;
  /** The factor for time limits (FAULTS_SLOWNESS). */
  slowness: number;
  /** The same as durationIn. */
  duration(ms: number): number;
  /** Prints a line below the row. */
  say(line: string): void;
}
