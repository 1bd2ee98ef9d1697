-- Up Migration

-- Whose name a function looks up is not its caller's choice. name_key needs nothing: a body that is one `return` is bound to what it
-- names when it is made.
alter function refuse_change() set search_path = accounts, pg_temp;
