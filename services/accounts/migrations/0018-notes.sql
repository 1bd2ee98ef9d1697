-- Up Migration

-- Notes of staff on a client, or on one of their accounts. Append-only but for the erasure of the client.
create table notes (
  note_id text primary key,
  client_id text not null references clients,
  account_id text references accounts,
  note text not null,
  actor text not null,
  created_at timestamptz not null
);
create index notes_by_client on notes (client_id, created_at, note_id);
create index notes_by_account on notes (account_id, created_at, note_id) where account_id is not null;

-- The columns that the service's role may never change are erased by this function of their owner. What is still waiting for a
-- decision is left: it must be sent as it was asked for, and expires within a day.
create or replace function erase_records(client text, erasure text, out audit_records int, out approvals int, out kept_replies int, out status_notes int)
language plpgsql security definer set search_path = accounts, pg_temp as $$
declare
  written_notes int;
  own   text[] := array(select account_id from accounts.accounts a where a.client_id = client);
  named text[] := array(select '%' || id || '%' from unnest(own || client) as id);
begin
  if not exists (select from clients c where c.client_id = client and c.erased_at is not null) then
    raise exception 'client % is not erased', client using errcode = 'restrict_violation';
  end if;
  update audit set details = jsonb_build_object('erased_by', erasure), salt = null
    where resource_id = client and details <> '{}' and not details ? 'erased_by' and action <> 'erase_client';
  get diagnostics audit_records = row_count;
  update status_transitions set note = '(erased)' where account_id = any(own) and note <> '(erased)';
  get diagnostics status_notes = row_count;
  update notes set note = '(erased)' where client_id = client and note <> '(erased)';
  get diagnostics written_notes = row_count;
  status_notes := status_notes + written_notes;
  with erased as (
    update accounts.approvals set
        request = jsonb_set(request::jsonb, '{body}', without_texts(request::jsonb -> 'body')),
        command = jsonb_set(command::jsonb, '{data}', without_texts(command::jsonb -> 'data')),
        changes = (select coalesce(jsonb_agg(case when change ->> 'field' in ('description', 'reference', 'reason', 'note', 'name')
            then jsonb_build_object('field', change -> 'field', 'before', case when change ->> 'before' is not null then '(erased)' end,
              'after', case when change ->> 'after' is not null then '(erased)' end) else change end), '[]') from jsonb_array_elements(changes::jsonb) as change),
        reason = case when reason is not null then '(erased)' end,
        outcome = case when outcome -> 'data' is not null then jsonb_set(outcome::jsonb, '{data}', without_texts((outcome -> 'data')::jsonb)) else outcome::jsonb end
      where (status in ('Rejected', 'Expired') or outcome is not null) and (command::text || changes::text) like any(named)
        and (without_texts((request -> 'body')::jsonb) <> (request -> 'body')::jsonb or reason <> '(erased)')
      returning approval_id, request, changes
  ), replied as (
    update commands c set reply = jsonb_set(c.reply::jsonb, '{data}', (c.reply -> 'data')::jsonb || jsonb_build_object('request', e.request, 'changes', e.changes)
        || case when c.reply -> 'data' ->> 'reason' is null then '{}' else '{"reason": "(erased)"}' end::jsonb
        || case when c.reply -> 'data' -> 'outcome' -> 'data' is null then '{}'
             else jsonb_build_object('outcome', jsonb_set((c.reply -> 'data' -> 'outcome')::jsonb, '{data}', without_texts((c.reply -> 'data' -> 'outcome' -> 'data')::jsonb))) end)
      from erased e where shown(c.reply, 'approval_id') = e.approval_id and shown(c.reply, 'approval_id') is not null
      returning c.command_id
  )
  select (select count(*) from erased), (select count(*) from replied) into approvals, kept_replies;
  update accounts.accounts set external_id = null, metadata = null where client_id = client and (external_id is not null or metadata is not null);
  update api_keys set name = '(erased)' where client_id = client and name <> '(erased)';
end $$;
