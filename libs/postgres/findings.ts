import type { Queries } from './pool.ts';

/** A violated rule. */
export interface Finding {
  rule: string;
  /** The first rows that violate it. */
  rows: Record<string, unknown>[];
}

const shownRows = 20;
const timeoutMs = 3_600_000;

/**
 * Returns the violated rules. Each rule is a query for the rows that violate it, keyed by its description. Each of
 * them may take an hour, so this must be called in a transaction, whose statement_timeout it sets.
 */
export async function findBroken(client: Queries, rules: Record<string, string>): Promise<Finding[]> {
  await client.query(`set local statement_timeout = ${timeoutMs}`);
  const findings: Finding[] = [];
  for (const [rule, query] of Object.entries(rules)) {
    // The query is materialized because, with only the limit, Postgres chooses the plan that returns the first rows
    // soonest. If no row violates the rule, that plan takes quadratic time (over two minutes instead of one second for
    // 46,000 transactions).
    const text = `with broken as materialized (${query}) select * from broken limit ${shownRows}`;
    const { rows } = await client.query<Record<string, unknown>>({ text, query_timeout: timeoutMs + 10_000 });
    if (rows.length > 0) findings.push({ rule, rows });
  }
  return findings;
}
