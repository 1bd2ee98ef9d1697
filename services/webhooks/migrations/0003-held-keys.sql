-- Whether the events of one account wait for each other.
alter table webhooks add column ordering text not null default 'account' check (ordering in ('account', 'none'));

-- A feed that has reached its end remains until nothing of it is held.
alter table feeds add column is_over boolean not null default false;

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

-- Finds the held events of a key.
create index events_by_subject on events (subject, position);
