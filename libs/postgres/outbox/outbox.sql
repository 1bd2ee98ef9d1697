-- The transactional outbox, which every service's schema has: `migrate` runs this file before the service's own migrations.
-- A change of it is a new migration of each service.

-- One row per transaction that wrote messages, so that marking them as published updates one row, however many they are.
create table outbox_batches (
  batch_id     bigint generated always as identity primary key,
  size         int not null check (size > 0),
  created_at   timestamptz not null default clock_timestamp(),
  published_at timestamptz
) with (autovacuum_vacuum_threshold = 2000, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_cost_delay = 0);

create index outbox_batches_unpublished on outbox_batches (batch_id) where published_at is null;

-- All messages of a batch: JSON lines, compressed with zstd (outbox-messages.ts).
create table outbox (
  batch_id bigint primary key,
  records  bytea not null
) with (autovacuum_vacuum_scale_factor = 0.02, toast.autovacuum_vacuum_scale_factor = 0.02);

-- They are compressed already. Before Postgres 16, the definition of a column could not say this.
alter table outbox alter column records set storage external;

-- The process that publishes. The table has one row, inserted by the first relay (lease.ts).
create table outbox_lease (
  only_row    boolean primary key default true check (only_row),
  holder      text not null,
  expires_at  timestamptz not null,
  -- When the states of recent batches were last published again (stale-states.ts), from which batch the next time, and up to
  -- which batch the last time. Each batch is included twice.
  swept_at    timestamptz not null default clock_timestamp(),
  sweep_after bigint not null default 0,
  sweep_last  bigint not null default 0
);
