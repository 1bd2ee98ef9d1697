import { z } from 'zod';
import { eventsRetentionConfig, list, url } from '#libs/service/config.ts';
import { parseNetwork } from '#libs/service/networks.ts';
import { serviceConfig } from '#libs/service/service-config.ts';
import { secretKeysConfig, webhooksMacConfig } from '#libs/service/signing.ts';

/** The environment variables of webhooks. */
export const webhooksConfig = z.object({
  ...serviceConfig,
  ...webhooksMacConfig,
  ...secretKeysConfig,
  ...eventsRetentionConfig,
  API_URL: url('http', 'https')
    .optional()
    .describe(
      'URL at which consumers of webhooks and of GET /events reach the API, such as https://api.bank.example. dataschema is then the URL of the schema there; if unset, its URN',
    ),
  WEBHOOK_ALLOW_NETWORKS: list
    .refine(
      (networks) => networks.every((network) => parseNetwork(network) !== undefined),
      'must hold addresses or networks such as 10.1.2.0/24',
    )
    .prefault('')
    .describe(
      'Private networks in which receivers of webhooks are allowed, such as 10.1.2.0/24. Loopback is for development only',
    ),
});
