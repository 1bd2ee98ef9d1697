-- Up Migration

-- Events are read again from their topics, which keep them for EVENTS_RETENTION_DAYS (docs/decisions/0023), and the relay alone
-- publishes them.
drop table replays, outbox_purged, outbox_events;
