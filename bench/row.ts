import type { GoalId } from './goals.ts';
import type { Latency } from './histogram.ts';
import type { Effort, Trust } from './measure.ts';
import type { World } from './world.ts';

/** The objects that a group of rows uses. */
export interface Bench {
  world: World;
  effort: Effort;
  quick: boolean;
  minutes: number;
  growth: { accounts: number; transactions: number };
  /** The folder of another version, with its packages. */
  against?: string | undefined;
}

/** One minute of a long load. */
export interface Minute {
  minute: number;
  latency: Latency;
  /** The memory of each process at the end of that minute, in MB. */
  memory: Record<string, number>;
  checkpointBuffers: number;
  vacuums: number;
}

/** One measured goal, or the reason why it was not measured. */
export type Line = { goal: GoalId; value: number; note: string } | { goal: GoalId; missing: string };

/** The results of a contender under a load, for the pictures. */
export interface Point {
  contender: string;
  /** Requests sent per second (open loop). */
  perSecond: number;
  latency: Latency;
}

export interface Outcome {
  lines: Line[];
  /** Absolute figures that are shown as a table. */
  figures?: { title: string; columns: string[]; rows: string[][] }[];
  latencies?: Point[];
  minutes?: Minute[];
  /** The CPU use by process for each transfer at saturation. */
  costs?: { contender: string; micros: Record<string, number> }[];
  growth?: { contender: string; accounts: number; perSecond: number }[];
  /** These are set by the run. */
  trust?: Trust;
  /** All measured values, for the JSON. */
  raw?: unknown;
}

/** Rows of the report that are measured together, because they are compared with each other. */
export interface Group {
  name: string;
  /** The group is part of --quick. */
  quick: boolean;
  /** The group runs only if an option requests it. */
  onRequest?: true;
  measure(bench: Bench): Promise<Outcome>;
}
