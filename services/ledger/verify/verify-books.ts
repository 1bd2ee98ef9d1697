import { type Finding, findBroken } from '#libs/postgres/findings.ts';
import type { Pool, Queries } from '#libs/postgres/pool.ts';
import { transaction } from '#libs/postgres/transaction.ts';
import type { Verified } from '#libs/service/verifications.ts';
import { insertAudits } from '../audit/audit-sender.ts';
import type { CommandName } from '../domain/decision.ts';
import { isOverCounterSql } from '../domain/records.ts';
import { minorSql } from '../rows.ts';

/** The entries of each type of operation and of its reversal (contract: double-entry-4), as SQL rows, in the order of their names. */
function shapes(): string {
  const cash = (vault: string, customer: string) =>
    ['Teller credit', 'Teller debit', `Vault ${vault}`, customer].sort().join(', ');
  const rows: [type: string, isReversal: boolean, entries: string][] = [
    ['Deposit', false, cash('credit', 'customer credit')],
    ['Deposit', true, cash('debit', 'customer debit')],
    ['Withdrawal', false, cash('debit', 'customer debit')],
    ['Withdrawal', true, cash('credit', 'customer credit')],
    // A loan that is paid out.
    ['Withdrawal', false, cash('debit', 'Loan credit')],
    ['Withdrawal', true, cash('credit', 'Loan debit')],
    ['Transfer', false, 'customer credit, customer debit'],
    ['Transfer', true, 'customer credit, customer debit'],
    ['Loan Payment', false, 'Loan debit, customer debit'],
    ['Loan Payment', true, 'Loan credit, customer credit'],
  ];
  return rows.map(([type, isReversal, entries]) => `('${type}', ${isReversal}, '${entries}')`).join(', ');
}

/** SQL for the id of the second transaction of a transfer (siblingBits in libs/contracts/ids.ts). */
const sibling = (id: string) =>
  `encode(set_byte(uuid_send(${id}), 0, get_byte(uuid_send(${id}), 0) # 128), 'hex')::uuid`;

/** The columns in which both transactions of a transfer agree, and those that a reversal has from its original. */
const agreeing = (alias: string) =>
  ['transaction_type', 'status', 'amount_minor', 'currency', 'hold_id', 'batch_id', 'created_at', 'effective_date']
    .map((name) => `${alias}.${name}`)
    .concat(`${alias}.reverses_transaction_id is null`)
    .join(', ');
const same = (alias: string) =>
  ['account_id', 'counterparty_account_id', 'transaction_type', 'amount_minor', 'currency']
    .map((name) => `${alias}.${name}`)
    .join(', ');

/**
 * SQL for the kept replies to these commands: data is the transaction, transfer, hold, or account, and hold the hold of a
 * capture. A refusal is not parsed, because its text may contain NUL. Without offset, each use of data would parse it.
 */
function keptReplies(...names: CommandName[]): string {
  const ok = `left(outcome::text, 11) in ('{"ok":true,', '{"ok": true')`;
  return `select command_id, name, ok, reply, coalesce(data -> 'transaction', data -> 'transfer', data) as data, data -> 'hold' as hold from (
        select command_id, name, ${ok} as ok, outcome::text as reply, case when ${ok} then outcome::jsonb -> 'data' end as data
        from commands where name in (${names.map((name) => `'${name}'`).join(', ')}) offset 0
      ) c`;
}

const shownId = (prefix: string, uuid: string) => `'${prefix}_' || replace(${uuid}::text, '-', '')`;

/**
 * Checks the books by the tables alone, as an auditor would, in one snapshot while postings
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
  'sequences have no gaps, posting times do not decrease, and each balance_after follows from the previous one': `
    select account_id, sequence, balance_after_minor, created_at from (
      select account_id, sequence, balance_after_minor, created_at, lag(created_at) over account as posted_before, case direction when 'credit' then amount_minor else -amount_minor end as change,
        lag(sequence, 1, 0) over account as previous, lag(balance_after_minor, 1, 0) over account as balance_before
      from entries window account as (partition by account_id order by sequence)
    ) e where sequence <> previous + 1 or created_at < posted_before or balance_after_minor <> balance_before + change`,
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
  'the entry of each Completed transaction on its account has its amount, currency, and direction': `
    select t.transaction_id, t.transaction_type, t.amount_minor, t.currency, t.direction,
      e.amount_minor as entry_amount_minor, e.currency as entry_currency, e.direction as entry_direction
    from transactions t join entries e on e.account_id = t.account_id and e.transaction_id = t.transaction_id
    where t.status = 'Completed' and (e.amount_minor <> t.amount_minor or e.currency <> t.currency or e.direction <> t.direction)`,
  'the entries of each operation are those of its type, of one amount, one currency, and one Teller': `
    select o.operation_id, t.transaction_type, t.reverses_transaction_id, o.entries, o.amounts
    from (
      select operation_id, string_agg(kind || ' ' || direction, ', ' order by kind, direction) as entries,
        array[min(amount_minor), max(amount_minor)] as amounts, min(currency) <> max(currency) as mixed,
        min(account_id::text) filter (where kind = 'Teller') <> max(account_id::text) filter (where kind = 'Teller') as tellers,
        max(sequence) filter (where kind = 'Loan') as loan_sequence
      from (
        select e.*, case when a.account_type in ('Teller', 'Vault', 'Loan') then a.account_type else 'customer' end as kind
        from entries e join accounts a using (account_id)
      ) e group by operation_id
    ) o join transactions t on t.transaction_id = o.operation_id and t.status = 'Completed'
    where o.amounts[1] <> o.amounts[2] or o.mixed or o.tellers or (t.transaction_type, t.reverses_transaction_id is not null, o.entries) not in (${shapes()})
      -- Only its opening pays a Loan out.
      or (t.transaction_type = 'Withdrawal' and t.reverses_transaction_id is null and o.loan_sequence > 1)`,
  'each operation has the transactions of its type: one, or the two of a transfer, which agree': `
    select operation_id, p.transaction_id, p.transaction_type, p.status, p.direction, s.transaction_id as second_transaction_id, s.direction as second_direction
    from (select * from transactions where transaction_id = operation_id) p
      full join (select * from transactions where transaction_id <> operation_id) s using (operation_id)
    where p.transaction_id is null
      or (s.transaction_id is not null) <> (p.status = 'Completed' and p.transaction_type in ('Transfer', 'Loan Payment'))
      or (p.reverses_transaction_id is null and p.direction <> case p.transaction_type when 'Deposit' then 'credit' when 'Withdrawal' then p.direction else 'debit' end)
      or (p.status = 'Failed' and p.reverses_transaction_id is null and p.transaction_type = 'Withdrawal' and p.direction <> 'debit')
      or (s.reverses_transaction_id is null and s.direction <> case s.transaction_type when 'Transfer' then 'credit' else 'debit' end)
      or s.transaction_id <> ${sibling('operation_id')}
      or (s.account_id, s.counterparty_account_id, ${agreeing('s')}) is distinct from (p.counterparty_account_id, p.account_id, ${agreeing('p')}) and s.transaction_id is not null`,
  'each reversal turns one Completed transaction, or both of a transfer, and none is turned twice': `
    select transaction_id, account_id, amount_minor, direction, reverses_transaction_id, original_account_id, original_amount_minor, original_direction, times, operations
    from (
      select r.*, o.account_id as original_account_id, o.amount_minor as original_amount_minor, o.direction as original_direction,
        o.status = 'Completed' and o.reverses_transaction_id is null and o.direction <> r.direction
          and (${same('o')}) is not distinct from (${same('r')}) as fits,
        count(*) filter (where r.status = 'Completed') over (partition by r.reverses_transaction_id) as times,
        array[min(o.operation_id::text) over own, max(o.operation_id::text) over own] as operations
      from transactions r left join transactions o on o.transaction_id = r.reverses_transaction_id
      where r.reverses_transaction_id is not null window own as (partition by r.operation_id)
    ) r where fits is not true or times > 1 or operations[1] <> operations[2]`,
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
  'the kept reply to each reversal and capture is what its transaction is, and what was refused is not Completed': `
    select c.command_id, c.name, t.transaction_id, t.status, t.amount_minor, c.reply
    from (${keptReplies('reverse_transaction', 'capture_hold')}) c
      left join transactions t on id_key(t.transaction_id) = id_key(c.command_id) left join holds h on h.hold_id = t.hold_id
    where case when c.ok then t.status is distinct from 'Completed'
        or ${minorSql("c.data ->> 'amount'")} is distinct from t.amount_minor or c.data ->> 'currency' <> t.currency or c.data ->> 'status' <> t.status
        or ${shownId('acc', 't.account_id')} <> coalesce(c.data ->> 'account_id', c.data ->> 'from_account_id')
        or ${shownId('acc', 't.counterparty_account_id')} <> coalesce(c.data ->> 'counterparty_account_id', c.data ->> 'to_account_id')
        or c.data ->> 'direction' <> t.direction or c.data ->> 'transaction_type' <> t.transaction_type
        or c.data ->> 'reverses_transaction_id' <> ${shownId('txn', 't.reverses_transaction_id')}
        or (c.hold is not null and (h.hold_id is null or c.hold ->> 'hold_id' <> ${shownId('hld', 'h.hold_id')} or ${minorSql("c.hold ->> 'captured_amount'")} > h.captured_minor
          or c.hold ->> 'status' not in ('Active', h.status)))
      else t.status = 'Completed' or position('"' || t.failure_code || '"' in c.reply) = 0 end`,
  'the kept reply to each hold that was placed or released is what the hold is, and what was refused is not there': `
    select c.command_id, c.name, h.hold_id, h.status, h.amount_minor, h.captured_minor, c.data
    from (${keptReplies('place_hold', 'release_hold')}) c
      left join holds h on id_key(h.hold_id) = id_key(case when c.ok then substr(c.data ->> 'hold_id', 5)::uuid when c.name = 'place_hold' then c.command_id end)
    where case when c.ok then c.data ->> 'hold_id' is distinct from ${shownId('hld', 'h.hold_id')} or ${minorSql("c.data ->> 'amount'")} <> h.amount_minor or c.data ->> 'currency' <> h.currency
        or c.data ->> 'account_id' <> ${shownId('acc', 'h.account_id')} or (c.data ->> 'expires_at')::timestamptz <> h.expires_at
        or (c.name = 'release_hold' and (h.status <> 'Released' or ${minorSql("c.data ->> 'captured_amount'")} <> h.captured_minor))
      else h.hold_id is not null end`,
  'the kept reply to each opening and change of status is what the account is, and each change of a status has one': `
    select c.command_id, c.name, a.account_id, a.status, a.status_version, c.data
    from (${keptReplies('open_ledger_account', 'change_ledger_account_status')}) c
      left join accounts a on a.account_id = case when c.ok then substr(c.data ->> 'account_id', 5)::uuid end
      left join transactions t on c.name = 'open_ledger_account' and id_key(t.transaction_id) = id_key(a.account_id) and t.account_id = a.account_id
    where c.ok and (a.account_id is null or (c.data ->> 'status_version')::int > a.status_version
      or ((c.data ->> 'status_version')::int = a.status_version and coalesce(c.data ->> 'to_status', c.data ->> 'status') <> a.status)
      or (c.name = 'open_ledger_account' and ${minorSql("c.data ->> 'balance'")} <> coalesce(t.amount_minor, 0)))
    union all
    select null, 'change_ledger_account_status', a.account_id, a.status, a.status_version, null
    from accounts a left join (
      select substr(data ->> 'account_id', 5)::uuid as account_id, count(*) as changes from (${keptReplies('change_ledger_account_status')}) c
      where ok and data ->> 'changed' = 'true' group by 1
    ) c using (account_id) where a.status_version <> 1 + coalesce(c.changes, 0)`,
  'each value date that is stored is of an entry, and of all entries and transactions of its operation': `
    select operation_id, o.account_id, o.sequence, o.days, t.effective_date
    from (
      select e.operation_id, min(d.account_id::text) as account_id, min(d.sequence) as sequence, array_agg(distinct d.effective_date::text) as days, count(*) > count(d.effective_date) as mixed
      from dated_entries d full join entries e using (account_id, sequence)
      where e.operation_id is null or e.operation_id in (select operation_id from dated_entries join entries using (account_id, sequence)) group by e.operation_id
    ) o left join transactions t using (operation_id)
    where t.operation_id is null or o.mixed or array_length(o.days, 1) > 1 or t.effective_date::text <> o.days[1]`,
  'the lines and totals of each closed day are what its entries are': `
    with valued as (
      select e.account_id, e.sequence, e.operation_id, e.side, e.amount_minor, case e.direction when 'credit' then e.amount_minor else -e.amount_minor end as change,
        coalesce(d.effective_date, case when e.created_at < c.ends_at then c.date when c.date is null then '-infinity'::date else 'infinity'::date end) as date
      from entries e left join dated_entries d using (account_id, sequence)
        left join lateral (select date, ends_at from day_closings where begins_at <= e.created_at order by begins_at desc, date desc limit 1) c on d.effective_date is null
      where exists (select from day_closings)
    ), days as (
      select account_id, date, sum(change) as sum, count(*) as count, min(sequence) as first_sequence, max(sequence) as last_sequence,
        sum(sum(change)) over (partition by account_id order by date) as closing
      from valued group by account_id, date
    ), lines as (
      select date, account_id, line::json as line from day_closing_lines
    ), totals as (
      select date, currency, class, count(*) as entry_count, count(distinct operation_id) as operation_count,
        coalesce(sum(amount_minor) filter (where side = 'DR'), 0) as debits, coalesce(sum(amount_minor) filter (where side = 'CR'), 0) as credits, sum(change) as change
      from valued join accounts using (account_id) where date in (select date from day_closings) group by date, currency, class
    ), kept as (
      select date, t.*, lag(t.closing) over (partition by t.currency, t.class order by date) as before
      from day_closings, json_to_recordset(totals) as t (currency text, class text, opening text, debits text, credits text, closing text, entry_count bigint, operation_count bigint)
    )
    select date::text, account_id::text, null as currency, line::text as kept from days full join lines using (date, account_id)
    where (date in (select date from day_closings) or (line is not null and date not in (select date from closed_days)))
      and (${minorSql("line ->> 'sum'")}, ${minorSql("line ->> 'closing'")}, ${minorSql("line ->> 'opening'")}, (line ->> 'count')::bigint, (line ->> 'first_sequence')::bigint, (line ->> 'last_sequence')::bigint)
        is distinct from (sum, closing, closing - sum, count, first_sequence, last_sequence)
    union all
    select date::text, null, currency, to_json(k)::text from totals t full join kept k using (date, currency, class)
    where (${minorSql('k.debits')}, ${minorSql('k.credits')}, ${minorSql('k.closing')} - ${minorSql('k.opening')}, k.entry_count, k.operation_count)
        is distinct from (coalesce(t.debits, 0), coalesce(t.credits, 0), coalesce(t.change, 0), coalesce(t.entry_count, 0), coalesce(t.operation_count, 0))
      or k.opening <> k.before`,
  'closed days are in order, and their hashes are a chain over their lines': `
    select date::text, previous_hash, hash from (
      select c.date, c.previous_hash, c.hash, lag(c.hash, 1, repeat('0', 64)) over (order by date) as before, lag(c.date) over (order by date) as day_before, c.accounts_sha256,
        (select encode(sha256(convert_to(coalesce(string_agg(line || E'\\n', '' order by account_id), ''), 'UTF8')), 'hex') from day_closing_lines l where l.date = c.date) as of_lines
      from day_closings c
    ) c where previous_hash <> before or accounts_sha256 <> of_lines or date <> day_before + 1
      or hash <> encode(sha256(convert_to(previous_hash || accounts_sha256, 'UTF8')), 'hex')`,
  'each posting in a till is one in cash by its person, and is in it as it was posted': `
    select p.till_id, p.transaction_id, p.direction, p.amount_minor, p.currency, t.actor, t.transaction_type, t.amount_minor as posted_minor, t.currency as posted_currency
    from till_postings p join tills using (till_id) left join transactions t on id_key(t.transaction_id) = id_key(p.transaction_id)
    where (t.actor, t.status, t.amount_minor, t.currency, t.batch_id is null) is distinct from (tills.actor, 'Completed', p.amount_minor, p.currency, true)
      or t.transaction_type not in ('Deposit', 'Withdrawal') or not ${isOverCounterSql('t')}
      or p.direction <> case when (t.transaction_type = 'Deposit') = (t.reverses_transaction_id is null) then 'in' else 'out' end`,
  'the figures of each closed till are what its postings are': `
    select till_id::text, currency, o.amount as opened_with, b.opening, b.cash_in, b.cash_out, p.taken, p.paid
    from (
      select till_id, b.* from tills cross join lateral json_to_recordset(balances)
        as b (currency text, opening text, cash_in text, cash_in_count bigint, cash_out text, cash_out_count bigint, expected text, counted text, difference text) where closed_at is not null
    ) b full join (
      select till_id, currency, coalesce(sum(amount_minor) filter (where direction = 'in'), 0) as taken, count(*) filter (where direction = 'in') as taken_count,
        coalesce(sum(amount_minor) filter (where direction = 'out'), 0) as paid, count(*) filter (where direction = 'out') as paid_count
      from till_postings join tills using (till_id) where closed_at is not null group by till_id, currency
    ) p using (till_id, currency) full join (
      select till_id, o.* from tills cross join lateral json_to_recordset(opening) as o (currency text, amount text) where closed_at is not null
    ) o using (till_id, currency)
    where ${minorSql('b.opening')} is distinct from coalesce(${minorSql('o.amount')}, 0) or (${minorSql('b.cash_in')}, b.cash_in_count, ${minorSql('b.cash_out')}, b.cash_out_count) is distinct from (coalesce(p.taken, 0), coalesce(p.taken_count, 0), coalesce(p.paid, 0), coalesce(p.paid_count, 0))
      or ${minorSql('b.expected')} <> ${minorSql('b.opening')} + ${minorSql('b.cash_in')} - ${minorSql('b.cash_out')}
      or ${minorSql('b.difference')} <> ${minorSql('b.counted')} - ${minorSql('b.expected')}`,
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
  return transaction(pool, checkBooks, 'read only snapshot');
}

export function checkBooks(client: Queries): Promise<Finding[]> {
  return findBroken(client, rules);
}
