import { z } from 'zod';
import { zoneConfig } from '#libs/service/bank-config.ts';
import { flag, wholeNumber } from '#libs/service/config.ts';
import { serviceConfig } from '#libs/service/service-config.ts';
import { macConfig } from '#libs/service/signing.ts';

export const ledgerConfig = z.object({
  ...serviceConfig,
  ...macConfig,
  ...zoneConfig,
  BACKDATE_DAYS: wholeNumber(0, 3650)
    .prefault('90')
    .describe('Number of days before the current one that a posting may have as its value date'),
  BOOKS_CHECK_AT: z
    .string()
    .regex(/^([01]\d|2[0-3]):[0-5]\d$|^none$/, 'must be a time of day such as 03:00, or none')
    .prefault('03:00')
    .describe('When the books are checked every day, in BANK_TIME_ZONE; none: only on request'),
  SPREAD_COMMANDS: flag
    .prefault('false')
    .describe(
      'Let all ledgers execute commands, so that the sudden loss of one delays only its share for some seconds, at 2 to 4 times the CPU. Default: as few as their CPU allows, and the others are hot spares',
    ),
});

export type LedgerConfig = z.output<typeof ledgerConfig>;
