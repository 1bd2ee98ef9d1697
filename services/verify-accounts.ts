import { type Finding, findBroken } from '#libs/postgres/findings.ts';
import type { Pool, Queries } from '#libs/postgres/pool.ts';
import { transaction } from '#libs/postgres/transaction.ts';

/** The columns in which accounts and the ledger agree, and those that a reply shows. They never change. */
const master = (alias: string) => `${alias}.account_number, ${alias}.account_type, ${alias}.currency`;
const shown = ['account_number', 'account_type', 'currency', 'client_id']
  .map((name) => `c.data ->> '${name}'`)
  .join(', ');
/** Replies are parsed as a whole once, which offset ensures, and only successes: a refusal's text may contain NUL. */
const isOk = `left(reply::text, 11) in ('{"ok":true,', '{"ok": true')`;

/** The rules that relate accounts to the ledger. Each is a query, in one snapshot of both schemas, for the rows that violate it. */
const rules: Record<string, string> = {
  'each account that is open is the same in the ledger: owner, number, type, currency, and status, and the ledger has no other': `
    select a.account_id, l.account_id as ledger_id, a.state, a.client_id, a.account_number, l.account_number as ledger_number,
      a.status, a.status_version, l.status as ledger_status, l.status_version as ledger_status_version
    from accounts.accounts a
      full join (select *, 'cli_' || replace(client_id::text, '-', '') as owner from ledger.accounts where client_id is not null) l
        on l.account_id = substr(a.account_id, 5)::uuid
    where a.account_id is null or (l.account_id is null and a.state = 'open') or (a.state = 'refused' and l.account_id is not null)
      or (a.client_id, ${master('a')}) <> (l.owner, ${master('l')})
      or a.status_version > l.status_version or (a.status_version = l.status_version and a.status <> l.status)
      -- The ledger is ahead only while its reply is awaited.
      or (a.status_version < l.status_version and a.account_id not in (select account_id from accounts.saga_steps))`,
  'each kept reply to a caller that shows an account or a client is what it is, and an opening that was refused is not open': `
    select c.command_id, a.account_id, a.state, t.amount_minor, c.data
    from (
      select command_id, ${isOk} as ok, case when ${isOk} then reply::jsonb -> 'data' end as data from accounts.commands where reply is not null offset 0
    ) c left join accounts.accounts a on a.account_id = case when c.ok then c.data ->> 'account_id' else c.command_id end
      left join accounts.clients k on k.client_id = c.data ->> 'client_id'
      left join ledger.transactions t on c.command_id = a.account_id and t.account_id = substr(a.account_id, 5)::uuid
        and ledger.id_key(t.transaction_id) = ledger.id_key(substr(c.data ->> 'account_id', 5)::uuid)
    where case when not c.ok then a.state <> 'refused'
      when c.data ? 'account_number' then a.account_id is null or (${shown}) <> (${master('a')}, a.client_id)
        or (c.command_id = a.account_id and replace(c.data ->> 'balance', '.', '')::numeric <> coalesce(t.amount_minor, 0))
      when c.data ? 'client_type' then k.client_id is null or k.client_type <> c.data ->> 'client_type' end`,
};

export const accountRules = Object.keys(rules);

/** Returns every violated rule. The pool's role must be able to read the schemas of accounts and the ledger. */
export function verifyAccounts(pool: Pool): Promise<Finding[]> {
  return transaction(pool, checkAccounts, 'read only snapshot');
}

export function checkAccounts(client: Queries): Promise<Finding[]> {
  return findBroken(client, rules);
}
