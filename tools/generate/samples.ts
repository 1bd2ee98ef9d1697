import { type IdKind, idPrefix } from '#libs/contracts/ids.ts';
import { example } from '#libs/contracts/subject.ts';

/**
 * Makes the examples of the generated documents from schemas: a value for every required field, by its name. What an
 * endpoint or event says of an example (`answers`, `requests`, `example`) is used instead, and adds optional fields.
 */

export type Schema = Record<string, unknown>;

const hash = 'ab'.repeat(32);
const uuid = '0195f0c2-a1b2-7c3d-8e4f-5a6b7c8d9e0f';
const kinds = Object.keys(idPrefix) as IdKind[];

/** By the name of the field. Money is a number where the schema says so. Other fields have the first value that is allowed. */
const values: Record<string, unknown> = {
  ...Object.fromEntries(kinds.map((kind) => [`${kind}_id`, `${idPrefix[kind]}_${example.bits()}`])),
  ...Object.fromEntries(Object.entries(example.ids).map(([kind, id]) => [`${kind}_id`, id])),
  from_account_id: example.ids.account,
  to_account_id: example.ids.otherAccount,
  reverses_transfer_id: example.ids.transfer,
  entry_id: `ent_${example.bits()}-1`,
  family_id: example.ids.key,
  session_id: `ses_${example.bits()}`,
  id: uuid,
  ce_id: uuid,
  event_id: uuid,
  amount: '25.00',
  balance: '125.50',
  available_balance: '85.50',
  captured_amount: '0.00',
  balance_after: '125.50',
  opening_balance: '100.50',
  closing_balance: '125.50',
  debit_total: '0.00',
  credit_total: '25.00',
  money_in: '25.00',
  money_out: '0.00',
  transferred: '0.00',
  currency: 'USD',
  account_number: example.accountNumber,
  account_type: 'Savings',
  transaction_type: 'Deposit',
  direction: 'credit',
  side: 'CR',
  status: 'Completed',
  effective_date: '2026-01-02',
  date: '2026-01-01',
  closed_by: example.actor,
  opening: '100.50',
  debits: '0.00',
  credits: '25.00',
  closing: '125.50',
  sum: '25.00',
  accounts_sha256: hash,
  previous_hash: '0'.repeat(64),
  description: 'Rent',
  reference: 'R-1',
  reason: 'posted twice',
  note: 'Prefers to be called in the afternoon',
  first_name: 'Ada',
  last_name: 'Lovelace',
  company_name: 'Analytical Engines',
  registration_number: 'C-1842',
  email: 'ada@example.com',
  contact_number: '+254700000001',
  address: '12 St James Square',
  ussd_phone_number: '+254700000001',
  actor: example.actor,
  created_by: example.actor,
  requested_by: 'jwt:https://issuer.example|officer',
  name: 'reporting',
  scopes: ['accounts:read', 'transactions:read'],
  secret_hash: hash,
  hash,
  expires_at: '2026-01-03T03:04:05.678Z',
  from: '2026-01-01T00:00:00.000Z',
  to: '2026-02-01T00:00:00.000Z',
  counted_from: '2026-01-01T00:00:00.000Z',
  url: 'https://receiver.example/bank',
  event_types: ['transaction.*'],
  event_type: 'corebanking.transaction.completed.v1',
  type: 'corebanking.transaction.completed.v1',
  action: 'change_account_status',
  outcome: 'success',
  operation: 'reverse_transaction',
  summary: `Reverse transaction ${example.ids.transaction} of 25.00 USD on account ${example.ids.account}`,
  method: 'POST',
  path: `/transactions/${example.ids.transaction}/reversal`,
  body: { reason: 'posted twice' },
  group: 'ledger',
  topic: 'ledger.commands',
  source_topic: 'ledger.commands',
};

/** Fields that have a value although they can be null. */
const filled = ['description', 'reference', 'currency', 'address', 'ussd_phone_number', 'from', 'to'];

/** Returns an example of the schema. `said`: what it has instead, at any depth; items of a list one by one. */
export function sample(schema: Schema, said?: unknown, name = ''): unknown {
  const { anyOf, oneOf, type, properties, items } = schema as {
    anyOf?: Schema[];
    oneOf?: Schema[];
    type?: string | string[];
    properties?: Record<string, Schema>;
    items?: Schema;
  };
  const options = anyOf ?? oneOf ?? (Array.isArray(type) ? type.map((one) => ({ ...schema, type: one })) : undefined);
  if (options && said === undefined && !filled.includes(name) && options.some(({ type }) => type === 'null'))
    return null;
  if (options) return sample(options.find((option) => isMeant(option, said)) ?? {}, said, name);
  if (Array.isArray(said) && items) return said.map((item) => sample(items, item, name));
  if (properties && (said === undefined || isObject(said))) return sampleObject(schema, properties, said ?? {});
  return said ?? (said === null ? null : sampleValue(schema, name));
}

function sampleObject(schema: Schema, properties: Record<string, Schema>, said: Schema): Schema {
  const unknown = Object.keys(said).filter((name) => properties[name] === undefined);
  if (unknown.length > 0) throw new TypeError(`an example has ${unknown.join(', ')}, which its schema lacks`);
  const required = (schema['required'] ?? []) as string[];
  return Object.fromEntries(
    Object.entries(properties)
      .filter(([name]) => required.includes(name) || said[name] !== undefined)
      .map(([name, property]) => [name, sample(property, said[name], name)]),
  );
}

function sampleValue(schema: Schema, name: string): unknown {
  const { type, items, minimum, format } = schema;
  const allowed = allowedValues(schema);
  const value = type === 'number' && values[name] !== undefined ? Number(values[name]) : values[name];
  if (allowed !== undefined) return allowed.includes(value) ? value : allowed[0];
  if (
    value !== undefined &&
    (format !== 'date' || String(value).length === 10) &&
    type === (Array.isArray(value) ? 'array' : typeof value)
  )
    return value;
  if (format === 'date') return '2026-01-02';
  if (type === 'array') return [sample(items as Schema, undefined, name)];
  if (type === 'integer' || type === 'number') return Math.max(Number(minimum ?? 0), 1);
  if (type === 'boolean') return true;
  if (type === 'object') return {};
  return format === 'date-time' || /_at$|^(at|time|start|since|until)$/.test(name) ? example.time : name;
}

function isObject(value: unknown): value is Schema {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** Reports whether what is said of an example fits this option of a union. */
function isMeant({ type, properties }: Schema, said: unknown): boolean {
  if (said === null || type === 'null') return said === null && type === 'null';
  if (!isObject(said)) return true;
  const known = (properties ?? {}) as Record<string, Schema>;
  return Object.entries(said).every(([name, value]) => {
    const [only, ...more] = known[name] === undefined ? [null] : (allowedValues(known[name]) ?? [value]);
    return only === value || more.length > 0;
  });
}

function allowedValues({ const: constant, enum: closed, 'x-extensible-enum': open }: Schema): unknown[] | undefined {
  return constant === undefined ? ((closed ?? open) as unknown[] | undefined) : [constant];
}
