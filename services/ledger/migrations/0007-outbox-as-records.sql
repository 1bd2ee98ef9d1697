-- Up Migration

-- The messages of a batch are kept as the bytes of their records (docs/decisions/0022); what is here already is read in its old form.
-- The name is another one, so that a process of a version before this one cannot write any more, and does nothing until it is replaced.
alter table outbox rename column messages to records;
alter table outbox rename constraint outbox_messages_not_null to outbox_records_not_null;
