import { randomBytes, randomInt } from 'node:crypto';
import { type MessageContext, source } from '#libs/contracts/envelope.ts';
import { formatId, type IdKind } from '#libs/contracts/ids.ts';
import { messageType } from '#libs/contracts/messages.ts';
import type { Pool } from '#libs/postgres/pool.ts';
import { batchCommand } from '../domain/batches.ts';
import type { Command, CommandName, CommandOf } from '../domain/decision.ts';
import { rehearseBatches } from './engine.ts';

const bits = () => randomBytes(16).toString('hex');
const newId = (kind: IdKind) => formatId(kind, bits());

/**
 * Shows that this process can execute commands: posts between new accounts and this writer's slots of Teller and Vault,
 * as runBatch does, and rolls back. Throws if that is not possible. The commands are of every kind, and write to every
 * table to which commands write, so that neither a broken kind nor a table with a new constraint blames a command.
 */
export function probe(pool: Pool, slot: number): Promise<void> {
  return rehearseBatches(pool, probingBatches(), slot);
}

function probingBatches(): Command[][] {
  const [account_id, hold_id, transfer_id, batch_id, till_id] = [
    newId('account'),
    newId('hold'),
    newId('transfer'),
    newId('batch'),
    newId('till'),
  ];
  const [deposit, withdrawal, reversal] = [newId('transaction'), newId('transaction'), newId('transaction')];
  const text = 'probe';
  // A person, whose postings are in more tables than those of API keys. No other has a till open at the same time.
  const actor = `jwt:probe|${bits()}`;
  const [description, reference] = [text, text];
  const none = { currency: null, description: null, reference: null };
  const names = { external_id: text, metadata: { probe: text } };
  const probeContext = (name: CommandName, message_id = bits()): MessageContext => ({
    message_id,
    type: messageType(name),
    source: source.gateway,
    time: new Date().toISOString(),
    subject: account_id,
    request_id: text,
    actor,
    // Audited as the commands of staff are.
    staff: 'true',
    idempotency_key: text,
    fingerprint: bits(),
  });
  const as = <N extends CommandName>(name: N, data: CommandOf<N>['data'], id?: string) =>
    ({ name, data, context: probeContext(name, id) }) as CommandOf<N>;
  const opening = {
    client_id: newId('client'),
    account_type: 'Savings',
    currency: 'USD',
    status: 'Active',
  } as const;
  const account_number = `SAV-${String(randomInt(10 ** 10)).padStart(10, '0')}`;
  const cash = { account_id, transaction_type: 'Deposit' } as const;
  const commands: { [N in CommandName]: CommandOf<N> } = {
    open_ledger_account: as(
      'open_ledger_account',
      { account_id, account_number, ...opening, initial_deposit: '9' },
      account_id,
    ),
    create_transaction: as(
      'create_transaction',
      { ...cash, ...names, transaction_id: deposit, amount: '1', currency: 'USD', description, reference },
      deposit,
    ),
    // Refused, so that a Failed transaction is written too.
    create_transfer: as(
      'create_transfer',
      { ...none, transfer_id, from_account_id: account_id, to_account_id: account_id, amount: '1' },
      transfer_id,
    ),
    create_batch: batchCommand(
      { batch_id, mode: 'independent', items: [{ transaction: { ...cash, ...none, amount: '1' } }] },
      probeContext('create_batch', batch_id),
    ),
    place_hold: as('place_hold', { ...none, ...names, hold_id, account_id, amount: '2', expires_at: null }, hold_id),
    capture_hold: as('capture_hold', {
      ...none,
      transaction_id: withdrawal,
      hold_id,
      amount: '1',
      to_account_id: null,
      final: false,
    }),
    release_hold: as('release_hold', { hold_id }),
    set_account_limits: as('set_account_limits', { account_id, per_day_out: '9' }),
    close_day: as('close_day', { date: '2000-01-01' }),
    open_till: as('open_till', { till_id, counted: [{ currency: 'USD', amount: '1' }] }, till_id),
    close_till: as('close_till', { till_id, counted: [{ currency: 'USD', amount: '2' }], reason: text }),
    reverse_transaction: as(
      'reverse_transaction',
      { transaction_id: reversal, reverses_transaction_id: deposit, reason: text },
      reversal,
    ),
    change_ledger_account_status: as('change_ledger_account_status', {
      transition_id: newId('transition'),
      account_id,
      status: 'Frozen',
    }),
  };
  // What an earlier batch has written is changed by other statements than what is written with the change.
  const {
    capture_hold,
    close_day,
    close_till,
    release_hold,
    reverse_transaction,
    change_ledger_account_status,
    ...first
  } = commands;
  return [
    Object.values(first),
    [capture_hold, close_day, close_till, release_hold, reverse_transaction, change_ledger_account_status],
  ];
}
