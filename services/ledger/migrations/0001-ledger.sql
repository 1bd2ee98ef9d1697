-- Up Migration

-- The first 120 bits of an id: what its uniqueness rests on (the last byte is a routing hint).
create function id_key(id uuid) returns bytea language sql immutable strict parallel safe
  return substring(uuid_send(id) from 1 for 15);

-- Ledger accounts: customers' accounts, and the slots of Teller and Vault. The row that a posting locks.
create table accounts (
  account_id     uuid primary key,
  account_number text not null unique,
  client_id      uuid,
  account_type   text not null check (account_type in ('Savings', 'Checking', 'Current', 'Loan', 'Teller', 'Vault')),
  class          text generated always as (case when account_type in ('Loan', 'Teller', 'Vault') then 'asset' else 'liability' end) stored,
  currency       text not null,
  status         text not null check (status in ('Active', 'Inactive', 'Frozen')),
  status_version int not null default 1,
  balance_minor  bigint not null default 0,
  last_sequence  bigint not null default 0,
  created_at     timestamptz not null,
  constraint system_accounts_have_no_client check ((client_id is null) = (account_type in ('Teller', 'Vault'))),
  constraint customer_balance_not_negative check (balance_minor >= 0 or account_type in ('Teller', 'Vault')),
  constraint customer_balance_limit check (balance_minor <= 999999999999999 or account_type in ('Teller', 'Vault'))
) with (fillfactor = 60); -- room for updates in place: balance and sequence are in no index

create index accounts_client on accounts (client_id) where client_id is not null;
create index accounts_system on accounts (account_type, currency) where client_id is null;

-- Business operations on one account each. Immutable; the row of a command's own id is its idempotency record.
create table transactions (
  transaction_id          uuid not null,
  operation_id            uuid not null,
  account_id              uuid not null, -- no foreign key: a refusal after a 202 may name an account that never was
  counterparty_account_id uuid,
  transaction_type        text not null check (transaction_type in ('Deposit', 'Withdrawal', 'Transfer', 'Loan Payment')),
  direction               text not null check (direction in ('debit', 'credit')),
  amount_minor            bigint check (amount_minor > 0),
  amount_text             text,
  currency                text,
  description             text,
  reference               text,
  status                  text not null check (status in ('Completed', 'Failed')),
  failure_code            text,
  failure_message         text,
  reverses_transaction_id uuid,
  idempotency_key         text,
  fingerprint             uuid,
  actor                   text not null,
  request_id              text not null,
  created_at              timestamptz(3) not null,
  constraint completed_or_why_not check ((status = 'Failed') = (failure_code is not null)),
  constraint completed_has_amount check (status = 'Failed' or (amount_minor is not null and currency is not null))
);

create unique index transactions_id_key on transactions (id_key(transaction_id));
create index transactions_by_account on transactions (account_id, created_at, transaction_id);
create index transactions_by_time on transactions (created_at, transaction_id);
create index transactions_by_reference on transactions (reference, created_at, transaction_id) where reference is not null;
create index transactions_by_idempotency_key on transactions (idempotency_key, created_at, transaction_id) where idempotency_key is not null;
create index transactions_failed on transactions (created_at, transaction_id) where status = 'Failed';
create unique index transactions_reversed_once on transactions (id_key(reverses_transaction_id)) where reverses_transaction_id is not null and status = 'Completed';

-- Double entry. balance_after and sequence are those of the account; created_at is the booking time.
create table entries (
  account_id          uuid not null, -- checked per statement below: a foreign key would cost a look-up per row
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

-- Commands that leave no transaction (an opening, a change of status): their replies as sent.
create table commands (
  command_id  uuid primary key,
  name        text not null,
  fingerprint uuid,
  outcome     json not null,
  created_at  timestamptz not null default now()
);

create function refuse_change() returns trigger language plpgsql as $$
begin
  raise exception 'ledger.% is append-only: % is refused', tg_table_name, tg_op using errcode = 'restrict_violation';
end $$;

create trigger entries_append_only before update or delete or truncate on entries for each statement execute function refuse_change();
create trigger transactions_append_only before update or delete or truncate on transactions for each statement execute function refuse_change();
alter table entries enable always trigger entries_append_only;
alter table transactions enable always trigger transactions_append_only;

-- Every insert of entries is checked as a whole, at the end of its statement: operations balance per currency (all
-- entries of an operation are written by one statement), sides follow the class, and each account's balance and
-- sequence are those of its newest entry.
create function refuse_wrong_entries() returns trigger language plpgsql as $$
declare
  wrong uuid;
begin
  select operation_id into wrong
    from new_entries group by operation_id, currency
    having sum(case side when 'DR' then amount_minor else -amount_minor end) <> 0 limit 1;
  if found then
    raise exception 'operation % does not balance', wrong using errcode = 'check_violation', constraint = 'entries_balance';
  end if;
  select e.account_id into wrong
    from new_entries e left join accounts a using (account_id)
    where a.account_id is null or a.currency <> e.currency or e.sequence > a.last_sequence
      or (e.sequence = a.last_sequence and e.balance_after_minor <> a.balance_minor)
      or (e.side = 'CR') <> ((a.class = 'liability') = (e.direction = 'credit'))
    limit 1;
  if found then
    raise exception 'entries of account % contradict the account', wrong using errcode = 'check_violation', constraint = 'entries_follow_account';
  end if;
  return null;
end $$;

create trigger entries_balance after insert on entries referencing new table as new_entries
  for each statement execute function refuse_wrong_entries();
alter table entries enable always trigger entries_balance;

-- The transactional outbox of one schema. Copy this text into a migration of the service that owns the schema.
-- The columns of outbox are those of Debezium's outbox event router, so that it could be put in the relay's place.

-- One row per transaction that wrote messages: marking what is published costs one row, however many messages it held.
create table outbox_batches (
  batch_id     bigint generated always as identity primary key,
  size         int not null check (size > 0),
  created_at   timestamptz not null default clock_timestamp(),
  published_at timestamptz
) with (autovacuum_vacuum_threshold = 2000, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_cost_delay = 0);

create index outbox_batches_unpublished on outbox_batches (batch_id) where published_at is null;

create table outbox (
  batch_id      bigint not null,
  position      int not null,       -- 0 … size - 1 within the batch
  id            uuid not null,      -- ce_id
  aggregatetype text not null,      -- the topic without the common prefix
  aggregateid   text,               -- the message key
  type          text not null,      -- ce_type
  time          text not null,      -- ce_time
  headers       text not null,      -- further headers, a JSON object of strings; they win over those made here
  payload       text,               -- the value, byte for byte; null is a tombstone
  "partition"   int,                -- only where the sender must choose it (replies)
  primary key (batch_id, position)
);

-- Who publishes: one row, made by the first relay.
create table outbox_lease (
  only_row   boolean primary key default true check (only_row),
  holder     text not null,
  expires_at timestamptz not null
);

-- Part of the contract, for read-only SQL.
create view v_accounts as
  select 'acc_' || replace(account_id::text, '-', '') as account_id, account_number, account_type, class, currency, status,
    'cli_' || replace(client_id::text, '-', '') as client_id, balance_minor, last_sequence, created_at
  from accounts;

create view v_entries as
  select 'ent_' || replace(account_id::text, '-', '') || '-' || sequence as entry_id,
    'opr_' || replace(operation_id::text, '-', '') as operation_id, 'txn_' || replace(transaction_id::text, '-', '') as transaction_id,
    'acc_' || replace(account_id::text, '-', '') as account_id, sequence, direction, side, amount_minor, currency, balance_after_minor, created_at
  from entries;

create view v_transactions as
  select 'txn_' || replace(t.transaction_id::text, '-', '') as transaction_id, 'opr_' || replace(t.operation_id::text, '-', '') as operation_id,
    'acc_' || replace(t.account_id::text, '-', '') as account_id, 'acc_' || replace(t.counterparty_account_id::text, '-', '') as counterparty_account_id,
    case when t.transaction_type in ('Transfer', 'Loan Payment') and t.reverses_transaction_id is null
      then 'trf_' || replace(t.operation_id::text, '-', '') end as transfer_id,
    t.transaction_type, t.direction, t.amount_minor, t.currency, t.description, t.reference, t.status, t.failure_code,
    'txn_' || replace(t.reverses_transaction_id::text, '-', '') as reverses_transaction_id,
    t.idempotency_key, t.actor, t.request_id, t.created_at
  from transactions t;
