-- Names, e-mail addresses, and registration numbers in the form in which they are searched for. The service computes it
-- (clients/folded.ts), so it is the same on every version of Postgres; the migration fills in the rows that were stored before.
alter table clients
  add column folded_name         text collate "C", -- first name first
  add column folded_last_name    text collate "C", -- last name first; null for a company
  add column folded_words        text[],
  add column folded_email        text collate "C",
  add column folded_registration text collate "C",
  add column folding             int not null default 0; -- the version of the form (libs/service/folding.ts)

-- Databases that were made before have these on functions that only Postgres 18 has. The functions remain while processes of
-- the earlier version run.
drop index if exists clients_by_email, clients_by_registration_number, clients_by_name_words, clients_by_name, clients_by_last_name;

create index clients_by_email on clients (folded_email, created_at, client_id);
create index clients_by_registration_number on clients (folded_registration, created_at, client_id) where folded_registration is not null;
create index clients_by_name_words on clients using gin (array_to_tsvector(folded_words));
-- These are for the search of the dashboard.
create index clients_by_name on clients (folded_name);
create index clients_by_last_name on clients (folded_last_name) where folded_last_name is not null;
create index clients_by_folding on clients (folding) where erased_at is null;
