/**
 * SQL for the available balance of a row `a` of accounts. It ignores expired holds even if they have not been
 * recorded as Expired.
 */
export const availableMinor = `balance_minor - held_minor + case when hold_expires_at <= now() then (
    select coalesce(sum(amount_minor - captured_minor), 0)::int8 from holds h where h.account_id = a.account_id and h.status = 'Active' and h.expires_at <= now()
  ) else 0 end`;
