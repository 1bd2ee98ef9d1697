import { z } from 'zod';
import { eventsRetentionConfig, wholeNumber } from '#libs/service/config.ts';
import { serviceConfig } from '#libs/service/service-config.ts';
import { keySigningConfig, macConfig, webhooksMac } from '#libs/service/signing.ts';

/** The environment variables of accounts. */
export const accountsConfig = z.object({
  ...serviceConfig,
  ...macConfig,
  ...webhooksMac,
  ...keySigningConfig,
  ...eventsRetentionConfig,
  RETENTION_YEARS: wholeNumber(0, 100)
    .prefault('10')
    .describe(
      "Years since a client's accounts were last opened, posted to, or changed before the client can be erased",
    ),
});

export type AccountsConfig = z.output<typeof accountsConfig>;
