import type { GoalId } from './goals.ts';
import type { Latency } from './histogram.ts';
import type { Effort, Trust } from './measure.ts';
import { batches } from './rows/batches.ts';
import { curves } from './rows/curves.ts';
import { deposits } from './rows/deposits.ts';
import { growth } from './rows/growth.ts';
import { latency } from './rows/latency.ts';
import { ledger } from './rows/ledger.ts';
import { peers } from './rows/peers.ts';
import { reads } from './rows/reads.ts';
import { relay } from './rows/relay.ts';
import { idle, ledgers, memory } from './rows/resources.ts';
import { throughput } from './rows/throughput.ts';
import type { World } from './world.ts';

/** The objects that a group of rows uses. */
export interface Bench {
  world: World;
  effort: Effort;
  quick: boolean;
  minutes: number;
  growth: { accounts: number; transactions: number };
}

/** One measured goal, or the reason why it was not measured. */
export type Line = { goal: GoalId; value: number; note: string } | { goal: GoalId; missing: string };

/** A contender under a load, for the pictures. */
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
  growth?: { contender: string; accounts: number; perSecond: number }[];
  /** Set by the run. */
  trust?: Trust;
  /** All measured values, for the JSON. */
  raw?: unknown;
}

/** Rows of the report that are measured together, because they are compared with each other. */
export interface Group {
  name: string;
  /** Part of --quick. */
  quick: boolean;
  /** Run only if it is requested by an option. */
  onRequest?: true;
  measure(bench: Bench): Promise<Outcome>;
}

export const groups: Group[] = [
  idle,
  throughput,
  latency,
  deposits,
  batches,
  reads,
  relay,
  ledger,
  memory,
  ledgers,
  curves,
  growth,
  ...peers,
];
