-- Up Migration

-- A balance changes with an entry that says so, and never back: checked at the end of the statement, as the entries are. It holds for
-- the service's role. Who owns the table could switch it off; verify-books finds what an owner has changed.
create function refuse_balance_without_entry() returns trigger language plpgsql set search_path = ledger, pg_temp as $$
declare
  wrong uuid;
begin
  select n.account_id into wrong
    from new_accounts n join old_accounts o using (account_id)
    where (n.balance_minor <> o.balance_minor or n.last_sequence <> o.last_sequence)
      and (n.last_sequence < o.last_sequence or not exists (
        select from entries e where e.account_id = n.account_id and e.sequence = n.last_sequence and e.balance_after_minor = n.balance_minor))
    limit 1;
  if found then
    raise exception 'the balance of account % has no entry', wrong using errcode = 'check_violation', constraint = 'accounts_balance';
  end if;
  return null;
end $$;

create trigger accounts_balance after update on accounts referencing old table as old_accounts new table as new_accounts
  for each statement when (not has_table_privilege('ledger.accounts', 'trigger')) execute function refuse_balance_without_entry();
