-- Who did what, for auditors. Written by the transaction that does the work, and never changed, by the owner neither.
create table audit (
  audit_id    text collate "C" primary key,
  created_at  timestamptz not null,
  actor       text not null,
  action      text not null,
  resource_id text,
  outcome     text not null,
  request_id  text not null,
  details     jsonb not null,
  address     text
);

create index audit_list on audit (created_at, audit_id);
create index audit_by_actor on audit (actor, created_at, audit_id);
create index audit_by_action on audit (action, created_at, audit_id);
create index audit_by_resource on audit (resource_id, created_at, audit_id) where resource_id is not null;
create index audit_by_outcome on audit (outcome, created_at, audit_id) where outcome <> 'success';
create index audit_by_request on audit (request_id, created_at, audit_id);

create function refuse_change() returns trigger language plpgsql as $$
begin
  raise exception 'accounts.% is append-only: % is refused', tg_table_name, tg_op using errcode = 'restrict_violation';
end $$;

create trigger audit_append_only before update or delete or truncate on audit for each statement execute function refuse_change();
alter table audit enable always trigger audit_append_only;

-- What lies in the dead-letter topics, and what was decided about it. The bytes stay in the topic.
create table dead_letters (
  dead_letter_id   text collate "C" primary key,
  topic            text not null, -- without the common prefix, as source_topic
  "partition"      int not null,
  "offset"         bigint not null,
  source_topic     text not null,
  source_partition int,
  source_offset    bigint,
  key              text,
  code             text,
  reason           text,
  size_bytes       int not null,
  message          text,
  request_id       text,
  -- The record's own time: it tells a topic that was made anew from the one before, whose offsets it repeats.
  dead_at          timestamptz not null,
  state            text not null default 'open' check (state in ('open', 'redriven', 'dropped')),
  decided_by       text,
  decided_at       timestamptz,
  drop_reason      text,
  constraint dead_letters_place unique (topic, "partition", "offset", dead_at),
  constraint decided_by_someone check ((state = 'open') = (decided_by is null) and (state = 'open') = (decided_at is null))
);

create index dead_letters_list on dead_letters (dead_at, dead_letter_id);
create index dead_letters_by_topic on dead_letters (topic, dead_at, dead_letter_id);
create index dead_letters_by_state on dead_letters (state, dead_at, dead_letter_id);
