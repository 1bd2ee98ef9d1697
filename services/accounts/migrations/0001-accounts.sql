-- Clients, accounts, status history, API keys, and what makes their commands exactly-once: inbox, saga steps, outbox.
-- Ids are compared bytewise (collate "C"), so that the order of lists is the same on every server.

create table clients (
  client_id           text collate "C" primary key,
  client_type         text not null check (client_type in ('Retail', 'Corporate')),
  first_name          text,
  last_name           text,
  company_name        text,
  registration_number text,
  email               text not null,
  contact_number      text not null,
  address             text,
  ussd_phone_number   text collate "C",
  ussd_status         text not null default 'inactive' check (ussd_status in ('active', 'inactive')),
  created_at          timestamptz not null,
  updated_at          timestamptz not null,
  check (client_type <> 'Retail' or (first_name is not null and last_name is not null and company_name is null and registration_number is null)),
  check (client_type <> 'Corporate' or (company_name is not null and registration_number is not null and first_name is null
    and last_name is null and ussd_phone_number is null and ussd_status = 'inactive')),
  check (ussd_status = 'inactive' or ussd_phone_number is not null)
);

-- One active USSD phone belongs to one client.
create unique index clients_active_ussd_phone on clients (ussd_phone_number) where ussd_status = 'active';
-- One index per list filter, each ending in the list's order: any page is a range of it.
create index clients_list on clients (created_at, client_id);
create index clients_by_type on clients (client_type, created_at, client_id);
create index clients_by_ussd_phone on clients (ussd_phone_number, created_at, client_id) where ussd_phone_number is not null;

create table accounts (
  account_id     text collate "C" primary key,
  client_id      text collate "C" not null references clients,
  account_number text collate "C" not null constraint accounts_number unique,
  account_type   text not null check (account_type in ('Savings', 'Checking', 'Current', 'Loan')),
  currency       text not null check (currency ~ '^[A-Z]{3}$'),
  -- What the ledger said last, by its version; the ledger's own row decides postings.
  status         text not null check (status in ('Active', 'Inactive', 'Frozen')),
  status_version int not null default 0,
  -- opening: the ledger has not answered yet. refused: it refused. Neither is ever shown.
  state          text not null default 'opening' check (state in ('opening', 'open', 'refused')),
  created_at     timestamptz not null,
  updated_at     timestamptz not null
) with (fillfactor = 90);

create index accounts_list on accounts (created_at, account_id) where state = 'open';
create index accounts_by_client on accounts (client_id, created_at, account_id) where state = 'open';
create index accounts_by_type on accounts (account_type, created_at, account_id) where state = 'open';
create index accounts_by_status on accounts (status, created_at, account_id) where state = 'open';
create index accounts_by_currency on accounts (currency, created_at, account_id) where state = 'open';

-- Written once per change that the ledger made, never for a no-op.
create table status_transitions (
  transition_id  text collate "C" primary key,
  account_id     text collate "C" not null references accounts,
  status_version int not null,
  from_status    text not null,
  to_status      text not null check (to_status <> from_status),
  reason         text,
  note           text,
  actor          text not null,
  created_at     timestamptz not null,
  constraint status_transitions_version unique (account_id, status_version)
);

create table api_keys (
  key_id       text collate "C" primary key,
  -- The first key of a chain of rotations: the caller's identity, which rotation keeps.
  family_id    text collate "C" not null,
  name         text not null,
  scopes       text[] not null check (cardinality(scopes) > 0),
  environment  text not null check (environment in ('live', 'test')),
  client_id    text collate "C" references clients,
  -- HMAC-SHA-256 of the whole key; the key itself is kept nowhere.
  secret_hash  text not null unique check (secret_hash ~ '^[0-9a-f]{64}$'),
  created_at   timestamptz not null,
  created_by   text not null,
  expires_at   timestamptz not null,
  last_used_at timestamptz,
  revoked_at   timestamptz,
  rotated_from text collate "C" references api_keys,
  version      int not null default 1
);

create index api_keys_list on api_keys (created_at, key_id);
create index api_keys_by_client on api_keys (client_id, created_at, key_id) where client_id is not null;

-- The inbox: one row per decided or begun command, written in the transaction that does the work.
create table commands (
  command_id  text collate "C" primary key,
  fingerprint text,
  -- The reply as it was sent; null while a saga is under way.
  reply       json,
  created_at  timestamptz not null default clock_timestamp()
) with (fillfactor = 80);

-- Who waits for the reply of a command whose saga is under way.
create table waiting_replies (
  command_id     text collate "C" not null,
  correlation_id text not null,
  topic          text not null,
  "partition"    int not null,
  replayed       boolean not null,
  created_at     timestamptz not null default clock_timestamp(),
  primary key (command_id, correlation_id)
);

-- Steps that the ledger has not answered yet. The sweeper sends them again; the answer deletes them.
create table saga_steps (
  step_id         text collate "C" primary key, -- account_id or transition_id: the correlation id of the ledger's reply
  message         text not null check (message in ('open_ledger_account', 'change_ledger_account_status')),
  account_id      text collate "C" not null,
  payload         json not null,                -- the data of the message
  context         json not null,                -- the MessageContext of the command that began it
  detail          json not null,                -- what accounts alone must remember until the answer
  attempts        int not null default 1,
  next_attempt_at timestamptz not null,
  created_at      timestamptz not null default clock_timestamp()
) with (fillfactor = 70);

create index saga_steps_due on saga_steps (next_attempt_at);

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
