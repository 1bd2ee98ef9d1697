import { type Finding, findBroken } from '#libs/postgres/findings.ts';
import type { Pool } from '#libs/postgres/pool.ts';
import { transaction } from '#libs/postgres/transaction.ts';
import type { Verified } from '#libs/service/verifications.ts';
import { insertAudits } from '../audit/audit-sender.ts';

/**
 * Checks the books from entries and balances only, as an auditor would, in one snapshot while postings
 * continue. Each rule, in the words that verify-books, the API, and the dashboard show, is a query for the rows that
 * violate it.
 */
const rules: Record<string, string> = {
  'per currency, debits (DR) equal credits (CR)': `
    select currency, sum(amount_minor) filter (where side = 'DR') as dr, sum(amount_minor) filter (where side = 'CR') as cr
    from entries group by currency having sum(case side when 'DR' then amount_minor else -amount_minor end) <> 0`,
  'per operation and currency, debits (DR) equal credits (CR)': `
    select operation_id, currency, sum(case side when 'DR' then amount_minor else -amount_minor end) as difference
    from entries group by operation_id, currency having sum(case side when 'DR' then amount_minor else -amount_minor end) <> 0`,
  'each balance is the sum of its entries, and equals the last balance_after': `
    select a.account_id, a.account_number, a.balance_minor, coalesce(e.total, 0) as sum_of_entries, l.balance_after_minor as last_balance_after
    from accounts a
      left join (select account_id, sum(case direction when 'credit' then amount_minor else -amount_minor end) as total from entries group by account_id) e using (account_id)
      left join entries l on l.account_id = a.account_id and l.sequence = a.last_sequence
    where a.balance_minor <> coalesce(e.total, 0) or a.balance_minor <> coalesce(l.balance_after_minor, 0)`,
  'the debit total of each account is the sum of its DR entries': `
    select a.account_id, a.account_number, a.debits_minor, coalesce(e.total, 0) as sum_of_entries
    from accounts a left join (select account_id, sum(amount_minor) as total from entries where side = 'DR' group by account_id) e using (account_id)
    where a.debits_minor <> coalesce(e.total, 0)`,
  'sequences have no gaps, and each balance_after follows from the previous one': `
    select account_id, sequence, balance_after_minor from (
      select account_id, sequence, balance_after_minor, case direction when 'credit' then amount_minor else -amount_minor end as change,
        lag(sequence, 1, 0) over account as previous, lag(balance_after_minor, 1, 0) over account as balance_before
      from entries window account as (partition by account_id order by sequence)
    ) e where sequence <> previous + 1 or balance_after_minor <> balance_before + change`,
  'the number of entries of each account is its last sequence': `
    select a.account_id, a.account_number, a.last_sequence, coalesce(e.entries, 0) as entries
    from accounts a left join (select account_id, count(*) as entries from entries group by account_id) e using (account_id)
    where a.last_sequence <> coalesce(e.entries, 0)`,
  'each entry has an existing account, its currency, and the side of its class': `
    select e.account_id, e.sequence, e.side, e.currency from entries e left join accounts a using (account_id)
    where a.account_id is null or a.currency <> e.currency or (e.side = 'CR') <> ((a.class = 'liability') = (e.direction = 'credit'))`,
  'the balance of each Teller is zero': `
    select account_number, balance_minor from accounts where account_type = 'Teller' and balance_minor <> 0`,
  'Vault = sum of liability balances - sum of loan balances': `
    select currency, sum(balance_minor) filter (where account_type = 'Vault') as vault, sum(balance_minor) filter (where class = 'liability') as liabilities,
      sum(balance_minor) filter (where account_type = 'Loan') as loans
    from accounts group by currency
    having coalesce(sum(balance_minor) filter (where account_type = 'Vault'), 0) <>
      coalesce(sum(balance_minor) filter (where class = 'liability'), 0) - coalesce(sum(balance_minor) filter (where account_type = 'Loan'), 0)`,
  'no balance or balance_after of a customer is below zero': `
    select a.account_id, a.account_number, e.sequence, e.balance_after_minor from accounts a join entries e using (account_id)
    where a.client_id is not null and (e.balance_after_minor < 0 or a.balance_minor < 0)`,
  'each Completed transaction has one entry on its account, and other transactions have none': `
    select t.transaction_id, t.status, count(e.sequence) as entries
    from transactions t left join entries e on e.account_id = t.account_id and e.transaction_id = t.transaction_id
    group by t.transaction_id, t.status having count(e.sequence) <> case t.status when 'Completed' then 1 else 0 end`,
  'each entry has a Completed transaction': `
    select e.account_id, e.sequence, e.transaction_id from entries e
      left join transactions t on id_key(t.transaction_id) = id_key(e.transaction_id) and t.status = 'Completed'
    where t.transaction_id is null or t.operation_id <> e.operation_id`,
  'the held amount of each account is the sum of its Active holds, whose number it has': `
    select account_id, a.account_number, a.held_minor, coalesce(h.held, 0) as sum_of_holds, a.active_holds, coalesce(h.holds, 0) as number_of_holds, a.hold_expires_at, h.first_end
    from accounts a full join (
      select account_id, sum(amount_minor - captured_minor) as held, count(*) as holds, min(expires_at) as first_end from holds where status = 'Active' group by account_id
    ) h using (account_id)
    where coalesce(a.held_minor, 0) <> coalesce(h.held, 0) or coalesce(a.active_holds, 0) <> coalesce(h.holds, 0) or a.hold_expires_at > h.first_end`,
  'the captured amount of each hold is the sum of the operations that capture it': `
    select coalesce(h.hold_id, t.hold_id) as hold_id, h.captured_minor, coalesce(t.total, 0) as sum_of_operations
    from holds h full join (
      select hold_id, account_id, currency, sum(amount_minor) as total from transactions
      where hold_id is not null and status = 'Completed' and transaction_id = operation_id group by hold_id, account_id, currency
    ) t on t.hold_id = h.hold_id and t.account_id = h.account_id and t.currency = h.currency
    where h.hold_id is null or h.captured_minor <> coalesce(t.total, 0)`,
  'an atomic batch is posted completely or not at all, and no batch has more transactions than items': `
    select batch_id, b.mode, b.item_count as items, t.operations, t.failed
    from (
      select (outcome->>'ok')::boolean as ok, batch_id, mode, item_count from batches join commands using (command_id)
    ) b full join (
      select batch_id, count(distinct operation_id) as operations, count(*) filter (where status = 'Failed') as failed
      from transactions where batch_id is not null group by 1
    ) t using (batch_id)
    where b.mode is null or coalesce(t.operations, 0) > b.item_count
      or (b.mode = 'atomic' and (t.failed > 0 or coalesce(t.operations, 0) <> case when b.ok then b.item_count else 0 end))`,
};

export const bookRules = Object.keys(rules);

/** The verification of the books (libs/service/verifications.ts). */
export const ofBooks: Verified = {
  action: 'verify_books',
  check: verifyBooks,
  audit: insertAudits,
  broken: 'the books do not balance',
};

/** Returns every violated rule. */
export function verifyBooks(pool: Pool): Promise<Finding[]> {
  return transaction(pool, (client) => findBroken(client, rules), 'read only snapshot');
}
