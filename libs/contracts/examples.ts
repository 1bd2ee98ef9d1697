/** Ids and times of the examples in the generated documents. All examples refer to the same resources. */

/** Returns the 32 hex digits of an id; `which` makes them different. */
export const bits = (which = 0): string => `${which.toString(16)}195f0c2a1b27c3d8e4f5a6b7c8d9e0f`;

export const ids = {
  client: `cli_${bits()}`,
  account: `acc_${bits()}`,
  otherAccount: `acc_${bits(1)}`,
  transaction: `txn_${bits()}`,
  transfer: `trf_${bits()}`,
  key: `key_${bits()}`,
  dead_letter: `dlt_${bits()}`,
  approval: `apr_${bits(2)}`,
  hold: `hld_${bits()}`,
  batch: `bat_${bits(3)}`,
  webhook: `whk_${bits()}`,
  delivery: `dlv_${'0'.repeat(28)}1a2b`,
  till: `til_${bits()}`,
  request: '7c9e6679-7425-40de-944b-e07fc1f90ae7',
} as const;

/** When it happened. */
export const time = '2026-01-02T03:04:05.678Z';

export const accountNumber = 'SAV-1234567897';

/** The caller of requests. */
export const actor = `key:${ids.key}`;
