/**
 * Common table expressions (for `with recursive`) that return, as `placed (account_id, time, sequence)`, for
 * each row of `wanted (account_id, time)` the account's first sequence posted at or after that time, or the one
 * after its last if there is none. Sequences have no gaps, and an account's posting times never decrease,
 * because they are read while its lock is held. A binary search therefore needs about twenty primary-key
 * lookups, and no posting maintains an index by time.
 */
export const placed = `halved (account_id, time, low, high) as (
    select w.account_id, w.time, 1::int8, a.last_sequence + 1 from wanted w join accounts a using (account_id)
    union all
    select h.account_id, h.time, case when e.created_at < h.time then h.middle + 1 else h.low end, case when e.created_at < h.time then h.high else h.middle end
    from (select account_id, time, low, high, (low + high) / 2 as middle from halved where low < high) h
      cross join lateral (select created_at from entries where account_id = h.account_id and sequence = h.middle limit 1) e
  ), placed as (
    select account_id, time, low as sequence from halved where low = high
  )`;
