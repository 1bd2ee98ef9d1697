/** Ids and times of the examples in the generated documents. All examples refer to the same resources. */

/** Returns the 32 hex digits of an id; `which` makes them different. */
export const exampleBits = (which = 0): string => `${which.toString(16)}195f0c2a1b27c3d8e4f5a6b7c8d9e0f`;

export const exampleIds = {
  client: `cli_${exampleBits()}`,
  account: `acc_${exampleBits()}`,
  otherAccount: `acc_${exampleBits(1)}`,
  transaction: `txn_${exampleBits()}`,
  transfer: `trf_${exampleBits()}`,
  key: `key_${exampleBits()}`,
  dead_letter: `dlt_${exampleBits()}`,
  approval: `apr_${exampleBits(2)}`,
  hold: `hld_${exampleBits()}`,
  batch: `bat_${exampleBits(3)}`,
  webhook: `whk_${exampleBits()}`,
  delivery: `dlv_${'0'.repeat(28)}1a2b`,
  request: '7c9e6679-7425-40de-944b-e07fc1f90ae7',
} as const;

/** When the request was accepted, and when an event says that the change was made. */
export const exampleTime = '2026-01-02T03:04:05.678Z';
export const exampleChangedAt = '2026-01-02T03:04:05.681Z';

export const exampleStamps = { created_at: exampleTime, updated_at: exampleTime };

/** The number of the account. */
export const exampleNumber = 'SAV-1234567897';

/** The caller of requests, and the requester and the channel in events. */
export const exampleActor = `key:${exampleIds.key}`;
export const exampleAsked = { actor: 'jwt:https://issuer.example|alice', request_channel: 'staff' };
/** The account's client and number in events. */
export const exampleOwnership = { client_id: exampleIds.client, account_number: exampleNumber };

/** Returns the fields of a resource that a request also has. */
export function pick<T extends object>(resource: T, ...fields: (keyof T & string)[]): Record<string, unknown> {
  return Object.fromEntries(fields.map((field) => [field, resource[field]]));
}
