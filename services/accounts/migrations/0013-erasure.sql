-- Up Migration

-- Erasure of a client on request (docs/decisions/0046-an-erasure-replaces-texts.md). The row stays, since accounts and the books
-- refer to it; what is personal in it is replaced.
alter table clients add column erased_at timestamptz;

-- A field of what a kept reply shows; null of a refusal, whose text may hold what Postgres does not read (NUL).
create function shown(reply json, field text) returns text language sql immutable parallel safe set search_path = pg_catalog
  return case when left(reply::text, 11) in ('{"ok":true,', '{"ok": true') then reply -> 'data' ->> field end;

-- Kept replies that show clients, their accounts and API keys, or approvals are found by what they show.
create index commands_by_client on commands (shown(reply, 'client_id')) where shown(reply, 'client_id') is not null;
create index commands_by_approval on commands (shown(reply, 'approval_id')) where shown(reply, 'approval_id') is not null;

-- The chain hashes a digest of the details instead of the details, so that it can be checked after these have been erased. The
-- salt goes with the details: from a digest alone nobody can try out what they were.
alter table audit add column salt uuid default gen_random_uuid();
alter table audit_chain add column details_digest bytea;

create function audit_digest(salt uuid, details jsonb) returns bytea language sql immutable set search_path = pg_catalog
  return sha256(convert_to(salt::text || details::text, 'UTF8'));

-- services/accounts/audit/verify-audit.ts says the same in its own words, so that a changed function is found too.
create function audit_hash(previous bytea, record audit, digest bytea) returns bytea language sql stable set search_path = pg_catalog
  return sha256(previous || convert_to(jsonb_build_array(
    record.audit_id, to_char(record.created_at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US'), record.actor, record.action,
    record.resource_id, record.outcome, record.request_id, encode(digest, 'hex'), record.address)::text, 'UTF8'));

create or replace function link_audit() returns trigger language plpgsql security definer set search_path = accounts, pg_temp as $$
declare
  own      constant int := pg_backend_pid() % 16;
  last     audit_chain;
  link     bigint := 0;
  previous bytea := '';
  digest   bytea;
  fresh    audit;
begin
  if not exists (select from new_records) then return null; end if;
  -- Held until the commit: whoever waits for it then sees the last link, in a statement of its own.
  perform pg_advisory_xact_lock(4711002, own);
  select * into last from audit_chain where chain = own order by sequence desc limit 1;
  if found then
    link := last.sequence;
    previous := last.hash;
  end if;
  for fresh in select * from new_records order by audit_id loop
    link := link + 1;
    digest := audit_digest(fresh.salt, fresh.details);
    previous := audit_hash(previous, fresh, digest);
    insert into audit_chain (chain, sequence, audit_id, hash, details_digest) values (own, link, fresh.audit_id, previous, digest);
  end loop;
  return null;
end $$;

-- Every record that is there gets a second link, of the new form, at the end of the first chain: the links of before and the
-- heads that were published of them stay as they are.
do $$
declare
  link     bigint;
  previous bytea;
  digest   bytea;
  known    audit;
begin
  select coalesce(max(sequence), 0) into link from audit_chain where chain = 0;
  select coalesce((select hash from audit_chain where chain = 0 and sequence = link), '') into previous;
  for known in select * from audit order by created_at, audit_id loop
    link := link + 1;
    digest := audit_digest(known.salt, known.details);
    previous := audit_hash(previous, known, digest);
    insert into audit_chain (chain, sequence, audit_id, hash, details_digest) values (0, link, known.audit_id, previous, digest);
  end loop;
end $$;

drop function audit_hash(bytea, audit);

-- The one change of an audit record: its details, for the name of the erasure that took them, by its owner alone.
create function refuse_change_but_erasure() returns trigger language plpgsql set search_path = accounts, pg_temp as $$
begin
  if to_jsonb(new) - '{details,salt}'::text[] = to_jsonb(old) - '{details,salt}'::text[] and new.salt is null
    and new.details = jsonb_build_object('erased_by', new.details ->> 'erased_by') and new.details ->> 'erased_by' is not null then
    return new;
  end if;
  raise exception 'accounts.audit is append-only: % is refused', tg_op using errcode = 'restrict_violation';
end $$;

drop trigger audit_append_only on audit;
create trigger audit_append_only before delete or truncate on audit for each statement execute function refuse_change();
create trigger audit_erased_only before update on audit for each row execute function refuse_change_but_erasure();
alter table audit enable always trigger audit_append_only;
alter table audit enable always trigger audit_erased_only;

-- What a caller wrote, in what was asked for: the fields that hold texts.
create function without_texts(fields jsonb) returns jsonb language sql immutable set search_path = pg_catalog
  return (select coalesce(jsonb_object_agg(key, case when key in ('description', 'reference', 'reason', 'note', 'name', 'external_id') and jsonb_typeof(value) = 'string'
    then to_jsonb('(erased)'::text) when key = 'metadata' and jsonb_typeof(value) = 'object' then '{"erased": "(erased)"}' else value end), '{}'::jsonb) from jsonb_each(fields));

-- The columns that the service's role may never change are erased by this function of their owner. What is still waiting for a
-- decision is left: it must be sent as it was asked for, and expires within a day.
create function erase_records(client text, erasure text, out audit_records int, out approvals int, out kept_replies int, out status_notes int)
language plpgsql security definer set search_path = accounts, pg_temp as $$
declare
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
revoke all on function erase_records(text, text) from public;
