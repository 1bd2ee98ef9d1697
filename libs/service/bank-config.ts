import { z } from 'zod';
import { isCurrency } from '#libs/contracts/money.ts';
import { works } from './config.ts';
import { currencyIn, setBankFormats } from './formats.ts';

/** The zone of the bank's days. The ledger needs it, too: the default of value dates, and which days have ended. */
export const zoneConfig = {
  BANK_TIME_ZONE: z
    .string()
    .refine(
      works((timeZone) => new Intl.DateTimeFormat('en', { timeZone })),
      'must be the name of a time zone, such as Africa/Nairobi',
    )
    .default('UTC')
    .describe(
      "IANA time zone of the bank's days (value dates, days that are closed), and of times in the dashboard and in printed statements; the same for gateways, ledgers, and dashboards, and fixed once a day is closed. Times in the API are UTC",
    ),
};

/** What pages and statements say about the bank. The gateway and the dashboard make them, and need the same values. */
export const bankConfig = {
  BANK_NAME: z
    .string()
    .max(600)
    .transform((text) => text.split(';').flatMap((line) => (line.trim() === '' ? [] : [line.trim()])))
    .refine(([name = '']) => name !== '' && name.length <= 100, 'must begin with a name of at most 100 characters')
    .prefault('Core Banking')
    .meta({ title: 'lines separated by semicolons' })
    .describe(
      'Name of the bank in the dashboard, on receipts and on statements, and below it the lines of its address for statements: Example Bank; 1 Kenyatta Avenue; 00100 Nairobi',
    ),
  BANK_LOCALE: z
    .string()
    .refine(
      works((locale) => new Intl.Locale(locale)),
      'must be a language with its region, such as en-KE',
    )
    .transform((locale) => new Intl.Locale(locale).toString())
    .refine((locale) => isCurrency(currencyIn(locale) ?? 'USD'), 'must have an ISO 4217 code after -u-cu-, such as kes')
    .optional()
    .describe(
      'Locale for times and amounts in the dashboard and on statements, such as en-KE or de-DE; if unset, 2026-01-31 23:59:59 and 1 500.00. With -u-cu-kes at its end, KES is preset where a till or an account is opened',
    ),
  ...zoneConfig,
};

/** Sets the formats of this process. */
export function setFormats(
  config: z.output<z.ZodObject<typeof bankConfig>> & {
    BANK_MODE?: 'production' | 'trial';
  },
): void {
  const [name = '', ...address] = config.BANK_NAME;
  setBankFormats({
    name,
    address,
    timeZone: config.BANK_TIME_ZONE,
    locale: config.BANK_LOCALE,
    trial: config.BANK_MODE === 'trial',
  });
}
