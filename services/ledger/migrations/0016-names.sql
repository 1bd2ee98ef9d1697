-- Up Migration

-- What callers call a transaction and note on it. Null where nothing was given: then a row is as long as before, and in no further index.
-- metadata is json, not jsonb: a repeat is answered as the first request was, to the order of its keys.
alter table transactions add column external_id text, add column metadata json;
create index transactions_by_external_id on transactions (external_id, created_at, transaction_id) where external_id is not null;

-- The rows that a batch writes. written_transaction stays for processes of the version before.
create type transaction_row as (
  transaction_id uuid, operation_id uuid, account_id uuid, counterparty_account_id uuid, transaction_type text, direction text, amount_minor bigint, amount_text text,
  currency text, description text, reference text, status text, failure_code text, failure_message text, reverses_transaction_id uuid, idempotency_key text,
  fingerprint uuid, actor text, request_id text, created_at timestamptz, external_id text, metadata json
);

create or replace view v_transactions as
  select 'txn_' || replace(t.transaction_id::text, '-', '') as transaction_id, 'opr_' || replace(t.operation_id::text, '-', '') as operation_id,
    'acc_' || replace(t.account_id::text, '-', '') as account_id, 'acc_' || replace(t.counterparty_account_id::text, '-', '') as counterparty_account_id,
    case when t.transaction_type in ('Transfer', 'Loan Payment') and t.reverses_transaction_id is null
      then 'trf_' || replace(t.operation_id::text, '-', '') end as transfer_id,
    t.transaction_type, t.direction, t.amount_minor, t.currency, t.description, t.reference, t.status, t.failure_code,
    'txn_' || replace(t.reverses_transaction_id::text, '-', '') as reverses_transaction_id,
    t.idempotency_key, t.actor, t.request_id, t.created_at, t.external_id, t.metadata
  from transactions t
  where t.failure_code is null or t.failure_code not in ('account_not_found', 'invalid_amount_precision', 'amount_too_large');
