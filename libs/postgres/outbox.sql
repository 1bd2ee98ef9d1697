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
  records  bytea not null       -- all messages of the batch: libs/postgres/outbox-messages.ts
) with (autovacuum_vacuum_scale_factor = 0.02, toast.autovacuum_vacuum_scale_factor = 0.02);
alter table outbox alter column records set storage external; -- compressed already

-- Only where Debezium publishes the events (docs/debezium.md): what the relay gives it, in the columns of its outbox event
-- router. A connector reads inserts from the write-ahead log; rows are gone with the next insert.
create table outbox_events (
  id            uuid not null,      -- ce_id
  aggregatetype text not null,      -- the topic without the common prefix
  aggregateid   text,               -- the message key
  type          text not null,      -- ce_type
  time          text not null,      -- ce_time
  headers       text not null,      -- further headers, a JSON object of strings
  payload       text                -- the value, byte for byte; null is a tombstone
);

-- Who publishes: one row, made by the first relay.
create table outbox_lease (
  only_row   boolean primary key default true check (only_row),
  holder     text not null,
  expires_at timestamptz not null
);

-- What deletion after the retention has taken: a replay of a period that is not wholly kept must not be begun. One row.
create table outbox_purged (
  only_row   boolean primary key default true check (only_row),
  batch_id   bigint not null,      -- the last one deleted
  created_at timestamptz not null  -- the latest of those deleted
);

-- Replays: what has been published again, or is being. libs/postgres/replayer.ts works them off.
create table replays (
  replay_id     uuid primary key,
  topic         text not null,
  from_time     timestamptz not null,
  to_time       timestamptz not null,
  account_id    text,
  requested_by  text not null,
  created_at    timestamptz not null default date_trunc('milliseconds', clock_timestamp()),
  ended_at      timestamptz,
  failure       text,
  event_count   bigint not null default 0,
  first_ce_id   uuid,
  last_ce_id    uuid,
  -- Everything up to this batch is published; null before the first.
  done_batch_id bigint,
  -- Who works at it, until when others keep off, and how often somebody began since anything was published.
  holder        text,
  held_until    timestamptz not null default '-infinity',
  attempts      int not null default 0,
  constraint failed_at_the_end check (failure is null or ended_at is not null)
);

create index replays_list on replays (created_at, replay_id);
