-- Events have a MAC from now on. Those of an existing bank have none yet, nor do those that its relays still publish while their
-- processes are replaced: they are accepted if the broker has appended them before this time. A new bank accepts none.
alter table event_head add column unsigned_until timestamptz not null default '-infinity';
update event_head set unsigned_until = clock_timestamp() + interval '1 hour' where position > 0;
