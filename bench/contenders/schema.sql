-- The books of the contenders, as one would write them without Kafka. They have fewer indexes and no checking triggers, which is
-- an advantage for the contenders.
create table accounts (
  account_id     uuid primary key,
  account_number text not null unique,
  kind           text not null check (kind in ('Customer', 'Teller', 'Vault')),
  currency       text not null,
  status         text not null default 'Active',
  balance_minor  bigint not null default 0 check (balance_minor >= 0 or kind <> 'Customer'),
  last_sequence  bigint not null default 0
) with (fillfactor = 60);

create table idempotency_keys (
  caller       text not null,
  key          text not null,
  fingerprint  text not null,
  operation_id uuid not null,
  created_at   timestamptz not null default now(),
  primary key (caller, key)
);

create table transactions (
  transaction_id          uuid primary key,
  operation_id            uuid not null,
  account_id              uuid not null,
  counterparty_account_id uuid,
  transaction_type        text not null,
  direction               text not null,
  amount_minor            bigint not null check (amount_minor > 0),
  currency                text not null,
  description             text,
  status                  text not null,
  created_at              timestamptz not null default now()
);
create index transactions_by_account on transactions (account_id, created_at, transaction_id);
create index transactions_by_time on transactions (created_at, transaction_id);

create table entries (
  account_id          uuid not null,
  sequence            bigint not null,
  operation_id        uuid not null,
  direction           text not null,
  amount_minor        bigint not null check (amount_minor > 0),
  balance_after_minor bigint not null,
  created_at          timestamptz not null default now(),
  primary key (account_id, sequence)
);

create table outbox (
  position   bigint generated always as identity primary key,
  topic      text not null,
  key        text not null,
  payload    text not null,
  created_at timestamptz not null default now()
);

-- Posts with one call. Returns null if everything was done, otherwise the reason: a refusal writes nothing.
create function transfer(caller text, idempotency_key text, request_fingerprint text, operation uuid, source uuid, destination uuid, minor bigint, event text)
returns text language plpgsql as $$
declare
  known   idempotency_keys;
  one     accounts;
  from_account accounts;
  to_account   accounts;
begin
  insert into idempotency_keys values (caller, idempotency_key, request_fingerprint, operation) on conflict do nothing;
  if not found then
    select * into known from idempotency_keys k where k.caller = transfer.caller and k.key = idempotency_key;
    return case when known.fingerprint = request_fingerprint then 'replayed' else 'idempotency_key_reused' end;
  end if;
  for one in select * from accounts where account_id in (source, destination) order by account_id for no key update loop
    if one.account_id = source then from_account := one; else to_account := one; end if;
  end loop;
  if from_account.account_id is null or to_account.account_id is null then raise exception 'account_not_found'; end if;
  if from_account.status <> 'Active' or to_account.status <> 'Active' then raise exception 'inactive_account'; end if;
  if from_account.currency <> to_account.currency then raise exception 'currency_mismatch'; end if;
  if from_account.balance_minor < minor then raise exception 'insufficient_funds'; end if;
  insert into transactions values
    (gen_random_uuid(), operation, source, destination, 'Transfer', 'debit', minor, from_account.currency, null, 'Completed'),
    (gen_random_uuid(), operation, destination, source, 'Transfer', 'credit', minor, from_account.currency, null, 'Completed');
  insert into entries values
    (source, from_account.last_sequence + 1, operation, 'debit', minor, from_account.balance_minor - minor),
    (destination, to_account.last_sequence + 1, operation, 'credit', minor, to_account.balance_minor + minor);
  update accounts set balance_minor = balance_minor - minor, last_sequence = last_sequence + 1 where account_id = source;
  update accounts set balance_minor = balance_minor + minor, last_sequence = last_sequence + 1 where account_id = destination;
  insert into outbox (topic, key, payload) values ('transfers', source::text, event);
  return null;
end $$;

create function deposit(caller text, idempotency_key text, request_fingerprint text, operation uuid, customer uuid, minor bigint, event text)
returns text language plpgsql as $$
declare
  known  idempotency_keys;
  one    accounts;
  mine   accounts;
  teller accounts;
  vault  accounts;
begin
  insert into idempotency_keys values (caller, idempotency_key, request_fingerprint, operation) on conflict do nothing;
  if not found then
    select * into known from idempotency_keys k where k.caller = deposit.caller and k.key = idempotency_key;
    return case when known.fingerprint = request_fingerprint then 'replayed' else 'idempotency_key_reused' end;
  end if;
  for one in select * from accounts where account_id = customer or account_number in ('TLR-USD', 'VLT-USD') order by account_id for no key update loop
    if one.kind = 'Teller' then teller := one; elsif one.kind = 'Vault' then vault := one; else mine := one; end if;
  end loop;
  if mine.account_id is null then raise exception 'account_not_found'; end if;
  if mine.status <> 'Active' then raise exception 'inactive_account'; end if;
  insert into transactions values (gen_random_uuid(), operation, customer, null, 'Deposit', 'credit', minor, mine.currency, null, 'Completed');
  insert into entries values
    (customer, mine.last_sequence + 1, operation, 'credit', minor, mine.balance_minor + minor),
    (teller.account_id, teller.last_sequence + 1, operation, 'credit', minor, teller.balance_minor + minor),
    (teller.account_id, teller.last_sequence + 2, operation, 'debit', minor, teller.balance_minor),
    (vault.account_id, vault.last_sequence + 1, operation, 'credit', minor, vault.balance_minor + minor);
  update accounts set balance_minor = balance_minor + minor, last_sequence = last_sequence + 1 where account_id = customer;
  update accounts set last_sequence = last_sequence + 2 where account_id = teller.account_id;
  update accounts set balance_minor = balance_minor + minor, last_sequence = last_sequence + 1 where account_id = vault.account_id;
  insert into outbox (topic, key, payload) values ('transactions', customer::text, event);
  return null;
end $$;
