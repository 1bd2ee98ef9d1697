-- Events, as they are published on Kafka.

-- One row, whose lock every transaction holds that gives positions, until it has committed: so positions are given in the order of
-- the commits, and what a reader does not see yet always has a higher one than all that it sees.
create table event_head (
  only_row boolean primary key default true check (only_row),
  position bigint not null            -- the last one given
);
insert into event_head (position) values (0);

create table events (
  position    bigint primary key,
  event_id    uuid not null unique,   -- ce_id: by it repeats are known
  type        text not null,
  subject     text not null,          -- the message key, which orders
  account_ids text[] not null,        -- the customers' accounts that it is about
  client_ids  text[] not null,        -- whose they are, as far as it is known
  occurred_at timestamptz(3) not null, -- ce_time, which has three decimals: so a reader can go on from it
  event       text not null           -- the CloudEvent in structured JSON
);
create index events_by_time on events (occurred_at, position);

-- What concerns one account or one client, in order. The position is that of the event, but for a client whose account was not known
-- yet: then it is a later one, given when it became known, so that nobody who reads on misses it.
create table event_subjects (
  subject        text not null,       -- acc_… or cli_…
  position       bigint not null,
  event_position bigint not null,
  primary key (subject, position)
);

-- Who owns an account, as its opening or another event has told.
create table account_owners (
  account_id text primary key,
  client_id  text not null
);

-- Webhooks.

create table webhooks (
  webhook_id              text primary key,
  client_id               text,           -- the client that its maker was bound to
  url                     text not null,
  event_types             text[] not null,
  description             text,
  status                  text not null check (status in ('Active', 'Paused', 'Disabled', 'Deleted')),
  secret                  text not null,  -- sealed: libs/contracts/webhook-secret.ts
  previous_secret         text,
  previous_secret_ends_at timestamptz,
  created_by              text not null,
  created_at              timestamptz not null,
  updated_at              timestamptz not null,
  failing_since           timestamptz     -- the first failure since something got through
);
create index webhooks_by_creation on webhooks (created_at, webhook_id);
create index webhooks_by_maker on webhooks (created_by) where status <> 'Deleted';

-- Where deliveries come from: a live feed has no end but where the webhook was paused, a replay has its period.
create table feeds (
  feed_id        bigint generated always as identity primary key,
  webhook_id     text not null references webhooks,
  position       bigint not null,         -- the last one that was looked at
  until_position bigint,
  occurred_at    timestamptz(3),          -- of a replay: that of the event at this position
  from_time      timestamptz,
  until_time     timestamptz
);
create index feeds_by_webhook on feeds (webhook_id, feed_id);

-- One event for one webhook. Whoever makes one Pending, or ends one, holds the lock of its webhook's row: so it is certain which is
-- the first Pending one of an ordering key, and that alone has a moment for its next attempt.
create table deliveries (
  ordinal         bigint generated always as identity primary key,
  webhook_id      text not null references webhooks,
  event_id        uuid not null,
  event_position  bigint,                 -- null: a test
  event_type      text not null,
  ordering_key    text not null,
  body            text,                   -- of a test
  status          text not null default 'Pending' check (status in ('Pending', 'Delivered', 'Failed')),
  tries           int not null default 0, -- of the retry schedule
  claim           int not null default 0, -- rises each time that a process takes it
  next_attempt_at timestamptz,            -- of one that is under way: when another process may take it
  created_at      timestamptz not null default clock_timestamp(),
  finished_at     timestamptz
);
create index deliveries_due on deliveries (webhook_id, next_attempt_at) where status = 'Pending' and next_attempt_at is not null;
create index deliveries_in_order on deliveries (webhook_id, ordering_key, ordinal) where status = 'Pending';
create index deliveries_by_webhook on deliveries (webhook_id, ordinal);
create index deliveries_by_status on deliveries (webhook_id, status, ordinal);
create index deliveries_finished on deliveries (status, finished_at) where finished_at is not null;

create table attempts (
  ordinal         bigint not null references deliveries on delete cascade,
  attempted_at    timestamptz not null,
  duration_ms     int not null,
  response_status int,
  error           text,
  primary key (ordinal, attempted_at)
);

-- Commands that were taken, by which repeats are known; null while the transaction that decides runs.
create table commands (
  command_id     text primary key,
  fingerprint    text,
  correlation_id text,
  reply          json
);
