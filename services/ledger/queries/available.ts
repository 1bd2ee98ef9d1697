/**
 * SQL, of a row `a` of accounts: what can be taken from it. Of a hold whose time is over nobody has
 * to have recorded it.
 */
export const availableMinor = `balance_minor - held_minor + case when hold_expires_at <= now() then (
    select coalesce(sum(amount_minor - captured_minor), 0)::int8 from holds h where h.account_id = a.account_id and h.status = 'Active' and h.expires_at <= now()
  ) else 0 end`;
