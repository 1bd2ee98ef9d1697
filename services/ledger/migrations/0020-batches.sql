-- Up Migration

-- The batch that a transaction was an item of; null for all others, whose rows are as long as before. No index: what a batch has made
-- is found by its items' ids, which follow from the batch's.
alter table transactions add column batch_id uuid;

-- The rows that a batch of commands writes. transaction_row is of this release: processes of the one before write written_transaction.
alter type transaction_row add attribute batch_id uuid;

create or replace view v_transactions as
  select 'txn_' || replace(t.transaction_id::text, '-', '') as transaction_id, 'opr_' || replace(t.operation_id::text, '-', '') as operation_id,
    'acc_' || replace(t.account_id::text, '-', '') as account_id, 'acc_' || replace(t.counterparty_account_id::text, '-', '') as counterparty_account_id,
    case when t.transaction_type in ('Transfer', 'Loan Payment') and t.reverses_transaction_id is null
      then 'trf_' || replace(t.operation_id::text, '-', '') end as transfer_id,
    t.transaction_type, t.direction, t.amount_minor, t.currency, t.description, t.reference, t.status, t.failure_code,
    'txn_' || replace(t.reverses_transaction_id::text, '-', '') as reverses_transaction_id,
    t.idempotency_key, t.actor, t.request_id, t.created_at, t.external_id, t.metadata, 'hld_' || replace(t.hold_id::text, '-', '') as hold_id, 'bat_' || replace(t.batch_id::text, '-', '') as batch_id
  from transactions t
  where t.failure_code is null or t.failure_code not in ('account_not_found', 'invalid_amount_precision', 'amount_too_large');
