-- The tables of the sink: what the connector writes (events, by their place in the topic), and what the trigger makes of
-- it: each entry once, although both events of a transfer contain all its entries and the bank may publish one again. After
-- a restore to an earlier time, it publishes entries with new times.
-- Columns of `entries` may be removed, and those of the event or of its entries added by their names.
create table events (
  __connect_topic text,
  __connect_partition int,
  __connect_offset bigint,
  event text not null,
  primary key (__connect_topic, __connect_partition, __connect_offset)
);

create table entries (
  entry_id text primary key,
  operation_id text not null,
  transaction_id text not null,
  account_id text not null,
  account_type text,
  account_class text,
  sequence bigint not null,
  direction text not null,
  side text not null,
  amount numeric not null,
  currency text not null,
  effective_date date not null,
  created_at timestamptz not null,
  event_id text,
  event_type text
);

create function entries_of_event() returns trigger language plpgsql as $$
begin
  insert into entries
  select row.* from jsonb_array_elements(new.event::jsonb -> 'entries') entry,
    jsonb_populate_record(null::entries, new.event::jsonb || entry) row
  on conflict (entry_id) do update set created_at = excluded.created_at, effective_date = excluded.effective_date
    where (entries.created_at, entries.effective_date) <> (excluded.created_at, excluded.effective_date);
  return null;
end $$;

create trigger entries_of_event after insert or update on events for each row execute function entries_of_event();
