-- Results of checks of a service's data, one row per check (verifications.ts). `migrate` runs this file in the schemas that have
-- the table, before their own migrations. A change of it is a new migration of each of them.
create table verifications (
  verification_id uuid primary key,
  requested_by    text not null,
  started_at      timestamptz not null default clock_timestamp(),
  ended_at        timestamptz,
  -- The violated rules, with rows that violate them; null while the check runs, and if it was interrupted.
  findings        json,
  constraint found_at_the_end check (findings is null or ended_at is not null)
);

create index verifications_by_time on verifications (started_at);
