-- The schema of accounts as of version 1.0: clients, accounts, status history, API keys, approvals, the audit and dead letters,
-- and the tables that make commands exactly-once (inbox and saga steps). Ids are compared bytewise (collate "C"), so that lists
-- have the same order on every server. The outbox is in libs/postgres/outbox/outbox.sql, the table of verifications in
-- libs/service/verifications.sql, and the rights of the service's role are in schema.ts.

create table clients (
  client_id           text collate "C" primary key,
  client_type         text not null check (client_type in ('Retail', 'Corporate')),
  first_name          text,
  last_name           text,
  company_name        text,
  registration_number text,
  email               text not null,
  contact_number      text not null,
  address             text,
  ussd_phone_number   text collate "C",
  ussd_status         text not null default 'inactive' check (ussd_status in ('active', 'inactive')),
  external_id         text collate "C",
  metadata            json, -- the bank's; not jsonb: a repeat returns the keys in the order in which they were sent
  client_metadata     json, -- given by credentials of the client
  erased_at           timestamptz,
  -- Names, e-mail addresses, and registration numbers in the form in which they are searched for. The service computes it
  -- (clients/folded.ts), so it is the same on every version of Postgres.
  folded_name         text collate "C", -- first name first
  folded_last_name    text collate "C", -- last name first; null for a company
  folded_words        text[],
  folded_email        text collate "C",
  folded_registration text collate "C",
  folding             int not null default 0, -- the version of the form (libs/service/folding.ts)
  created_at          timestamptz not null,
  updated_at          timestamptz not null,
  check (client_type <> 'Retail' or (first_name is not null and last_name is not null and company_name is null and registration_number is null)),
  check (client_type <> 'Corporate' or (company_name is not null and registration_number is not null and first_name is null
    and last_name is null and ussd_phone_number is null and ussd_status = 'inactive')),
  check (ussd_status = 'inactive' or ussd_phone_number is not null)
);

-- An active USSD phone belongs to one client.
create unique index clients_active_ussd_phone on clients (ussd_phone_number) where ussd_status = 'active';
create unique index clients_by_external_id on clients (external_id) where external_id is not null;
-- Each filter of a list has its own index, which ends in the order of the list, so every page is a range of it.
create index clients_list on clients (created_at, client_id);
create index clients_by_type on clients (client_type, created_at, client_id);
create index clients_by_ussd_phone on clients (ussd_phone_number, created_at, client_id) where ussd_phone_number is not null;
create index clients_by_email on clients (folded_email, created_at, client_id);
create index clients_by_registration_number on clients (folded_registration, created_at, client_id) where folded_registration is not null;
create index clients_by_name_words on clients using gin (array_to_tsvector(folded_words));
create index clients_by_folding on clients (folding) where erased_at is null;
-- These are for the search of the dashboard. Phone numbers are also found by their last digits, as they are used within a
-- country.
create index clients_by_name on clients (folded_name);
create index clients_by_last_name on clients (folded_last_name) where folded_last_name is not null;
create index clients_by_contact_number on clients (contact_number);
create index clients_by_contact_number_end on clients (reverse(contact_number) text_pattern_ops);
create index clients_by_ussd_phone_end on clients (reverse(ussd_phone_number) text_pattern_ops) where ussd_phone_number is not null;

create table accounts (
  account_id     text collate "C" primary key,
  client_id      text collate "C" not null references clients,
  account_number text collate "C" not null,
  account_type   text not null check (account_type in ('Savings', 'Checking', 'Current', 'Loan')),
  currency       text not null check (currency ~ '^[A-Z]{3}$'),
  -- The newest status that the ledger has reported, by its version. The ledger's own row decides postings.
  status         text not null check (status in ('Active', 'Inactive', 'Frozen')),
  status_version int not null default 0,
  -- opening: the ledger has not replied yet. refused: it refused. Accounts in these states are never shown.
  state          text not null default 'opening' check (state in ('opening', 'open', 'refused')),
  external_id    text collate "C",
  metadata       json,
  client_metadata json,
  created_at     timestamptz not null,
  updated_at     timestamptz not null
) with (fillfactor = 90);

-- After a refused opening, its number and external_id can be given to another account.
create unique index accounts_number on accounts (account_number) where state <> 'refused';
create unique index accounts_by_external_id on accounts (external_id) where external_id is not null and state <> 'refused';
create index accounts_list on accounts (created_at, account_id) where state = 'open';
create index accounts_by_client on accounts (client_id, created_at, account_id) where state = 'open';
-- Few rows: for the number of accounts that credentials of a client open, and for the audit of a client.
create index accounts_not_open on accounts (client_id) where state <> 'open';
create index accounts_by_type on accounts (account_type, created_at, account_id) where state = 'open';
create index accounts_by_status on accounts (status, created_at, account_id) where state = 'open';
create index accounts_by_currency on accounts (currency, created_at, account_id) where state = 'open';

-- One row per change of status that the ledger made. A no-op has no row.
create table status_transitions (
  transition_id  text collate "C" primary key,
  account_id     text collate "C" not null references accounts,
  status_version int not null,
  from_status    text not null,
  to_status      text not null check (to_status <> from_status),
  reason         text,
  note           text,
  actor          text not null,
  created_at     timestamptz not null,
  constraint status_transitions_version unique (account_id, status_version)
);

create table api_keys (
  key_id       text collate "C" primary key,
  -- The first key of a chain of rotations. It identifies the caller and does not change by a rotation.
  family_id    text collate "C" not null,
  name         text not null,
  scopes       text[] not null check (cardinality(scopes) > 0),
  environment  text not null check (environment in ('live', 'test')),
  client_id    text collate "C" references clients,
  -- HMAC-SHA-256 of the whole key. The key itself is not stored.
  secret_hash  text not null unique check (secret_hash ~ '^[0-9a-f]{64}$'),
  created_at   timestamptz not null,
  created_by   text not null,
  expires_at   timestamptz not null,
  last_used_at timestamptz,
  revoked_at   timestamptz,
  rotated_from text collate "C" references api_keys,
  version      int not null default 1,
  -- webhooks was told that it has expired, if no other key of its family is left.
  expiry_told  boolean not null default false
);

create index api_keys_to_tell on api_keys (expires_at) where not expiry_told;
create index api_keys_list on api_keys (created_at, key_id);
create index api_keys_by_client on api_keys (client_id, created_at, key_id) where client_id is not null;

-- The inbox: one row per command, written in the transaction that does the work.
create table commands (
  command_id     text collate "C" primary key,
  fingerprint    text,
  -- The reply as it was sent; null while a saga is in progress.
  reply          json,
  -- The request that sent the command first. Its message may be delivered again after a crash, which is not a repeat by the
  -- caller (who would otherwise never get the secret of an API key).
  correlation_id text,
  repeats        int not null default 0, -- how often the command has come again
  created_at     timestamptz not null default clock_timestamp()
) with (fillfactor = 80);

-- Commands that became dead letters. They are undecided, and their callers may have got a 504 that names the id, so their ids are
-- not unknown. The row remains after the command has been decided; its reply then takes precedence.
create table dead_lettered_commands (
  command_id text collate "C" primary key,
  created_at timestamptz not null default clock_timestamp()
);

-- A field of the resource in a stored reply. It is null for a refusal, whose text may contain a character that Postgres cannot
-- read (NUL).
create function shown(reply json, field text) returns text language sql immutable parallel safe set search_path = pg_catalog
  return case when left(reply::text, 11) in ('{"ok":true,', '{"ok": true') then reply -> 'data' ->> field end;

-- The erasure of a client finds the replies that show the client, its accounts and API keys, and approvals.
create index commands_by_client on commands (shown(reply, 'client_id')) where shown(reply, 'client_id') is not null;
create index commands_by_approval on commands (shown(reply, 'approval_id')) where shown(reply, 'approval_id') is not null;

-- Repeats of a command whose saga is in progress, which wait for its reply. The address of the first request is in its step.
create table waiting_replies (
  command_id     text collate "C" not null,
  correlation_id text not null,
  topic          text not null,
  "partition"    int not null,
  created_at     timestamptz not null default clock_timestamp(),
  primary key (command_id, correlation_id)
);

-- Steps without a reply. The sweeper sends them again; the reply deletes them.
create table saga_steps (
  step_id         text collate "C" primary key, -- account_id, transition_id or approval_id: the correlation id of the reply
  message         text not null,
  account_id      text collate "C" not null,
  payload         json not null,                -- the data of the message
  context         json not null,                -- the MessageContext of the command that started the saga
  detail          json not null,                -- what accounts needs when the reply arrives but the message does not contain
  attempts        int not null default 1,
  next_attempt_at timestamptz not null,
  created_at      timestamptz not null default clock_timestamp()
) with (fillfactor = 70);

create index saga_steps_due on saga_steps (next_attempt_at);
-- Every opening asks whether its client is being erased; while the ledger is away, thousands of other steps can be open.
create index saga_steps_of_erasures on saga_steps (account_id) where message = 'check_erasure';

-- Requests that need the approval of a second person. The service may update only the decision, and the database itself rejects a
-- decision by the requester.
create table approvals (
  approval_id    text collate "C" primary key,
  action         text not null,
  summary        text not null,
  request        json not null,
  scopes         text[] not null, -- which the approver needs in addition to approvals:write
  command        json not null,   -- sent once it is approved
  context        json not null,   -- the MessageContext of the request
  requested_by   text not null,
  requested_at   timestamptz not null,
  expires_at     timestamptz not null,
  status         text not null default 'Waiting' check (status in ('Waiting', 'Approved', 'Rejected', 'Expired')),
  decided_by     text,
  decided_at     timestamptz,
  reason         text,
  outcome        json,
  key_claimed_at timestamptz,     -- when the secret of the key that the approval created was shown
  constraint approvals_decided check ((status in ('Approved', 'Rejected')) = (decided_by is not null) and (decided_by is null) = (decided_at is null)),
  constraint approvals_four_eyes check (decided_by <> requested_by),
  constraint approvals_outcome check (outcome is null or status = 'Approved')
) with (fillfactor = 80);

create index approvals_list on approvals (requested_at, approval_id);
create index approvals_by_status on approvals (status, requested_at, approval_id);
create index approvals_by_requester on approvals (requested_by, requested_at, approval_id);
create index approvals_waiting on approvals (requested_by, requested_at, approval_id) where status = 'Waiting';
create index approvals_due on approvals (expires_at) where status = 'Waiting';

-- Notes of staff on a client or on one of its accounts. The service may only insert and read them; the erasure of the client
-- replaces their text.
create table notes (
  note_id    text primary key,
  client_id  text not null references clients,
  account_id text references accounts,
  note       text not null,
  actor      text not null,
  created_at timestamptz not null
);

create index notes_by_client on notes (client_id, created_at, note_id);
create index notes_by_account on notes (account_id, created_at, note_id) where account_id is not null;

-- Dead letters, and the decisions about them. Their bytes stay in the topic.
create table dead_letters (
  dead_letter_id   text collate "C" primary key,
  topic            text not null, -- without the common prefix, as source_topic
  "partition"      int not null,
  "offset"         bigint not null,
  source_topic     text not null,
  source_partition int,
  source_offset    bigint,
  key              text,
  code             text,
  reason           text,
  size_bytes       int not null,
  message          text,
  request_id       text,
  -- The record's own time, because a topic that was deleted and created again repeats offsets.
  dead_at          timestamptz not null,
  state            text not null default 'open' check (state in ('open', 'redriven', 'dropped')),
  decided_by       text,
  decided_at       timestamptz,
  drop_reason      text,
  constraint dead_letters_place unique (topic, "partition", "offset", dead_at),
  constraint decided_by_someone check ((state = 'open') = (decided_by is null) and (state = 'open') = (decided_at is null))
);

create index dead_letters_list on dead_letters (dead_at, dead_letter_id);
create index dead_letters_by_topic on dead_letters (topic, dead_at, dead_letter_id);
create index dead_letters_by_state on dead_letters (state, dead_at, dead_letter_id);

-- Audit records: who did what. They are written in the transaction that does the work, and are changed only by an erasure.
create table audit (
  audit_id    text collate "C" primary key,
  created_at  timestamptz not null,
  actor       text not null,
  action      text not null,
  resource_id text,
  outcome     text not null,
  request_id  text not null,
  details     jsonb not null,
  address     text,
  salt        uuid default gen_random_uuid() -- see audit_digest
);

-- The accounts and clients that a record names: an auditor asks what was done about one of them, whatever the resource was.
create function audit_subjects(resource_id text, details jsonb) returns text[] language sql immutable set search_path = pg_catalog
  return array(select distinct found[1] from regexp_matches(coalesce(resource_id, '') || ' ' || details::text, '\m((?:acc|cli)_[0-9a-f]{32})\M', 'g') as found);

create index audit_list on audit (created_at, audit_id);
create index audit_by_actor on audit (actor, created_at, audit_id);
create index audit_by_action on audit (action, created_at, audit_id);
create index audit_by_resource on audit (resource_id, created_at, audit_id) where resource_id is not null;
create index audit_by_outcome on audit (outcome, created_at, audit_id) where outcome <> 'success';
create index audit_by_request on audit (request_id, created_at, audit_id);
create index audit_by_subject on audit using gin (audit_subjects(resource_id, details));

-- The display names with which people have signed in. They are shown beside what the people did, and are no part of it: a name can be
-- deleted at any time (docs/privacy.md).
create table staff_names (
  actor        text collate "C" primary key,
  name         text not null,
  signed_in_at timestamptz not null,
  folded       text not null -- names with the same value look alike
);
create index staff_names_alike on staff_names (folded);

-- Audit records are links of 16 chains: the hash of a link covers its record and the hash of the previous link, so that a record
-- that was changed, removed, or inserted afterwards is detected (docs/decisions/0030-audit-records-are-chained.md). A transaction
-- uses the chain of its connection, so that transactions on other connections seldom wait for it.
create table audit_chain (
  chain          int not null check (chain between 0 and 15),
  sequence       bigint not null check (sequence > 0), -- gap-free within its chain
  audit_id       text collate "C" not null,
  hash           bytea not null,
  details_digest bytea not null,
  primary key (chain, sequence)
);

-- Every function sets its search_path, so that a temporary table of a caller cannot replace a table that the function names.

create function refuse_change() returns trigger language plpgsql set search_path = accounts, pg_temp as $$
begin
  raise exception 'accounts.% is append-only: % is refused', tg_table_name, tg_op using errcode = 'restrict_violation';
end $$;

-- What is final stays final, whichever columns a role may update. The triggers run after the change, because those before it
-- would lock every row.
create function refuse_final() returns trigger language plpgsql set search_path = accounts, pg_temp as $$
begin
  raise exception 'accounts.%: % is refused, because the row is final', tg_table_name, tg_name using errcode = 'restrict_violation';
end $$;

create trigger unrevoking after update of revoked_at on api_keys for each row
  when (old.revoked_at is not null and new.revoked_at is distinct from old.revoked_at) execute function refuse_final();
create trigger extending after update of expires_at on api_keys for each row
  when (new.expires_at > old.expires_at) execute function refuse_final();
create trigger going_back after update of version on api_keys for each row
  when (new.version < old.version) execute function refuse_final();
create trigger telling_again after update of expiry_told on api_keys for each row
  when (old.expiry_told and not new.expiry_told) execute function refuse_final();
create trigger restoring after update on clients for each row
  when (old.erased_at is not null and (new.erased_at, new.first_name, new.last_name, new.company_name, new.registration_number, new.email, new.contact_number,
      new.address, new.ussd_phone_number, new.ussd_status, new.external_id, new.metadata::text, new.client_metadata::text)
    is distinct from (old.erased_at, old.first_name, old.last_name, old.company_name, old.registration_number, old.email, old.contact_number,
      old.address, old.ussd_phone_number, old.ussd_status, old.external_id, old.metadata::text, old.client_metadata::text)) execute function refuse_final();
create trigger reopening after update of state, status_version on accounts for each row
  when (old.state <> 'opening' and new.state <> old.state or new.status_version < old.status_version) execute function refuse_final();
create trigger deciding_again after update of status, decided_by, decided_at, reason on approvals for each row
  when (old.status <> 'Waiting' and ((new.status, new.decided_by, new.decided_at) is distinct from (old.status, old.decided_by, old.decided_at)
    or new.reason is distinct from old.reason and new.reason is distinct from '(erased)')) execute function refuse_final();
create trigger ending_again after update of outcome on approvals for each row
  when (old.outcome is not null and new.outcome ->> 'status' is distinct from old.outcome ->> 'status') execute function refuse_final();
create trigger claiming_again after update of key_claimed_at on approvals for each row
  when (old.key_claimed_at is not null and new.key_claimed_at is distinct from old.key_claimed_at) execute function refuse_final();
create trigger deciding_again after update of state, decided_by, decided_at, drop_reason on dead_letters for each row
  when (old.state <> 'open' and (new.state, new.decided_by, new.decided_at, new.drop_reason) is distinct from (old.state, old.decided_by, old.decided_at, old.drop_reason))
  execute function refuse_final();
create trigger forgetting after update of reply on commands for each row
  when (old.reply is not null and new.reply is null) execute function refuse_final();
create trigger deleting after delete on commands for each row when (old.reply is not null) execute function refuse_final();

-- The hash of a key changes once: when the requester of the approval that created it first reads its secret, before any use.
create function refuse_another_secret() returns trigger language plpgsql set search_path = accounts, pg_temp as $$
begin
  if old.last_used_at is null and old.revoked_at is null and exists (
    select from approvals a where a.status = 'Approved' and a.key_claimed_at is null and a.outcome -> 'data' ->> 'key_id' = new.key_id)
  then return null; end if;
  raise exception 'accounts.api_keys: the secret of % is final', new.key_id using errcode = 'restrict_violation';
end $$;

create trigger changing_the_secret after update of secret_hash on api_keys for each row
  when (new.secret_hash <> old.secret_hash) execute function refuse_another_secret();

-- The only change of an audit record: an erasure replaces its details with the erasure's own id.
create function refuse_change_but_erasure() returns trigger language plpgsql set search_path = accounts, pg_temp as $$
begin
  if to_jsonb(new) - '{details,salt}'::text[] = to_jsonb(old) - '{details,salt}'::text[] and new.salt is null
    and new.details = jsonb_build_object('erased_by', new.details ->> 'erased_by') and new.details ->> 'erased_by' is not null then
    return new;
  end if;
  raise exception 'accounts.audit is append-only: % is refused', tg_op using errcode = 'restrict_violation';
end $$;

create trigger audit_append_only before delete or truncate on audit for each statement execute function refuse_change();
create trigger audit_erased_only before update on audit for each row execute function refuse_change_but_erasure();
create trigger audit_chain_append_only before update or delete or truncate on audit_chain for each statement execute function refuse_change();
alter table audit enable always trigger audit_append_only;
alter table audit enable always trigger audit_erased_only;
alter table audit_chain enable always trigger audit_chain_append_only;

-- The chain hashes a digest of the details instead of the details, so that it can be checked after they have been erased. The
-- salt is erased with them, so that the details cannot be guessed from the digest.
create function audit_digest(salt uuid, details jsonb) returns bytea language sql immutable set search_path = pg_catalog
  return sha256(convert_to(salt::text || details::text, 'UTF8'));

-- services/accounts/audit/verify-audit.ts computes the same independently, so that a changed function is detected, too.
create function audit_hash(previous bytea, record audit, digest bytea) returns bytea language sql stable set search_path = pg_catalog
  return sha256(previous || convert_to(jsonb_build_array(
    record.audit_id, to_char(record.created_at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US'), record.actor, record.action,
    record.resource_id, record.outcome, record.request_id, encode(digest, 'hex'), record.address)::text, 'UTF8'));

-- Runs as the owner, because the service may write records but not links.
create function link_audit() returns trigger language plpgsql security definer set search_path = accounts, pg_temp as $$
declare
  own      constant int := pg_backend_pid() % 16;
  last     audit_chain;
  link     bigint := 0;
  previous bytea := '';
  digest   bytea;
  fresh    audit;
begin
  if not exists (select from new_records) then return null; end if;
  -- The lock is held until the commit. The next holder then sees this link, because it reads in a later statement.
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

create trigger audit_linked after insert on audit referencing new table as new_records for each statement execute function link_audit();
alter table audit enable always trigger audit_linked;

-- The fields of a request without texts written by a caller. A change of a client (`changes`) includes names and contacts.
create function without_texts(fields jsonb) returns jsonb language sql immutable set search_path = pg_catalog
  return (select coalesce(jsonb_object_agg(key, case
    when key in ('description', 'reference', 'reason', 'note', 'name', 'external_id', 'first_name', 'last_name', 'company_name',
      'registration_number', 'email', 'contact_number', 'address', 'ussd_phone_number') and jsonb_typeof(value) = 'string'
    then to_jsonb('(erased)'::text)
    when key in ('metadata', 'client_metadata') and jsonb_typeof(value) = 'object' then '{"erased": "(erased)"}'
    when key = 'changes' and jsonb_typeof(value) = 'object' then (
      select coalesce(jsonb_object_agg(field, case jsonb_typeof(given) when 'string' then to_jsonb('(erased)'::text)
        when 'object' then '{"erased": "(erased)"}' else given end), '{}'::jsonb)
      from jsonb_each(value) as changed (field, given))
    else value end), '{}'::jsonb) from jsonb_each(fields));

-- Erases the personal data of a client in columns that the service's role may never change, so it runs as the owner. An approval
-- that is still Waiting does not change: the request must be sent as it was made, and it expires within a day.
create function erase_records(client text, erasure text, out audit_records int, out approvals int, out kept_replies int, out status_notes int)
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
        reason = case when reason is not null then '(erased)' end,
        outcome = case when outcome -> 'data' is not null then jsonb_set(outcome::jsonb, '{data}', without_texts((outcome -> 'data')::jsonb)) else outcome::jsonb end
      where (status in ('Rejected', 'Expired') or outcome is not null) and command::text like any(named)
        and (without_texts((request -> 'body')::jsonb) <> (request -> 'body')::jsonb or reason <> '(erased)')
      returning approval_id, request
  ), replied as (
    update commands c set reply = jsonb_set(c.reply::jsonb, '{data}', (c.reply -> 'data')::jsonb || jsonb_build_object('request', e.request)
        || case when c.reply -> 'data' ->> 'reason' is null then '{}' else '{"reason": "(erased)"}' end::jsonb
        || case when c.reply -> 'data' -> 'outcome' -> 'data' is null then '{}'
             else jsonb_build_object('outcome', jsonb_set((c.reply -> 'data' -> 'outcome')::jsonb, '{data}', without_texts((c.reply -> 'data' -> 'outcome' -> 'data')::jsonb))) end)
      from erased e where shown(c.reply, 'approval_id') = e.approval_id and shown(c.reply, 'approval_id') is not null
      returning c.command_id
  )
  select (select count(*) from erased), (select count(*) from replied) into approvals, kept_replies;
  update accounts.accounts set external_id = null, metadata = null, client_metadata = null
    where client_id = client and (external_id is not null or metadata is not null or client_metadata is not null);
  update api_keys set name = '(erased)' where client_id = client and name <> '(erased)';
end $$;
revoke all on function erase_records(text, text) from public;
