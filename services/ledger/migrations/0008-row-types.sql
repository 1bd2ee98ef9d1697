-- Up Migration

-- The rows that a batch writes are one parameter per table: Postgres set up and filled a function scan for each column before, 5 % of
-- what it did. The types are their own, so that a column that a table gets later changes nothing for a process that does not know it.
create type written_transaction as (
  transaction_id uuid, operation_id uuid, account_id uuid, counterparty_account_id uuid, transaction_type text, direction text, amount_minor bigint, amount_text text,
  currency text, description text, reference text, status text, failure_code text, failure_message text, reverses_transaction_id uuid, idempotency_key text,
  fingerprint uuid, actor text, request_id text, created_at timestamptz
);
create type written_entry as (
  account_id uuid, sequence bigint, operation_id uuid, transaction_id uuid, direction text, side text, amount_minor bigint, currency text, balance_after_minor bigint, created_at timestamptz
);
create type moved_account as (account_id uuid, balance_minor bigint, last_sequence bigint);
