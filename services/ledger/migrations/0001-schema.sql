-- The ledger's schema as of version 1.0. Ids are stored as their 128 bits, without the prefix. The outbox is in
-- libs/postgres/outbox/outbox.sql, the table of verifications in libs/service/verifications.sql, and the rights of the service's role
-- are in schema.ts.

-- The part of an id that must be unique: the last byte is a routing hint (docs/decisions/0003-ids-contain-their-partition.md).
create function id_key(id uuid) returns bytea language sql immutable strict parallel safe
  return substring(uuid_send(id) from 1 for 15);

-- Ledger accounts: those of customers, and the slots of Teller and Vault. A posting locks the rows of its accounts.
create table accounts (
  account_id      uuid primary key,
  account_number  text not null unique,
  client_id       uuid,
  account_type    text not null check (account_type in ('Savings', 'Checking', 'Current', 'Loan', 'Teller', 'Vault')),
  class           text generated always as (case when account_type in ('Loan', 'Teller', 'Vault') then 'asset' else 'liability' end) stored,
  currency        text not null,
  status          text not null check (status in ('Active', 'Inactive', 'Frozen')),
  status_version  int not null default 1,
  balance_minor   bigint not null default 0,
  last_sequence   bigint not null default 0,
  debits_minor    numeric not null default 0, -- the sum of the account's DR entries, so that the trial balance reads accounts only
  last_posted_at  timestamptz(3), -- the posting time of its last entry, before which no later one may be, whatever the clock does
  -- The sum of the account's Active holds, so that a posting need not read them.
  held_minor      bigint not null default 0,
  active_holds    bigint not null default 0, -- their number
  hold_expires_at timestamptz(3), -- the earliest expiry of an Active hold, or a time before it; null without holds
  hold_version    bigint not null default 0,
  -- Limits; null: none. What has left the account on a day is counted only while it has a limit per day.
  minimum_balance_minor bigint check (minimum_balance_minor >= 0),
  per_transaction_minor bigint check (per_transaction_minor >= 0),
  per_day_out_minor     bigint check (per_day_out_minor >= 0),
  out_day         date,
  out_minor       bigint not null default 0 check (out_minor >= 0),
  created_at      timestamptz not null,
  constraint system_accounts_have_no_client check ((client_id is null) = (account_type in ('Teller', 'Vault'))),
  constraint customer_balance_not_negative check (balance_minor >= 0 or account_type in ('Teller', 'Vault')),
  constraint limits_per_day_are_counted check ((per_day_out_minor is null) = (out_day is null)),
  constraint customer_balance_limit check (balance_minor <= 999999999999999 or account_type in ('Teller', 'Vault')),
  constraint customer_balance_covers_holds check (
    (held_minor = 0 and active_holds = 0 and hold_expires_at is null)
    or (held_minor > 0 and active_holds between 1 and 1000 and hold_expires_at is not null and balance_minor >= held_minor and account_type in ('Savings', 'Checking', 'Current')))
) with (fillfactor = 60); -- space for updates in place, because no index contains a column that a posting changes

create index accounts_client on accounts (client_id) where client_id is not null;
create index accounts_system on accounts (account_type, currency) where client_id is null;

-- A transaction is a business operation on one account. The row whose id is the command's id is the idempotency record.
create table transactions (
  transaction_id          uuid not null,
  operation_id            uuid not null,
  account_id              uuid not null, -- no foreign key: the refusal of an unknown account is recorded, too
  counterparty_account_id uuid,
  transaction_type        text not null check (transaction_type in ('Deposit', 'Withdrawal', 'Transfer', 'Loan Payment')),
  direction               text not null check (direction in ('debit', 'credit')),
  amount_minor            bigint check (amount_minor > 0),
  amount_text             text, -- the amount as it was sent, if it cannot be stored in minor units
  currency                text,
  description             text,
  reference               text,
  status                  text not null check (status in ('Completed', 'Failed')),
  failure_code            text,
  failure_message         text,
  failure_account_id      uuid, -- the counterparty account, if it is the reason for the failure
  reverses_transaction_id uuid,
  idempotency_key         text,
  fingerprint             uuid,
  actor                   text not null,
  request_id              text not null,
  created_at              timestamptz(3) not null,
  external_id             text,
  metadata                json, -- not jsonb: a repeat returns the keys in the order in which they were sent
  hold_id                 uuid,
  batch_id                uuid,
  metadata_client_id      uuid, -- the client whose credentials gave the metadata; null: the bank's
  effective_date          date, -- the value date, if it is not the bank's day of created_at
  constraint completed_or_why_not check ((status = 'Failed') = (failure_code is not null)),
  constraint completed_has_amount check (status = 'Failed' or (amount_minor is not null and currency is not null))
);

create unique index transactions_id_key on transactions (id_key(transaction_id));
create index transactions_by_account on transactions (account_id, created_at, transaction_id);
create index transactions_by_time on transactions (created_at, transaction_id);
-- For what a person has posted. Those of API keys and items of batches, which are most, are not in it.
create index transactions_by_person on transactions (actor, created_at, transaction_id) where actor like 'jwt:%' and batch_id is null;
create index transactions_by_reference on transactions (reference, created_at, transaction_id) where reference is not null;
create index transactions_by_external_id on transactions (external_id, created_at, transaction_id) where external_id is not null;
-- Keys are compared for equality only, and a key has few rows: a hash index is a third of the size of a B-tree.
create index transactions_by_idempotency_key on transactions using hash (idempotency_key) where idempotency_key is not null;
-- For the counts and totals of a list of batches. It is read alone, and has no rows for postings that are in no batch.
create index transactions_by_batch on transactions (batch_id) include (status, currency, amount_minor) where batch_id is not null and transaction_id = operation_id;
create index transactions_failed on transactions (created_at, transaction_id) where status = 'Failed';
create unique index transactions_reversed_once on transactions (id_key(reverses_transaction_id)) where reverses_transaction_id is not null and status = 'Completed';

-- Double entry. balance_after and sequence are those of the account; created_at is the posting time.
create table entries (
  account_id          uuid not null, -- no foreign key, which would be looked up per row: post_entries checks it per statement
  sequence            bigint not null check (sequence > 0),
  operation_id        uuid not null,
  transaction_id      uuid not null,
  direction           text not null check (direction in ('debit', 'credit')),
  side                text not null check (side in ('DR', 'CR')),
  amount_minor        bigint not null check (amount_minor > 0),
  currency            text not null,
  balance_after_minor bigint not null,
  created_at          timestamptz(3) not null,
  primary key (account_id, sequence)
);

-- The value dates of entries that do not have that of their posting time. They are not a column of entries, so that other postings
-- write nothing for them.
create table dated_entries (
  account_id     uuid not null,
  sequence       bigint not null,
  effective_date date not null,
  primary key (account_id, sequence)
);

create index dated_entries_by_day on dated_entries (effective_date);

-- Closed days, in order and without gaps. A posting is decided with the last of them in view, under a lock that a closing takes alone.
create table closed_days (
  date      date primary key,
  closed_at timestamptz(3) not null,
  closed_by text not null,
  time_zone text not null -- BANK_TIME_ZONE, which the first closing fixes: the days of another zone are other times
);

-- What a closed day had, which is calculated after it was closed. The texts of lines are what accounts_sha256 is the hash of.
create table day_closings (
  date            date primary key references closed_days,
  begins_at       timestamptz not null,
  ends_at         timestamptz not null check (ends_at >= begins_at), -- equal: a day that the zone skipped
  totals          json not null,
  accounts_sha256 text not null,
  previous_hash   text not null,
  hash            text not null
);

create index day_closings_by_begin on day_closings (begins_at, date);

create table day_closing_lines (
  date       date not null, -- no foreign key: the lines of a day are written before its closing
  account_id uuid not null,
  line       text not null,
  primary key (date, account_id)
);

-- Money of an account that is reserved for a later capture.
create table holds (
  hold_id        uuid primary key,
  account_id     uuid not null, -- no foreign key, which would be looked up for each account that a posting updates
  amount_minor   bigint not null check (amount_minor > 0),
  captured_minor bigint not null check (captured_minor between 0 and amount_minor),
  currency       text not null,
  status         text not null check (status in ('Active', 'Captured', 'Released', 'Expired')),
  description    text,
  reference      text,
  actor          text not null,
  request_id     text not null,
  external_id    text,
  metadata       json,
  expires_at     timestamptz(3) not null,
  created_at     timestamptz(3) not null,
  updated_at     timestamptz(3) not null,
  constraint active_holds_hold_something check (status <> 'Active' or captured_minor < amount_minor)
);

create index holds_by_account on holds (account_id, created_at, hold_id);
create index holds_active on holds (account_id, expires_at) where status = 'Active';
create index holds_to_expire on holds (expires_at) where status = 'Active';

-- Commands with their replies as sent: those that record no transaction (an opening, a change of status, a hold), and reversals and
-- captures, whose replies show more than their transactions.
create table commands (
  command_id  uuid primary key,
  name        text not null,
  fingerprint uuid,
  outcome     json not null,
  created_at  timestamptz not null default now()
);

-- What each person has posted without approval on their latest day, by currency. FOUR_EYES_LIMITS are compared with it.
create table posted_without_approval (
  actor        text collate "C" not null,
  currency     text not null,
  day          date not null,
  amount_minor bigint not null check (amount_minor >= 0),
  primary key (actor, currency)
);

-- What a person has in cash between two counts. The figures of a closing are stored as they were.
create table tills (
  till_id   uuid primary key,
  actor     text collate "C" not null,
  opened_at timestamptz(3) not null,
  opening   json not null,
  closed_at timestamptz(3) check (closed_at >= opened_at),
  balances  json not null,
  reason    text,
  closed_by text
);

create unique index tills_open on tills (actor) where closed_at is null;
create index tills_by_time on tills (opened_at, till_id);
create index tills_open_by_time on tills (opened_at, till_id) where closed_at is null;
create index tills_by_person on tills (actor, opened_at, till_id);

-- The postings in cash that a till has taken: those of its person while it was open.
create table till_postings (
  till_id        uuid not null references tills,
  transaction_id uuid not null,
  currency       text not null,
  direction      text not null check (direction in ('in', 'out')),
  amount_minor   bigint not null check (amount_minor > 0),
  primary key (till_id, transaction_id)
);

create unique index till_postings_once on till_postings (transaction_id);

-- Callers' batches. Their outcomes are commands, and their items are transactions, whose ids are derived from the batch's id.
create table batches (
  command_id      uuid primary key references commands,
  batch_id        uuid not null,
  mode            text not null check (mode in ('independent', 'atomic')),
  item_count      int not null check (item_count between 1 and 1000),
  actor           text not null,
  bound_client_id uuid,
  created_at      timestamptz(3) not null,
  external_id     text,
  metadata        json
);

create index batches_by_time on batches (created_at, batch_id);
create index batches_by_person on batches (actor, created_at) where actor like 'jwt:%';
create index batches_by_client on batches (bound_client_id, created_at, batch_id) where bound_client_id is not null;
create index batches_by_external_id on batches (external_id, created_at, batch_id) where external_id is not null;

-- Commands that became dead letters. They are undecided, and their callers may have got a 202, or a 504 that names the id, so
-- their ids are not unknown. The row remains after the command has been decided; its outcome then takes precedence.
create table dead_lettered_commands (
  command_id uuid primary key,
  decided_as uuid not null, -- the row of commands that contains its reply; of an item of an atomic batch, that of the batch
  created_at timestamptz not null default clock_timestamp()
);

-- Audit records that have not been sent to accounts yet (audit/audit-sender.ts). They are not in the outbox, because events of
-- money would then have to wait for them.
create table audit_outbox (
  audit_id text primary key,
  record   text not null
);

-- The rows of a batch, one parameter per table. Their attributes are those of services/ledger/rows.ts, in the same order.
create type transaction_row as (
  transaction_id uuid, operation_id uuid, account_id uuid, counterparty_account_id uuid, transaction_type text, direction text, amount_minor bigint, amount_text text,
  currency text, description text, reference text, status text, failure_code text, failure_message text, failure_account_id uuid, reverses_transaction_id uuid,
  idempotency_key text, fingerprint uuid, actor text, request_id text, created_at timestamptz, external_id text, metadata json, hold_id uuid, batch_id uuid, metadata_client_id uuid, effective_date date
);
create type written_entry as (
  account_id uuid, sequence bigint, operation_id uuid, transaction_id uuid, direction text, side text, amount_minor bigint, currency text, balance_after_minor bigint, created_at timestamptz
);
create type held_account as (account_id uuid, held_minor bigint, active_holds bigint, hold_expires_at timestamptz, hold_version bigint);
create type written_hold as (
  hold_id uuid, account_id uuid, amount_minor bigint, captured_minor bigint, currency text, status text, description text, reference text, actor text, request_id text,
  external_id text, metadata json, expires_at timestamptz, created_at timestamptz, updated_at timestamptz
);

-- Every function sets its search_path, so that a temporary table of a caller cannot replace a table that the function names.

create function refuse_change() returns trigger language plpgsql set search_path = ledger, pg_temp as $$
begin
  raise exception 'ledger.% is append-only: % is refused', tg_table_name, tg_op using errcode = 'restrict_violation';
end $$;

create trigger entries_append_only before update or delete or truncate on entries for each statement execute function refuse_change();
create trigger transactions_append_only before update or delete or truncate on transactions for each statement execute function refuse_change();
create trigger dated_entries_append_only before update or delete or truncate on dated_entries for each statement execute function refuse_change();
alter table entries enable always trigger entries_append_only;
alter table transactions enable always trigger transactions_append_only;
alter table dated_entries enable always trigger dated_entries_append_only;

create trigger till_postings_append_only before update or delete or truncate on till_postings for each statement execute function refuse_change();
create trigger tills_stay before delete or truncate on tills for each statement execute function refuse_change();
alter table till_postings enable always trigger till_postings_append_only;
alter table tills enable always trigger tills_stay;

create function refuse_closed_till() returns trigger language plpgsql set search_path = ledger, pg_temp as $$
begin
  raise exception 'ledger.tills: % is closed', old.till_id using errcode = 'restrict_violation';
end $$;

create trigger tills_closed_once before update on tills for each row when (old.closed_at is not null) execute function refuse_closed_till();
alter table tills enable always trigger tills_closed_once;

-- A hold that is no longer Active does not change, and nothing captured is given back.
create function refuse_ended_hold() returns trigger language plpgsql set search_path = ledger, pg_temp as $$
begin
  raise exception 'ledger.holds: % is final', new.hold_id using errcode = 'restrict_violation';
end $$;

create trigger reviving after update on holds for each row
  when (old.status <> 'Active' and (new.status, new.captured_minor) is distinct from (old.status, old.captured_minor) or new.captured_minor < old.captured_minor)
  execute function refuse_ended_hold();

do $$
declare
  closings text;
begin
  foreach closings in array array['closed_days', 'day_closings', 'day_closing_lines'] loop
    execute format('create trigger %1$s_append_only before update or delete or truncate on %1$s for each statement execute function refuse_change()', closings);
    execute format('alter table %1$s enable always trigger %1$s_append_only', closings);
  end loop;
end $$;

-- Days are closed in order, and nothing is dated back to them.
create function refuse_closed_day() returns trigger language plpgsql set search_path = ledger, pg_temp as $$
declare
  closed date := (select max(date) from closed_days);
begin
  if tg_table_name = 'closed_days' then
    if closed is not null and new.date <> closed + 1 then
      raise exception 'day % does not follow the last closed day %', new.date, closed using errcode = 'restrict_violation';
    end if;
  elsif new.effective_date <= closed then
    raise exception 'day % is closed', new.effective_date using errcode = 'restrict_violation';
  end if;
  return new;
end $$;

create trigger closed_days_in_order before insert on closed_days for each row execute function refuse_closed_day();
create trigger dated_entries_of_open_days before insert on dated_entries for each row execute function refuse_closed_day();
alter table closed_days enable always trigger closed_days_in_order;
alter table dated_entries enable always trigger dated_entries_of_open_days;

-- Posts the entries of a statement as a whole, at its end. Operations must balance per currency (all entries of an operation are
-- written by one statement), sides must match the class of the account, and the entries must continue the account's sequence, not go
-- back in time, and add up to its new balance. Nothing else changes a balance: the service's role may not update these columns, and
-- this function runs as the owner.
create function post_entries() returns trigger language plpgsql security definer set search_path = ledger, pg_temp as $$
declare
  wrong uuid;
begin
  select operation_id into wrong
    from new_entries group by operation_id, currency
    having sum(case side when 'DR' then amount_minor else -amount_minor end) <> 0 limit 1;
  if found then
    raise exception 'operation % does not balance', wrong using errcode = 'check_violation', constraint = 'entries_balance';
  end if;
  with changes as (
    select account_id, min(sequence) - 1 as after_sequence, count(*) as entries, max(array[sequence, balance_after_minor]) as newest,
      sum(case direction when 'credit' then amount_minor else -amount_minor end) as change,
      coalesce(sum(amount_minor) filter (where side = 'DR'), 0) as debits,
      min(currency) as currency, max(currency) as last_currency,
      min(created_at) as first_at, max(created_at) as last_at,
      bool_and((side = 'CR') = (direction = 'credit')) as is_liability, bool_and((side = 'CR') <> (direction = 'credit')) as is_asset
    from new_entries group by account_id
  ), posted as (
    update accounts a set last_sequence = c.newest[1], balance_minor = c.newest[2], debits_minor = a.debits_minor + c.debits, last_posted_at = c.last_at
    from changes c
    where a.account_id = c.account_id
      and c.after_sequence = a.last_sequence and c.newest[1] = a.last_sequence + c.entries and c.newest[2] = a.balance_minor + c.change
      and c.currency = a.currency and c.last_currency = a.currency
      and case a.class when 'liability' then c.is_liability else c.is_asset end
      and (a.last_posted_at is null or c.first_at >= a.last_posted_at)
      -- The entries of a batch nearly always have one time, so that their order need not be looked at.
      and (c.first_at = c.last_at or not exists (
        select from (select created_at, lag(created_at) over (order by sequence) as before from new_entries e where e.account_id = c.account_id) o
        where o.created_at < o.before))
    returning a.account_id
  )
  select account_id into wrong from changes where account_id not in (select account_id from posted) limit 1;
  if found then
    raise exception 'entries of account % contradict the account', wrong using errcode = 'check_violation', constraint = 'entries_follow_account';
  end if;
  return null;
end $$;

create trigger entries_posted after insert on entries referencing new table as new_entries
  for each statement execute function post_entries();
alter table entries enable always trigger entries_posted;

-- The views are for read-only SQL (contract: double-entry-16). A new version may only add columns.
create view v_accounts as
  select 'acc_' || replace(account_id::text, '-', '') as account_id, account_number, account_type, class, currency, status,
    'cli_' || replace(client_id::text, '-', '') as client_id, balance_minor, last_sequence, created_at, held_minor
  from accounts;

create view v_entries as
  select 'ent_' || replace(account_id::text, '-', '') || '-' || sequence as entry_id,
    'opr_' || replace(operation_id::text, '-', '') as operation_id, 'txn_' || replace(transaction_id::text, '-', '') as transaction_id,
    'acc_' || replace(account_id::text, '-', '') as account_id, sequence, direction, side, amount_minor, currency, balance_after_minor, created_at,
    effective_date -- null: the bank's day of created_at
  from entries left join dated_entries using (account_id, sequence);

-- Without refusals, which do not belong to an account's history (isListed in services/ledger/domain/records.ts).
create view v_transactions as
  select 'txn_' || replace(transaction_id::text, '-', '') as transaction_id, 'opr_' || replace(operation_id::text, '-', '') as operation_id,
    'acc_' || replace(account_id::text, '-', '') as account_id, 'acc_' || replace(counterparty_account_id::text, '-', '') as counterparty_account_id,
    case when transaction_type in ('Transfer', 'Loan Payment') then 'trf_' || replace(operation_id::text, '-', '') end as transfer_id,
    transaction_type, direction, amount_minor, currency, description, reference, status, failure_code,
    'txn_' || replace(reverses_transaction_id::text, '-', '') as reverses_transaction_id, idempotency_key, actor, request_id, created_at,
    external_id, metadata, 'hld_' || replace(hold_id::text, '-', '') as hold_id, 'bat_' || replace(batch_id::text, '-', '') as batch_id,
    'cli_' || replace(metadata_client_id::text, '-', '') as metadata_client_id,
    effective_date -- null: the bank's day of created_at
  from transactions
  where failure_code is null or failure_code not in ('account_not_found', 'invalid_amount_precision', 'amount_too_large');

create view v_holds as
  select 'hld_' || replace(hold_id::text, '-', '') as hold_id, 'acc_' || replace(account_id::text, '-', '') as account_id, amount_minor, captured_minor, currency, status,
    description, reference, actor, request_id, expires_at, created_at, updated_at, external_id, metadata
  from holds;
