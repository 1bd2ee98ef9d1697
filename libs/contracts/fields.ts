import { z } from 'zod';
import type { ErrorCode } from './errors.ts';
import { canonicalDecimal, isCurrency, maxMinor, NumberText, toMinor } from './money.ts';
import { accountStatus, accountType, clientType, freezeReason, keyEnvironment, transactionStatus, transactionType, ussdStatus } from './resources.ts';
import { bankScopes, scopes } from './scopes.ts';
import type { Scope } from './scopes.ts';

/**
 * Fields of requests: what callers may send, normalised on the way in. Violations carry an error code in `params`; `meta`
 * says in JSON Schema what a transform hides from the OpenAPI document (`input_default` and `input_examples`, because zod
 * drops the default and examples of what is transformed).
 */

type Context = { addIssue(issue: { code: 'custom'; params: { code: ErrorCode }; message: string }): void };

function violation(ctx: Context, code: ErrorCode, message: string): never {
  ctx.addIssue({ code: 'custom', params: { code }, message });
  return z.NEVER;
}

// C0, DEL and C1: never part of a name, an address or a text that a statement shows.
const controls = '\\u0000-\\u001f\\u007f-\\u009f';
const control = new RegExp(`[${controls}]`);
/** The rest, for patterns of JSON Schema. */
const shown = `[^${controls}]`;
/** Any text that JSON of ours takes, for patterns of JSON Schema. */
export const textWithoutNul = '^[^\\u0000]*$';

/** Text of `min`-`max` characters (code points), trimmed, without control characters, any script. */
export function text(min: number, max: number) {
  return z.string().transform((value, ctx) => {
    if (control.test(value)) return violation(ctx, 'validation_failed', 'must not contain control characters');
    const trimmed = value.trim();
    const length = [...trimmed].length;
    if (length < min || length > max) return violation(ctx, 'validation_failed', `must have ${min} to ${max} characters`);
    return trimmed;
  }).meta({ minLength: min, maxLength: max, pattern: min === 0 ? `^${shown}*$` : `^${shown}*[^\\s${controls}\\ufeff]${shown}*$` });
}

/** What `phone` takes, for JSON Schema: 7 to 15 digits behind the prefix. */
const phonePattern = '^[ -]*(\\+([ -]*[0-9]){7,15}|0[ -]*0([ -]*[0-9]){7,15}|[1-9]([ -]*[0-9]){6,14}|0[ -]*[1-9]([ -]*[0-9]){5,13})[ -]*$';

/**
 * E.164 with its plus: spaces and dashes go, a leading 00 is a plus. A missing country code cannot be guessed. A plus that
 * arrived as a blank (`?ussd_phone=+254…` unencoded) is one anyway.
 */
const phone = z.string().transform((value, ctx) => {
  const bare = value.replace(/[\s-]/g, '').replace(/^00/, '+').replace(/^\+/, '');
  if (!/^\d{7,15}$/.test(bare) || control.test(value)) return violation(ctx, 'validation_failed', 'must be a phone number of 7 to 15 digits, such as +254700000001');
  return `+${bare}`;
}).meta({ description: 'A phone number of 7 to 15 digits; spaces and dashes are dropped, a leading 00 is a plus', pattern: phonePattern, input_examples: ['+254700000001'] });

/** RFC 5321 without quoting: at most 64 characters before the @, labels of at most 63 behind it. */
const emailForm = /^(?=[^@]{1,64}@)(?!\.)(?!.*\.\.)[A-Za-z0-9_'+.-]*[A-Za-z0-9_+-]@([A-Za-z0-9]([A-Za-z0-9-]{0,61}[A-Za-z0-9])?\.)+[A-Za-z]{2,63}$/;

const email = z
  .string()
  .max(254, 'must have at most 254 characters')
  .pipe(z.email({ pattern: emailForm, error: 'must be an e-mail address' }))
  .meta({ format: 'email', pattern: emailForm.source });

export const currency = z
  .string()
  .transform((value, ctx) => (isCurrency(value) ? value : violation(ctx, 'unsupported_currency', 'must be an ISO 4217 currency code in upper case')))
  .meta({ pattern: '^[A-Z]{3}$', description: 'ISO 4217 code', input_examples: ['USD'] });

/** A JSON number's exact value as a plain decimal; only > 0, or >= 0 where `zero` allows it. */
function amount(zero: boolean) {
  return z.unknown().transform((value, ctx) => {
    if (value === undefined || value === null) return violation(ctx, 'validation_failed', 'is required');
    const decimal = value instanceof NumberText ? canonicalDecimal(value.text) : undefined;
    if (decimal === undefined) return violation(ctx, 'invalid_amount', 'must be a JSON number of at most 40 characters, its exponent at most 30');
    if (decimal.startsWith('-') || (decimal === '0' && !zero)) return violation(ctx, 'invalid_amount', zero ? 'must not be negative' : 'must be greater than 0');
    return decimal;
  }).meta({ type: 'number', ...(zero ? { minimum: 0 } : { exclusiveMinimum: 0 }), maximum: Number(maxMinor), description: 'At most the decimal places of the currency, and 10^15 - 1 minor units', input_examples: [12.5] });
}

type Body = Record<string, unknown>;

/** A rule over several fields. Applied although others are wrong too: every violation is named at once. */
function rule(code: ErrorCode, field: string, message: string | ((body: Body) => string), holds: (body: Body) => boolean) {
  const when = ({ value }: { value: unknown }): boolean => typeof value === 'object' && value !== null;
  const error = typeof message === 'string' ? message : ({ input }: { input?: unknown }): string => message(input as Body);
  return z.refine<Body>(holds, { params: { code }, path: [field], error, when });
}

/** What a body that binds a key to one client asks for and cannot have. */
function bankScopesOf({ client_id, scopes: asked }: Body): Scope[] {
  return typeof client_id === 'string' && Array.isArray(asked) ? bankScopes.filter((scope) => asked.includes(scope)) : [];
}

/** The same kind of rule for JSON Schema: where `when` has that value, `field` must be a text. */
function needsWhen(when: string, value: string, field: string) {
  return { if: { properties: { [when]: { const: value } }, required: [when] }, then: { properties: { [field]: { type: 'string' } }, required: [field] } };
}

/** Checks digits and size of `field` against the currency, where the body names one (else the ledger does). */
function amountFits(field: string) {
  const fault = (body: Body): unknown => {
    const { [field]: decimal, currency: code } = body;
    return typeof decimal === 'string' && typeof code === 'string' && isCurrency(code) ? toMinor(decimal, code) : undefined;
  };
  const digits = rule('invalid_amount_precision', field, (body) => `has more decimal places than ${String(body['currency'])} has`, (body) => fault(body) !== 'invalid_amount_precision');
  const size = rule('amount_too_large', field, 'exceeds 10^15 - 1 minor units', (body) => fault(body) !== 'amount_too_large');
  return [digits, size] as const;
}

const transactionKind = z.unknown().transform((value, ctx) => {
  if (value === undefined || value === null) return violation(ctx, 'validation_failed', 'is required');
  if (value !== 'Deposit' && value !== 'Withdrawal') return violation(ctx, 'invalid_transaction_type', 'must be Deposit or Withdrawal');
  return value as 'Deposit' | 'Withdrawal';
}).meta({ type: 'string', enum: ['Deposit', 'Withdrawal'] });

const description = text(0, 255).nullish();
/** Of something else: anything may stand there, and is unknown then, but for what no JSON of ours takes. */
/** An id of whatever kind: one that cannot exist is an unknown one, not a malformed body. */
const id = z.string().meta({ pattern: textWithoutNul });

const contact = { email, contact_number: phone, address: text(0, 500).nullish() };

const retail = z
  .strictObject({
    client_type: z.literal('Retail'),
    first_name: text(1, 100),
    last_name: text(1, 100),
    ...contact,
    ussd_phone_number: phone.nullish(),
    ussd_status: ussdStatus.default('inactive'),
  })
  .check(rule('validation_failed', 'ussd_phone_number', 'is required when ussd_status is active', (body) => body['ussd_status'] !== 'active' || Boolean(body['ussd_phone_number'])))
  .meta(needsWhen('ussd_status', 'active', 'ussd_phone_number'));

const corporate = z.strictObject({
  client_type: z.literal('Corporate'),
  company_name: text(1, 200),
  registration_number: text(1, 64),
  ...contact,
});

/** The moment as UTC with three decimals; undefined for what no calendar has (30 February) and outside of the years 1 to 9999. */
function utcTime(text: string): string | undefined {
  const day = text.slice(0, 10);
  const dayMs = Date.parse(day);
  const ms = Date.parse(text);
  // Date.parse takes 30 February for 2 March.
  if (Number.isNaN(ms) || Number.isNaN(dayMs) || new Date(dayMs).toISOString().slice(0, 10) !== day) return undefined;
  const utc = new Date(ms).toISOString();
  return /^\d{4}-/.test(utc) && !utc.startsWith('0000') ? utc : undefined;
}

/** Bodies of the write endpoints. */
export const bodies = {
  createClient: z.discriminatedUnion('client_type', [retail, corporate]),
  updateClient: z
    .strictObject({
      email: email.optional(),
      contact_number: phone.optional(),
      address: text(0, 500).nullable().optional(),
      ussd_phone_number: phone.nullable().optional(),
      ussd_status: ussdStatus.optional(),
    })
    .refine((body) => Object.keys(body).length > 0, {
      message: 'must change at least one field',
      params: { code: 'validation_failed' },
      // A body of nothing but unknown fields is told about those.
      when: ({ issues }) => issues.length === 0,
    })
    .meta({ minProperties: 1 }),
  openAccount: z
    .strictObject({
      client_id: id,
      account_type: accountType,
      currency,
      initial_deposit: z.preprocess((value) => (value === undefined ? new NumberText('0') : value), amount(true)).meta({ input_default: 0 }),
      status: accountStatus.default('Active'),
    })
    .check(...amountFits('initial_deposit')),
  changeStatus: z
    .strictObject({ status: accountStatus, reason: freezeReason.nullish(), note: text(0, 500).nullish() })
    .check(rule('validation_failed', 'reason', 'is required to freeze an account', (body) => body['status'] !== 'Frozen' || Boolean(body['reason'])))
    .meta(needsWhen('status', 'Frozen', 'reason')),
  createTransaction: z
    .strictObject({
      account_id: id,
      transaction_type: transactionKind,
      amount: amount(false),
      currency: currency.nullish(),
      description,
      reference: text(0, 100).nullish(),
    })
    .check(...amountFits('amount')),
  createTransfer: z
    .strictObject({ from_account_id: id, to_account_id: id, amount: amount(false), currency: currency.nullish(), description })
    .check(
      ...amountFits('amount'),
      rule('same_account', 'to_account_id', 'must differ from from_account_id', (body) => typeof body['to_account_id'] !== 'string' || body['from_account_id'] !== body['to_account_id']),
    ),
  reverse: z.strictObject({ reason: text(1, 255) }),
  createKey: z.strictObject({
    name: text(1, 100),
    scopes: z.array(z.enum(scopes)).min(1, 'must name at least one scope').max(scopes.length),
    expires_at: z.iso.datetime({ offset: true, error: 'must be an ISO 8601 time' }).refine((text) => utcTime(text) !== undefined, 'must be in the years 1 to 9999').nullish(),
    client_id: id.nullish(),
    environment: keyEnvironment.default('live'),
  }).check(rule('validation_failed', 'scopes', (body) => `must not name, for a key bound to one client, what belongs to the bank: ${bankScopesOf(body).join(', ')}`, (body) => bankScopesOf(body).length === 0)),
  rotateKey: z.strictObject({ overlap_seconds: z.preprocess((value) => (value === undefined ? new NumberText('3600') : value), wholeNumber(0, 30 * 86400)).meta({ input_default: 3600 }) }),
  revokeKey: z.strictObject({ descendants: z.boolean().default(false) }),
};

function wholeNumber(min: number, max: number) {
  return z.unknown().transform((value, ctx) => {
    const decimal = value instanceof NumberText ? canonicalDecimal(value.text) : undefined;
    const number = decimal !== undefined && /^\d+$/.test(decimal) ? Number(decimal) : Number.NaN;
    if (!(number >= min && number <= max)) return violation(ctx, 'validation_failed', `must be a whole number from ${min} to ${max}`);
    return number;
  }).meta({ type: 'integer', minimum: min, maximum: max });
}

const limit = z
  .string()
  .default('100')
  .transform((value, ctx) => {
    const number = /^\d{1,4}$/.test(value) ? Number(value) : 0;
    return number >= 1 && number <= 500 ? number : violation(ctx, 'validation_failed', 'must be a whole number from 1 to 500');
  })
  .meta({ type: 'integer', minimum: 1, maximum: 500 });

/** ISO 8601 date or time, as UTC with three decimals. A plus that arrived as a blank is read as a plus. */
export const time = z.string().transform((value, ctx) => {
  const text = value.replace(' ', '+');
  const known = /^\d{4}-\d\d-\d\d(T\d\d:\d\d(:\d\d(\.\d{1,9})?)?(Z|[+-]\d\d:\d\d))?$/.test(text);
  return (known ? utcTime(text) : undefined) ?? violation(ctx, 'validation_failed', 'must be an ISO 8601 date or time, such as 2026-01-02T03:04:05.678Z');
}).meta({ format: 'date-time', input_examples: ['2026-01-02T03:04:05.678Z'] });

const decimalParameter = z.string().transform((value, ctx) => {
  const decimal = canonicalDecimal(value);
  if (decimal === undefined || decimal.startsWith('-')) return violation(ctx, 'invalid_amount', 'must be a number not below 0');
  return decimal;
}).meta({ type: 'number', minimum: 0 });

/** Of every list. */
export const page = { limit, cursor: z.string().max(2000).optional(), order: z.enum(['asc', 'desc']).default('desc') };

/** Query parameters of the read endpoints. Unknown ones are refused: a mistyped filter must not list everything. */
export const parameters = {
  none: z.strictObject({}),
  listClients: z.strictObject({ client_type: clientType.optional(), ussd_phone: phone.optional(), ...page }),
  searchUssd: z.strictObject({ ussd_phone: phone }),
  listAccounts: z.strictObject({
    client_id: id.optional(),
    account_type: accountType.optional(),
    status: accountStatus.optional(),
    currency: currency.optional(),
    ...page,
  }),
  page: z.strictObject(page),
  statement: z.strictObject({ from: time.optional(), to: time.optional(), limit: page.limit, cursor: page.cursor }),
  listTransactions: z.strictObject({
    account_id: id.optional(),
    transaction_type: transactionType.optional(),
    status: transactionStatus.optional(),
    reference: z
      .string()
      .refine((value) => [...value].length <= 100, 'must have at most 100 characters')
      .optional(),
    transfer_id: id.optional(),
    from: time.optional(),
    to: time.optional(),
    min_amount: decimalParameter.optional(),
    max_amount: decimalParameter.optional(),
    idempotency_key: z.string().max(255).optional(),
    ...page,
  }),
  listTransfers: z.strictObject({ account_id: id.optional(), status: transactionStatus.optional(), from: time.optional(), to: time.optional(), ...page }),
};
