-- Events, as published on Kafka.

-- One row. A transaction that assigns positions holds its lock until it commits, so positions are assigned in commit order: an event
-- that a reader does not see yet always has a higher position than every event that it sees.
create table event_head (
  only_row boolean primary key default true check (only_row),
  position bigint not null,           -- the last assigned position
  -- Seals the cursors of GET /events. A change would make those that readers have stored invalid.
  cursor_key bytea not null default sha256(uuid_send(gen_random_uuid()) || uuid_send(gen_random_uuid()))
);
insert into event_head (position) values (0);

create table events (
  position    bigint primary key,
  event_id    uuid not null unique,    -- ce_id, by which repeats are recognized
  type        text not null,
  subject     text not null,           -- the message key, which determines the order
  occurred_at timestamptz(3) not null, -- ce_time, which has three decimals: a replay continues after it
  event       text not null            -- the CloudEvent in structured JSON
);
create index events_by_time on events (occurred_at, position);
-- Finds the held events of a key.
create index events_by_subject on events (subject, position);

-- The events of an account or client, in order. position is that of the event, except for a client whose account was not known yet
-- when the event was stored: then it is a later one, assigned when the owner became known, so that no reader misses the event.
create table event_subjects (
  subject        text not null,       -- acc_… or cli_…
  position       bigint not null,
  event_position bigint not null,
  primary key (subject, position)
);
create index event_subjects_by_event on event_subjects (event_position);

-- The owners of accounts, as named in events.
create table account_owners (
  account_id text primary key,
  client_id  text not null
);

-- Webhooks.

create table webhooks (
  webhook_id              text primary key,
  client_id               text,           -- the client to which its creator was bound
  url                     text not null,
  event_types             text[] not null,
  description             text,
  status                  text not null check (status in ('Active', 'Paused', 'Disabled', 'Deleted')),
  secret                  text not null,  -- sealed: libs/contracts/webhook-secret.ts
  previous_secret         text,
  previous_secret_ends_at timestamptz,
  created_by              text not null,
  -- The actors that last set them. The webhook sends nothing more when the keys of one of them were revoked or have expired.
  url_set_by              text not null,
  secret_set_by           text not null,
  created_at              timestamptz not null,
  updated_at              timestamptz not null,
  failing_since           timestamptz,    -- the first failure after the last success
  last_ordinal            bigint not null default 0, -- of its deliveries, so that their ids do not count those of the bank
  -- Whether the events of one account wait for each other.
  ordering                text not null default 'account' check (ordering in ('account', 'none'))
);
create index webhooks_by_creation on webhooks (created_at, webhook_id);
create index webhooks_by_creator on webhooks (created_by) where status <> 'Deleted';

-- Actors whose keys were revoked or have expired, and clients that were erased. A command of theirs that is executed later has no effect.
create table disabled_callers (
  caller text primary key -- an actor or a client_id
);

-- Ranges of positions for which deliveries are created. A live feed has no end, and skips the events whose time is in a pause,
-- whenever they are stored; a replay has a period.
create table feeds (
  feed_id        bigint generated always as identity primary key,
  webhook_id     text not null references webhooks,
  position       bigint not null,         -- the last one that was examined
  pauses         tstzmultirange not null default '{}',
  opened_at      timestamptz not null default clock_timestamp(),
  from_time      timestamptz(3),          -- of a replay; for the whole bank, it advances with the position
  until_time     timestamptz(3),
  is_over        boolean not null default false -- it has reached its end, and remains until nothing of it is held
);
create index feeds_by_webhook on feeds (webhook_id, feed_id);

-- An ordering key of a feed that has as many Pending deliveries as a key may have, or whose first one was refused. The feed
-- skips its events; they stay in the table of events until none of the key is Pending. There is at most one row for each key and feed.
create table held_keys (
  feed_id       bigint not null references feeds on delete cascade,
  webhook_id    text not null,
  ordering_key  text not null,
  position      bigint not null,        -- the last one that was examined; with those of its key, a feed is in order of positions
  -- Where in the order of a replay for the whole bank, which is that of time, the first held event is.
  from_time     timestamptz(3),
  from_position bigint,
  is_ready      boolean not null default false, -- nothing of the key is Pending
  primary key (feed_id, ordering_key)
);
create index held_keys_by_key on held_keys (webhook_id, ordering_key);
create index held_keys_ready on held_keys (webhook_id) where is_ready;

-- One event for one webhook. A transaction that makes a delivery Pending, or ends one, holds the lock of its webhook's row. This
-- determines the first Pending delivery of each ordering key. Only that one has a time for its next attempt.
create table deliveries (
  webhook_id      text not null references webhooks,
  ordinal         bigint not null,
  event_id        uuid not null,
  event_position  bigint,                 -- null: a test
  event_type      text not null,
  ordering_key    text not null,
  body            text,                   -- of a test
  status          text not null default 'Pending' check (status in ('Pending', 'Delivered', 'Failed')),
  tries           int not null default 0, -- in its retry schedule
  claim           int not null default 0, -- increases each time that a process claims it
  next_attempt_at timestamptz,            -- while it is claimed: when another process may claim it
  created_at      timestamptz not null default clock_timestamp(),
  waits_since     timestamptz not null default clock_timestamp(), -- its event occurred, or the replay or redelivery was requested
  finished_at     timestamptz,
  attempts        json[] not null default '{}', -- the last hundred
  primary key (webhook_id, ordinal)
);
create index deliveries_due on deliveries (webhook_id, next_attempt_at) where status = 'Pending' and next_attempt_at is not null;
create index deliveries_in_order on deliveries (webhook_id, ordering_key, ordinal) where status = 'Pending';
create index deliveries_failed on deliveries (webhook_id, ordinal) where status = 'Failed';
create index deliveries_finished on deliveries (status, finished_at) where finished_at is not null;

-- Executed commands, by which repeats are recognized.
create table commands (
  command_id     text primary key,
  fingerprint    text,
  correlation_id text,
  reply          json not null
);

-- Commands that became dead letters. They are undecided, and their callers may have got a 504 that names the id, so their ids are
-- not unknown. The row remains after the command has been decided; its reply then takes precedence.
create table dead_lettered_commands (
  command_id text primary key,
  created_at timestamptz not null default clock_timestamp()
);

-- A deleted webhook stays deleted.
create function refuse_final() returns trigger language plpgsql set search_path = webhooks, pg_temp as $$
begin
  raise exception 'webhooks.%: % is refused, because the row is final', tg_table_name, tg_name using errcode = 'restrict_violation';
end $$;

create trigger reviving after update of status on webhooks for each row
  when (old.status = 'Deleted' and new.status <> 'Deleted') execute function refuse_final();
