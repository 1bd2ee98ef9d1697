-- Up Migration

-- Whose name a function looks up is not its caller's choice: a temporary table named accounts once stood in the way of the check of
-- entries. id_key needs nothing: a body that is one `return` is bound to what it names when it is made.
alter function refuse_change() set search_path = ledger, pg_temp;
alter function refuse_wrong_entries() set search_path = ledger, pg_temp;
