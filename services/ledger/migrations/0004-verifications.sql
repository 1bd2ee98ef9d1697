-- Up Migration

-- What checks of the books found, run on demand: a row each.
create table verifications (
  verification_id uuid primary key,
  requested_by    text not null,
  started_at      timestamptz not null default clock_timestamp(),
  ended_at        timestamptz,
  -- The rules that do not hold, with rows that break them; null while it runs, and where it did not come to an end.
  findings        json,
  constraint found_at_the_end check (findings is null or ended_at is not null)
);

create index verifications_by_time on verifications (started_at);
