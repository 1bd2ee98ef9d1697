-- Up Migration

-- Postings that were dead-lettered. Nothing is decided about them yet, and their ids must not be called unknown:
-- their callers may have been told 202. A row stays when the command is redriven and decided: its record is then what counts.
create table dead_lettered_commands (
  command_id uuid primary key,
  created_at timestamptz not null default clock_timestamp()
);
