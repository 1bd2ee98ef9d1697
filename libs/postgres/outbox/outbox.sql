-- The transactional outbox. `migrate` runs this file in each service's schema before the service's own migrations. It must be
-- possible to run it again, and while a relay of the previous release uses the tables.

-- One row per transaction that wrote messages, so that marking them as published updates one row, however many they are.
create table if not exists outbox_batches (
  batch_id     bigint generated always as identity primary key,
  size         int not null check (size > 0),
  created_at   timestamptz not null default clock_timestamp(),
  published_at timestamptz
) with (autovacuum_vacuum_threshold = 2000, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_cost_delay = 0);

create index if not exists outbox_batches_unpublished on outbox_batches (batch_id) where published_at is null;

-- All messages of a batch: JSON lines, compressed with zstd (outbox-messages.ts).
create table if not exists outbox (
  batch_id bigint primary key,
  records  bytea not null
) with (autovacuum_vacuum_scale_factor = 0.02, toast.autovacuum_vacuum_scale_factor = 0.02);

-- They are compressed already. Before Postgres 16, the definition of a column could not say this.
do $$ begin
  if (select attstorage from pg_attribute where attrelid = 'outbox'::regclass and attname = 'records') <> 'e' then
    alter table outbox alter column records set storage external;
  end if;
end $$;

-- The process that publishes. The table has one row, inserted by the first relay (lease.ts).
create table if not exists outbox_lease (
  only_row   boolean primary key default true check (only_row),
  holder     text not null,
  expires_at timestamptz not null
);

-- When the states of recent batches were last published again (stale-states.ts), from which batch the next time, and up to
-- which batch the last time. Each batch is included twice.
alter table outbox_lease
  add column if not exists swept_at    timestamptz not null default clock_timestamp(),
  add column if not exists sweep_after bigint not null default 0,
  add column if not exists sweep_last  bigint not null default 0;
