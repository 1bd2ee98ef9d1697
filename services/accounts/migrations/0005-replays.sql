-- Rows of the outbox now stay for days after they were published (OUTBOX_RETENTION_HOURS): what deletion leaves behind is
-- taken up before it is a fifth of them.
alter table outbox set (autovacuum_vacuum_scale_factor = 0.02);

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
