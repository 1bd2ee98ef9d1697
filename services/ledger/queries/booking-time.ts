/**
 * Common table expressions (for `with recursive`) that give, as `placed (account_id, time, sequence)`, for each row of
 * `wanted (account_id, time)` the account's first sequence that was booked at that time or later; one beyond its last where
 * there is none. Sequences have no gap, and an account's booking times do not fall, since they are
 * read under its lock: so halving finds the place in some twenty look-ups by key, and no posting
 * pays for an index by time.
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
