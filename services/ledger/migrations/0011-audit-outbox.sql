-- Up Migration

-- Audit records on their way to accounts (audit-sender.ts): not in the outbox, whose events must not wait behind them.
create table audit_outbox (
  audit_id text primary key,
  record   text not null
);
