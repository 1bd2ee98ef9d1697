-- Up Migration

-- Holds: money of an account that is set aside for later. The account's row, which a posting locks and writes anyway, carries the
-- sum of what is held: a posting looks at no hold, and where nothing is held nothing is read or written for holds.
alter table accounts
  add column held_minor      bigint not null default 0,
  add column hold_expires_at timestamptz(3),           -- none of its Active holds ends before; null where there is none
  add column hold_version    bigint not null default 0,
  add constraint customer_balance_covers_holds check (
    (held_minor = 0 and hold_expires_at is null)
    or (held_minor > 0 and hold_expires_at is not null and balance_minor >= held_minor and account_type in ('Savings', 'Checking', 'Current')));

create table holds (
  hold_id        uuid primary key,
  account_id     uuid not null, -- a foreign key would be looked at for each account that a posting updates
  amount_minor   bigint not null check (amount_minor > 0),
  captured_minor bigint not null check (captured_minor between 0 and amount_minor),
  currency       text not null,
  status         text not null check (status in ('Active', 'Captured', 'Released', 'Expired')),
  description    text,
  reference      text,
  actor          text not null,
  request_id     text not null,
  external_id    text,
  metadata       json, -- as in transactions
  expires_at     timestamptz(3) not null,
  created_at     timestamptz(3) not null,
  updated_at     timestamptz(3) not null,
  constraint active_holds_hold_something check (status <> 'Active' or captured_minor < amount_minor)
);

create index holds_by_account on holds (account_id, created_at, hold_id);
create index holds_active on holds (account_id) where status = 'Active';
create index holds_to_expire on holds (expires_at) where status = 'Active';

alter table transactions add column hold_id uuid;

-- The rows that a batch writes. transaction_row is of this release: processes of the one before write written_transaction.
alter type transaction_row add attribute hold_id uuid;
create type held_account as (account_id uuid, balance_minor bigint, last_sequence bigint, held_minor bigint, hold_expires_at timestamptz, hold_version bigint);
create type written_hold as (
  hold_id uuid, account_id uuid, amount_minor bigint, captured_minor bigint, currency text, status text, description text, reference text, actor text, request_id text,
  external_id text, metadata json, expires_at timestamptz, created_at timestamptz, updated_at timestamptz
);

create or replace view v_accounts as
  select 'acc_' || replace(account_id::text, '-', '') as account_id, account_number, account_type, class, currency, status,
    'cli_' || replace(client_id::text, '-', '') as client_id, balance_minor, last_sequence, created_at, held_minor
  from accounts;

create or replace view v_transactions as
  select 'txn_' || replace(t.transaction_id::text, '-', '') as transaction_id, 'opr_' || replace(t.operation_id::text, '-', '') as operation_id,
    'acc_' || replace(t.account_id::text, '-', '') as account_id, 'acc_' || replace(t.counterparty_account_id::text, '-', '') as counterparty_account_id,
    case when t.transaction_type in ('Transfer', 'Loan Payment') and t.reverses_transaction_id is null
      then 'trf_' || replace(t.operation_id::text, '-', '') end as transfer_id,
    t.transaction_type, t.direction, t.amount_minor, t.currency, t.description, t.reference, t.status, t.failure_code,
    'txn_' || replace(t.reverses_transaction_id::text, '-', '') as reverses_transaction_id,
    t.idempotency_key, t.actor, t.request_id, t.created_at, t.external_id, t.metadata, 'hld_' || replace(t.hold_id::text, '-', '') as hold_id
  from transactions t
  where t.failure_code is null or t.failure_code not in ('account_not_found', 'invalid_amount_precision', 'amount_too_large');

create view v_holds as
  select 'hld_' || replace(hold_id::text, '-', '') as hold_id, 'acc_' || replace(account_id::text, '-', '') as account_id, amount_minor, captured_minor, currency, status,
    description, reference, actor, request_id, expires_at, created_at, updated_at, external_id, metadata
  from holds;

-- Replaces the texts of an account's holds, when its client is erased (docs/decisions/0046-an-erasure-replaces-texts.md).
create function erase_hold_texts(erased uuid) returns int language plpgsql security definer set search_path = ledger, pg_temp as $$
declare
  changed int;
begin
  if not exists (select from accounts where account_id = erased and client_id is not null and status = 'Inactive' and balance_minor = 0) then
    raise exception 'account % is in use', erased using errcode = 'restrict_violation';
  end if;
  update holds set
      description = case when description is not null then '(erased)' end,
      reference = case when reference is not null then '(erased)' end,
      external_id = case when external_id is not null then '(erased)' end,
      metadata = case when metadata is not null then '{"erased":"(erased)"}'::json end
    where account_id = erased
      and (description <> '(erased)' or reference <> '(erased)' or external_id <> '(erased)' or metadata::text <> '{"erased":"(erased)"}');
  get diagnostics changed = row_count;
  return changed;
end $$;
revoke all on function erase_hold_texts(uuid) from public;
