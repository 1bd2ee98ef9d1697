-- Up Migration

-- The one change of a transaction: its caller's texts, when the erasure of a client replaces them
-- (docs/decisions/0046-an-erasure-replaces-texts.md). Amounts, accounts, statuses and times never change.
create function refuse_change_but_erasure() returns trigger language plpgsql set search_path = ledger, pg_temp as $$
begin
  if to_jsonb(new) - '{description,reference,external_id,metadata,idempotency_key}'::text[]
      = to_jsonb(old) - '{description,reference,external_id,metadata,idempotency_key}'::text[]
    and (new.description is not distinct from old.description or new.description = '(erased)')
    and (new.reference is not distinct from old.reference or new.reference = '(erased)')
    and (new.external_id is not distinct from old.external_id or new.external_id = '(erased)')
    and (new.metadata::text is not distinct from old.metadata::text or new.metadata::text = '{"erased":"(erased)"}')
    and (new.idempotency_key is not distinct from old.idempotency_key or new.idempotency_key is null) then
    return new;
  end if;
  raise exception 'ledger.transactions is append-only: % is refused', tg_op using errcode = 'restrict_violation';
end $$;

drop trigger transactions_append_only on transactions;
create trigger transactions_append_only before delete or truncate on transactions for each statement execute function refuse_change();
create trigger transactions_erased_only before update on transactions for each row execute function refuse_change_but_erasure();
alter table transactions enable always trigger transactions_append_only;
alter table transactions enable always trigger transactions_erased_only;

-- Replaces the texts of these transactions, as far as they are of the account or of its counterparty in the same operation. The
-- ledger's role may change no transaction: this function of the owner does, for an account that is Inactive and without money.
create function erase_texts(erased uuid, ids uuid[]) returns int language plpgsql security definer set search_path = ledger, pg_temp as $$
declare
  changed int;
begin
  if not exists (select from accounts where account_id = erased and client_id is not null and status = 'Inactive' and balance_minor = 0) then
    raise exception 'account % is in use', erased using errcode = 'restrict_violation';
  end if;
  update transactions set
      description = case when description is not null then '(erased)' end,
      reference = case when reference is not null then '(erased)' end,
      external_id = case when external_id is not null then '(erased)' end,
      metadata = case when metadata is not null then '{"erased":"(erased)"}'::json end,
      idempotency_key = null
    where id_key(transaction_id) = any(array(select id_key(id) from unnest(ids) as id)) and (account_id = erased or counterparty_account_id = erased)
      and (description <> '(erased)' or reference <> '(erased)' or external_id <> '(erased)' or metadata::text <> '{"erased":"(erased)"}'
        or idempotency_key is not null);
  get diagnostics changed = row_count;
  return changed;
end $$;
revoke all on function erase_texts(uuid, uuid[]) from public;
