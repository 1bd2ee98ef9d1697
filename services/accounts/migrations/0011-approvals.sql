-- Up Migration

-- What waits for a second person. What was asked for never changes (the service may update only what is decided about it), and
-- nobody decides about a request of their own: the database itself refuses it.
create table approvals (
  approval_id    text collate "C" primary key,
  action         text not null,
  summary        text not null,
  request        json not null,
  changes        json not null,
  scopes         text[] not null, -- whoever decides needs these besides approvals:write
  command        json not null,   -- what is sent once it is approved
  context        json not null,   -- the MessageContext of the request
  requested_by   text not null,
  requested_at   timestamptz not null,
  expires_at     timestamptz not null,
  status         text not null default 'Waiting' check (status in ('Waiting', 'Approved', 'Rejected', 'Expired')),
  decided_by     text,
  decided_at     timestamptz,
  reason         text,
  outcome        json,
  key_claimed_at timestamptz,     -- from then on the key that it made has a secret, which has been shown
  constraint approvals_decided check ((status in ('Approved', 'Rejected')) = (decided_by is not null) and (decided_by is null) = (decided_at is null)),
  constraint approvals_four_eyes check (decided_by <> requested_by),
  constraint approvals_outcome check (outcome is null or status = 'Approved')
) with (fillfactor = 80);

create index approvals_list on approvals (requested_at, approval_id);
create index approvals_by_status on approvals (status, requested_at, approval_id);
create index approvals_by_requester on approvals (requested_by, requested_at, approval_id);
create index approvals_due on approvals (expires_at) where status = 'Waiting';

-- Steps are the approved commands too, under the approval's id.
alter table saga_steps drop constraint saga_steps_message_check;
