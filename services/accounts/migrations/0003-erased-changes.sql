-- Approvals can be about changes of a client, so what a caller wrote includes names and contacts.
create or replace function without_texts(fields jsonb) returns jsonb language sql immutable set search_path = pg_catalog
  return (select coalesce(jsonb_object_agg(key, case
    when key in ('description', 'reference', 'reason', 'note', 'name', 'external_id', 'first_name', 'last_name', 'company_name',
      'registration_number', 'email', 'contact_number', 'address', 'ussd_phone_number') and jsonb_typeof(value) = 'string'
    then to_jsonb('(erased)'::text)
    when key = 'metadata' and jsonb_typeof(value) = 'object' then '{"erased": "(erased)"}'
    when key = 'changes' and jsonb_typeof(value) = 'object' then (
      select coalesce(jsonb_object_agg(field, case when jsonb_typeof(given) = 'string' then to_jsonb('(erased)'::text) else given end), '{}'::jsonb)
      from jsonb_each(value) as changed (field, given))
    else value end), '{}'::jsonb) from jsonb_each(fields));
