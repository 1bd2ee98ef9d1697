import { z } from 'zod';
import { wholeNumber } from '#libs/service/config.ts';
import { serviceConfig } from '#libs/service/service-config.ts';
import { macConfig } from '#libs/service/signing.ts';

export const ledgerConfig = z.object({
  ...serviceConfig,
  ...macConfig,
  BATCH_MAX: wholeNumber(1, 5000).prefault('500').describe('Maximum number of commands per transaction'),
  BATCH_PACE_MS: wholeNumber(0, 100)
    .prefault('6')
    .describe(
      'Minimum time between the starts of batches with more than one command that are not full, in milliseconds, once the ledger is busy for half of the time; proportionally less below that. A pace makes batches larger, which needs less CPU',
    ),
});

export type LedgerConfig = z.output<typeof ledgerConfig>;
