-- Names as they are looked for, in any script: without case, and however their characters are composed. Cut, since an
-- index holds no long texts. (Postgres's own casefold, which does not change with the libraries of the server.)
create function name_key(name text) returns text language sql immutable strict parallel safe
  return left(casefold(normalize(name, nfkc) collate "pg_unicode_fast"), 100);

-- Written when a client is created, and no posting touches them.
create index clients_by_name on clients (name_key(coalesce(company_name, first_name || ' ' || last_name)) text_pattern_ops);
create index clients_by_last_name on clients (name_key(last_name || ' ' || first_name) text_pattern_ops) where last_name is not null;
create index clients_by_contact_number on clients (contact_number);
