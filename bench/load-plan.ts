import type { Latency } from './histogram.ts';

/** What a load asks for. */
export type Target =
  | { kind: 'transfer' | 'deposit'; accounts: string[] }
  /** Transfers between these accounts, so many to a request. */
  | { kind: 'batch'; accounts: string[]; items: number; mode?: 'independent' | 'atomic' }
  /** The accounts of generated data, by their number. */
  | { kind: 'transfer'; generated: number }
  /** Balances by account number. */
  | { kind: 'balance'; numbers: string[] }
  /** GETs of these paths, in turn. */
  | { kind: 'get'; paths: string[] };

/** One load, from a generator. */
export interface LoadPlan {
  port: number;
  /** `x-api-key: …` or `authorization: …`. */
  credential: string;
  target: Target;
  connections: number;
  seconds: number;
  /** Before it, not counted. */
  warmUpSeconds: number;
  /**
   * Requests per second, sent whatever comes back (open loop); without it each connection waits for
   * its answer (closed loop).
   */
  rate?: number;
}

/** What came of a load. */
export interface LoadResult {
  /** Answers 2xx per second of the measured time. */
  perSecond: number;
  completed: number;
  /**
   * Open loop: counted from the moment at which a request was to be sent; closed loop: from its
   * sending. Of answers 2xx.
   */
  latency: Latency;
  /** Answers by status, and connections lost. */
  statuses: Record<string, number>;
  /** Everything else than 2xx, lost connections, and what was still unanswered long after the end. */
  wrong: number;
  /** Open loop: how late the generator itself sent, p50 in ms; it is part of the latency. */
  sentLateMs: number;
  /** The generator's own use of a core, 0 to 1. */
  generatorCores: number;
}
