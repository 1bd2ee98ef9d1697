-- Up Migration

-- The reversal of a transfer is a transfer of its own: the view names it. Changed in what the view is now, whichever migration has
-- given it columns last.
do $$
declare
  now_shown text := pg_get_viewdef('v_transactions'::regclass);
  transfers text := regexp_replace(now_shown, '\s+AND\s+\(?(t\.)?reverses_transaction_id IS NULL\)?', '');
begin
  if transfers = now_shown then
    raise exception 'v_transactions has no condition on reverses_transaction_id';
  end if;
  execute 'create or replace view v_transactions as ' || transfers;
end $$;
