-- Up Migration

-- Keys are random texts that are only ever compared for equality: a hash index is a third of the size, and an insert
-- into it touches one page. A few rows per key need no order from the index.
drop index transactions_by_idempotency_key;
create index transactions_by_idempotency_key on transactions using hash (idempotency_key) where idempotency_key is not null;
