-- The same transfer without HTTP, for pgbench -M prepared. Its ids are derived from numbers, so it needs no lookup table.
\set a random(1, :accounts)
\set b 1 + (:a + random(0, :accounts - 2)) % :accounts
\set minor random(1, 50)
\set operation random(1, 9000000000000000000)
BEGIN;
INSERT INTO transactions SELECT gen_random_uuid(), lpad(:operation::text, 32, '0')::uuid, l.account_id, l.other_id, 'Transfer', l.direction, :minor::bigint, 'USD', null, 'Completed' FROM (VALUES (lpad(:a::text, 32, '0')::uuid, lpad(:b::text, 32, '0')::uuid, 'debit'), (lpad(:b::text, 32, '0')::uuid, lpad(:a::text, 32, '0')::uuid, 'credit')) l (account_id, other_id, direction);
SELECT account_id, balance_minor, last_sequence, status, currency FROM accounts WHERE account_id IN (lpad(:a::text, 32, '0')::uuid, lpad(:b::text, 32, '0')::uuid) ORDER BY account_id FOR NO KEY UPDATE;
UPDATE accounts SET balance_minor = balance_minor - :minor, last_sequence = last_sequence + 1 WHERE account_id = lpad(:a::text, 32, '0')::uuid;
UPDATE accounts SET balance_minor = balance_minor + :minor, last_sequence = last_sequence + 1 WHERE account_id = lpad(:b::text, 32, '0')::uuid;
INSERT INTO entries SELECT account_id, last_sequence, lpad(:operation::text, 32, '0')::uuid, CASE WHEN account_id = lpad(:a::text, 32, '0')::uuid THEN 'debit' ELSE 'credit' END, :minor::bigint, balance_minor FROM accounts WHERE account_id IN (lpad(:a::text, 32, '0')::uuid, lpad(:b::text, 32, '0')::uuid);
INSERT INTO outbox (topic, key, payload) VALUES ('transfers', lpad(:a::text, 32, '0'), json_build_object('from_account_id', :a::bigint, 'to_account_id', :b::bigint, 'amount_minor', :minor::bigint, 'currency', 'USD', 'status', 'Completed')::text);
COMMIT;
