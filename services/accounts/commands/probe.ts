import { randomBytes } from 'node:crypto';
import { source } from '#libs/contracts/envelope.ts';
import { formatId, type IdKind } from '#libs/contracts/ids.ts';
import { type MessageData, type MessageName, messageType } from '#libs/contracts/messages.ts';
import type { Decoded } from './decode.ts';

const bits = () => randomBytes(16).toString('hex');
const newId = (kind: IdKind) => formatId(kind, bits());
const text = 'probe';

/**
 * Messages that this service can execute in this order, whatever its tables contain: with them, a process shows that it
 * works. Together they write to every table to which messages write, so that a table with a new constraint blames no
 * message.
 */
export function probingMessages(): Decoded[] {
  const [client_id, account_id, key_id] = [newId('client'), newId('account'), newId('key')];
  const [transition_id, approval_id, hash] = [newId('transition'), newId('approval'), bits() + bits()];
  const now = new Date().toISOString();
  const names = { external_id: `${text} ${bits()}`, metadata: { probe: text } };
  const command = <N extends MessageName>(name: N, data: MessageData<N>, message_id = bits()): Decoded => {
    const sent = { message_id, type: messageType(name), source: source.gateway, time: now, subject: client_id };
    const context = { ...sent, request_id: text, actor: text, fingerprint: bits(), correlation_id: bits() };
    return { kind: 'request', name, data, context, address: undefined };
  };
  const reply = (step_id: string, data: object): Decoded => ({
    kind: 'ledger_reply',
    step_id,
    body: { ok: true, data },
  });
  const client = { client_type: 'Retail', first_name: text, last_name: text, ussd_status: 'inactive' } as const;
  const contact = { email: 'probe@example.com', contact_number: '+10000000000', address: text };
  const opening = { client_id, account_id, account_type: 'Savings', currency: 'USD', initial_deposit: '1' } as const;
  const changed = { from_status: 'Active', to_status: 'Frozen', changed: true, status_version: 2, changed_at: now };
  const note = { note_id: newId('note'), client_id, note: text };
  const key = { key_id, name: text, scopes: ['accounts:read'], environment: 'test' as const, client_id };
  const place = { topic: text, partition: 0, offset: 0n, source_topic: text, source_partition: 0, source_offset: 0n };
  const letter = { key: text, code: text, reason: text, size_bytes: 0, message: text, request_id: text, dead_at: now };
  return [
    command('create_client', { client_id, client: { ...client, ...contact, ...names } }, client_id),
    command('open_account', { ...opening, ...names, status: 'Active' }, account_id),
    reply(account_id, { account_id, status: 'Active', status_version: 1, balance: '1.00' }),
    command(
      'change_account_status',
      { transition_id, account_id, status: 'Frozen', reason: 'fraud', note: text },
      transition_id,
    ),
    reply(transition_id, { account_id, ...changed, balance: '1.00' }),
    command('add_client_note', note, note.note_id),
    command('create_api_key', { ...key, expires_at: null, secret_hash: hash }, key_id),
    command('record_api_key_use', { key_id, used_at: now }),
    command('republish_api_keys', {}),
    command(
      'request_approval',
      {
        approval_id,
        action: 'erase',
        summary: text,
        request: { operation: 'erase_client', method: 'POST', path: text, body: {} },
        scopes: [],
        command: { name: 'erase_client', id: client_id, key: client_id, data: { client_id } },
      },
      approval_id,
    ),
    command('record_audit', {
      audit_id: newId('audit'),
      created_at: now,
      actor: text,
      action: text,
      resource_id: text,
      outcome: text,
      request_id: text,
      details: {},
      address: null,
    }),
    { kind: 'dead_letter', row: { dead_letter_id: newId('dead_letter'), ...place, ...letter } },
  ];
}
