-- Up Migration

-- Audit records are links of chains: the hash of a link covers its record and the hash of the link before it, so that a record
-- that is changed, removed or put in between afterwards is found (docs/decisions/0030-audit-records-are-chained.md). The chain
-- of a transaction is that of its connection: transactions on other connections seldom wait for it.
create table audit_chain (
  chain    int not null check (chain between 0 and 15),
  sequence bigint not null check (sequence > 0), -- without a gap within its chain
  audit_id text collate "C" not null,
  hash     bytea not null,
  primary key (chain, sequence)
);

create trigger audit_chain_append_only before update or delete or truncate on audit_chain for each statement execute function refuse_change();
alter table audit_chain enable always trigger audit_chain_append_only;

-- services/accounts/audit/verify-audit.ts says the same in its own words, so that a changed function is found too.
create function audit_hash(previous bytea, record audit) returns bytea language sql stable set search_path = pg_catalog
  return sha256(previous || convert_to(jsonb_build_array(
    record.audit_id, to_char(record.created_at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US'), record.actor, record.action,
    record.resource_id, record.outcome, record.request_id, record.details, record.address)::text, 'UTF8'));

-- Runs as the owner: services write records, never links.
create function link_audit() returns trigger language plpgsql security definer set search_path = accounts, pg_temp as $$
declare
  own      constant int := pg_backend_pid() % 16;
  last     audit_chain;
  link     bigint := 0;
  previous bytea := '';
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
    previous := audit_hash(previous, fresh);
    insert into audit_chain values (own, link, fresh.audit_id, previous);
  end loop;
  return null;
end $$;

-- The records that are there begin the first chain.
do $$
declare
  link     bigint := 0;
  previous bytea := '';
  known    audit;
begin
  for known in select * from audit order by created_at, audit_id loop
    link := link + 1;
    previous := audit_hash(previous, known);
    insert into audit_chain values (0, link, known.audit_id, previous);
  end loop;
end $$;

create trigger audit_linked after insert on audit referencing new table as new_records for each statement execute function link_audit();
alter table audit enable always trigger audit_linked;
