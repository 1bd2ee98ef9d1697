import type { SecretKeys } from '#libs/contracts/webhook-secret.ts';
import type { Pool } from '#libs/postgres/pool.ts';
import { transaction } from '#libs/postgres/transaction.ts';

/**
 * Seals every secret with the current key, so that an older key can be removed from the configuration. Runs at
 * each start. Returns the number of changed webhooks. Throws if the key of one is not configured.
 */
export function resealSecrets(pool: Pool, keys: SecretKeys): Promise<number> {
  return transaction(pool, async (client) => {
    const { rows } = await client.query<{ webhook_id: string; secret: string; previous_secret: string | null }>(
      "select webhook_id, secret, previous_secret from webhooks where status <> 'Deleted' order by webhook_id for update",
    );
    const old = rows.filter(
      ({ secret, previous_secret }) => ![secret, previous_secret ?? secret].every(keys.isCurrent),
    );
    for (const { webhook_id, secret, previous_secret } of old) {
      const reseal = (sealed: string) => keys.seal(webhook_id, keys.open(webhook_id, sealed));
      const values = [webhook_id, reseal(secret), previous_secret && reseal(previous_secret)];
      await client.query('update webhooks set secret = $2, previous_secret = $3 where webhook_id = $1', values);
    }
    return old.length;
  });
}
