import type { Check, Operations, Verification } from '#libs/contracts/operations.ts';
import { type FourEyes, switchedOff } from '../access/four-eyes.ts';
import type { Outcome } from './forward.ts';
import type { ReadDependencies, ReadInput } from './reads.ts';

/**
 * Reads the state of the bank. It is used during failures, so a part that does not respond is reported as such and does
 * not fail the others.
 */
export async function readOperations(
  { origin }: ReadInput,
  { forwarder, consumerLag, metrics, history, fourEyes }: ReadDependencies & { fourEyes: FourEyes },
): Promise<Operations> {
  const [ledger, accounts, webhooks, consumer_lag] = await Promise.all([
    forwarder.query('get_ledger_operations', {}, origin.requestId, origin).then(answered),
    forwarder.query('get_accounts_operations', {}, origin.requestId, origin).then(answered),
    forwarder.query('get_webhooks_operations', {}, origin.requestId, origin).then(answered),
    consumerLag().catch(() => null),
  ]);
  return {
    services: [
      { service: 'ledger', answers: ledger !== undefined, outbox: ledger?.outbox ?? null },
      { service: 'accounts', answers: accounts !== undefined, outbox: accounts?.outbox ?? null },
      { service: 'webhooks', answers: webhooks !== undefined, outbox: webhooks?.outbox ?? null },
    ],
    breakers: forwarder.breakers(),
    dead_letters_open: accounts?.dead_letters_open ?? null,
    tills_different: ledger?.tills_different ?? null,
    webhooks_failing: webhooks?.webhooks_failing ?? null,
    consumer_lag,
    last_verification: ledger?.last_verification
      ? combineChecks(ledger.last_verification, accounts?.last_audit_check)
      : null,
    four_eyes: switchedOff(fourEyes),
    requests: metrics.recent(),
    history: history.read(),
  };
}

/** Returns the data of an outcome, or undefined if there is none. */
export function answered<T>(outcome: Outcome<T>): T | undefined {
  return outcome.kind === 'done' ? outcome.data : undefined;
}

/**
 * Combines the ledger's check of the books and accounts' check of the audit, if they belong to the same
 * verification. A broken audit stays in sight until it has been checked again, although the books are checked daily. Pure.
 */
export function combineChecks(books: Check, audit: Check | null | undefined): Verification {
  const isSame = audit?.verification_id === books.verification_id && audit.state !== 'interrupted';
  if (!audit || !(isSame || audit.state === 'broken')) return { ...books, covers: ['books'] };
  const findings = [...books.findings, ...audit.findings];
  const ended_at =
    books.ended_at === null || audit.ended_at === null ? null : ([books.ended_at, audit.ended_at].sort()[1] ?? null);
  const isRunning = audit.state === 'running' || books.state === 'running';
  const state = isRunning ? 'running' : findings.length > 0 ? 'broken' : books.state;
  return { ...books, covers: ['books', 'audit'], ended_at, findings, state };
}
