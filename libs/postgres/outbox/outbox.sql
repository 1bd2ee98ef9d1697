-- The transactional outbox of one schema. Copy this text into a migration of the service that owns the schema.

-- One row per transaction that wrote messages: marking what is published costs one row, however many messages it held.
create table outbox_batches (
  batch_id     bigint generated always as identity primary key,
  size         int not null check (size > 0),
  created_at   timestamptz not null default clock_timestamp(),
  published_at timestamptz
) with (autovacuum_vacuum_threshold = 2000, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_cost_delay = 0);

create index outbox_batches_unpublished on outbox_batches (batch_id) where published_at is null;

create table outbox (
  batch_id bigint primary key,
  records  bytea not null       -- all messages of the batch: libs/postgres/outbox/outbox-messages.ts
) with (autovacuum_vacuum_scale_factor = 0.02, toast.autovacuum_vacuum_scale_factor = 0.02);
alter table outbox alter column records set storage external; -- compressed already

-- Who publishes: one row, made by the first relay.
create table outbox_lease (
  only_row   boolean primary key default true check (only_row),
  holder     text not null,
  expires_at timestamptz not null
);
