import { z } from 'zod';
import { wholeNumber } from '#libs/service/config.ts';
import { serviceConfig } from '#libs/service/service-config.ts';
import { macConfig } from '#libs/service/signing.ts';

export const ledgerConfig = z.object({
  ...serviceConfig,
  ...macConfig,
  BATCH_MAX: wholeNumber(1, 5000).prefault('500').describe('Maximum number of commands per transaction'),
});

export type LedgerConfig = z.output<typeof ledgerConfig>;
