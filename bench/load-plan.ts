import type { Latency } from './histogram.ts';

/** The requests of a load. */
export type Target =
  | { kind: 'transfer' | 'deposit'; accounts: string[] }
  /** Transfers between these accounts, and their number per request. */
  | { kind: 'batch'; accounts: string[]; items: number; mode?: 'independent' | 'atomic' }
  /** The accounts of generated data, by number. `hot`: all transfers are to the first so many of them, from the others. */
  | { kind: 'transfer'; generated: number; hot?: number }
  /** Balances by account number. */
  | { kind: 'balance'; numbers: string[] }
  /**
   * POSTs of a body in which `$one` and `$other` are replaced by two accounts, `$key` by a unique text, and `$items` by
   * this many of `item`, separated by commas.
   */
  | { kind: 'post'; path: string; accounts: string[]; body: string; item?: string; items?: number }
  /** GETs of these paths, in turn. */
  | { kind: 'get'; paths: string[] };

/** One load, from a generator. */
export interface LoadPlan {
  /** The connections are distributed among them. */
  ports: number[];
  /** `x-api-key: …` or `authorization: …`. */
  credential: string;
  target: Target;
  connections: number;
  seconds: number;
  /** The time before the measured time, which is not counted. */
  warmUpSeconds: number;
  /**
   * Requests per second, sent regardless of responses (open loop). Without it, each connection waits for its response
   * (closed loop).
   */
  rate?: number;
}

/** The result of a load. */
export interface LoadResult {
  /** 2xx responses per second of the measured time. */
  perSecond: number;
  completed: number;
  /**
   * The latency of 2xx responses: in an open loop since the time at which the request was due, in a closed loop since
   * its sending.
   */
  latency: Latency;
  /** Responses by status, and lost connections. */
  statuses: Record<string, number>;
  /** All results except 2xx: other responses, lost connections, and requests without a response long after the end. */
  wrong: number;
  /** Of these, requests without a response 8 s after the end. */
  unanswered: number;
  /** Open loop: the generator's own delay, p50 in ms, which is part of the latency. */
  sentLateMs: number;
  /** The generator's own CPU use, 0 to 1 core. */
  generatorCores: number;
}

/** A load's result with the CPU use of the side's processes, Postgres, and its broker. */
export interface Reading extends LoadResult {
  cpuMicrosPerRequest: number;
  /** The CPU use by process. */
  cpuMicros: Record<string, number>;
  /** Cores used by processes other than the side and the generator, which make a measurement unreliable. */
  elsewhere: number;
}

/** The number of connections with the highest throughput of a side, and that throughput. */
export interface Best {
  connections: number;
  perSecond: number;
}
