import type { Group } from './row.ts';
import { batches } from './rows/batches.ts';
import { bytes } from './rows/bytes.ts';
import { cost } from './rows/cost.ts';
import { curves } from './rows/curves.ts';
import { days } from './rows/days.ts';
import { deposits } from './rows/deposits.ts';
import { endurance } from './rows/endurance.ts';
import { growth } from './rows/growth.ts';
import { idle } from './rows/idle.ts';
import { latency } from './rows/latency.ts';
import { ledger } from './rows/ledger.ts';
import { ledgers } from './rows/ledgers.ts';
import { lowLoad } from './rows/low-load.ts';
import { peers } from './rows/peers.ts';
import { reads } from './rows/reads.ts';
import { relay } from './rows/relay.ts';
import { scaling } from './rows/scaling.ts';
import { versions } from './rows/versions.ts';
import { webhooks } from './rows/webhooks.ts';

export const groups: Group[] = [
  idle,
  cost,
  latency,
  lowLoad,
  deposits,
  batches,
  reads,
  relay,
  ledger,
  bytes,
  scaling,
  ledgers,
  webhooks,
  curves,
  endurance,
  growth,
  days,
  versions,
  ...peers,
];
