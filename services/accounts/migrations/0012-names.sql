-- What callers call a client or an account and note on it. An account whose opening was refused keeps no name from others.
alter table clients add column external_id text collate "C", add column metadata json;
alter table accounts add column external_id text collate "C", add column metadata json;
create unique index clients_by_external_id on clients (external_id) where external_id is not null;
create unique index accounts_by_external_id on accounts (external_id) where external_id is not null and state <> 'refused';
