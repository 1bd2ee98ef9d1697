-- Up Migration

-- The messages of a batch lie in one row, compressed (docs/decisions/0022): a row and an index entry each were a third of what
-- Postgres did for a posting. A process of a version before this one cannot write any more, and does nothing until it is replaced.
alter table outbox rename to outbox_rows;
alter table outbox_rows rename constraint outbox_pkey to outbox_rows_pkey;
alter table outbox_rows rename constraint outbox_batch_id_not_null to outbox_rows_batch_id_not_null;

create table outbox (
  batch_id bigint primary key,
  messages bytea not null       -- all of the batch: libs/postgres/outbox-messages.ts
) with (autovacuum_vacuum_scale_factor = 0.02, toast.autovacuum_vacuum_scale_factor = 0.02);
alter table outbox alter column messages set storage external; -- compressed already

-- As packMessages would write them, but not compressed.
insert into outbox (batch_id, messages)
select batch_id, convert_to(string_agg(line::text || E'\n', '' order by position), 'UTF8')
from (
  select batch_id, position, case
    when "partition" is null then json_build_object('id', id, 'topic', aggregatetype, 'key', aggregateid, 'type', type, 'time', time, 'headers', headers::json, 'payload', payload)
    else json_build_object('id', id, 'topic', aggregatetype, 'key', aggregateid, 'type', type, 'time', time, 'headers', headers::json, 'partition', "partition", 'payload', payload)
  end as line from outbox_rows
) as messages group by batch_id;
drop table outbox_rows;

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
