import type { GoalId } from './goals.ts';
import type { Latency } from './histogram.ts';
import type { Effort, Trust } from './measure.ts';
import { batches } from './rows/batches.ts';
import { curves } from './rows/curves.ts';
import { deposits } from './rows/deposits.ts';
import { growth } from './rows/growth.ts';
import { latency } from './rows/latency.ts';
import { ledger } from './rows/ledger.ts';
import { reads } from './rows/reads.ts';
import { relay } from './rows/relay.ts';
import { idle, ledgers, memory } from './rows/resources.ts';
import { throughput } from './rows/throughput.ts';
import type { World } from './world.ts';

/** What a group of rows has at hand. */
export interface Bench {
  world: World;
  effort: Effort;
  quick: boolean;
  minutes: number;
  growth: { accounts: number; transactions: number };
}

/** One measured goal, or why it is not. */
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
  /** Absolute figures worth a table of their own. */
  figures?: { title: string; columns: string[]; rows: string[][] }[];
  latencies?: Point[];
  growth?: { contender: string; accounts: number; perSecond: number }[];
  /** Added by the run. */
  trust?: Trust;
  /** Everything as measured, for the JSON. */
  raw?: unknown;
}

/** Rows of the report that are measured together, because they compare with each other. */
export interface Group {
  name: string;
  /** Part of --quick. */
  quick: boolean;
  /** Only with an option of its own. */
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
];
