import { z } from 'zod';
import { zoneConfig } from '#libs/service/bank-config.ts';
import { wholeNumber } from '#libs/service/config.ts';
import { serviceConfig } from '#libs/service/service-config.ts';
import { macConfig } from '#libs/service/signing.ts';

export const ledgerConfig = z.object({
  ...serviceConfig,
  ...macConfig,
  ...zoneConfig,
  BACKDATE_DAYS: wholeNumber(0, 3650)
    .prefault('90')
    .describe('Number of days before the current one that a posting may have as its value date'),
  BATCH_MAX: wholeNumber(1, 5000).prefault('500').describe('Maximum number of commands per transaction'),
});

export type LedgerConfig = z.output<typeof ledgerConfig>;
