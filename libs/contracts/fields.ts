import { z } from 'zod';
import type { ErrorCode } from './errors.ts';
import { canonicalDecimal, isCurrency, maxMinor, NumberText, toMinor } from './money.ts';
import { externalId, givenNames } from './names.ts';
import { phone, phoneParameter } from './phones.ts';
import {
  accountStatus,
  accountType,
  batchMode,
  clientType,
  freezeReason,
  keyEnvironment,
  numberPrefixes,
  transactionStatus,
  transactionType,
  ussdStatus,
} from './resources.ts';
import type { Scope } from './scopes.ts';
import { bankScopes, scopes } from './scopes.ts';
import { text, textWithoutNul } from './texts.ts';
import { violation } from './violation.ts';

/**
 * Fields of requests, normalized while parsing. Violations carry an error code in `params`. For OpenAPI, `meta`
 * describes in JSON Schema the rules that a transform hides (with `input_default` and `input_examples`, because zod
 * drops the default and examples of a transformed field).
 */

/** RFC 5321 without quoted strings: at most 64 characters before the @ and labels of at most 63 after it. */
const emailForm =
  /^(?=[^@]{1,64}@)(?!\.)(?!.*\.\.)[A-Za-z0-9.!#$%&'*+/=?^_`{|}~-]*[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]@([A-Za-z0-9]([A-Za-z0-9-]{0,61}[A-Za-z0-9])?\.)+[A-Za-z]{2,63}$/;

const email = z
  .string()
  .max(254, 'must have at most 254 characters')
  .pipe(z.email({ pattern: emailForm, error: 'must be an e-mail address' }))
  .meta({ format: 'email', pattern: emailForm.source });

export const currency = z
  .string()
  .transform((value, ctx) =>
    isCurrency(value)
      ? value
      : violation(ctx, 'unsupported_currency', 'must be an ISO 4217 currency code in upper case'),
  )
  .meta({ pattern: '^[A-Z]{3}$', description: 'ISO 4217 code', input_examples: ['USD'] });

/** Parses a JSON number to its exact decimal value. Requires > 0, or >= 0 if `zero` is true. */
export function amount(zero: boolean) {
  return z
    .unknown()
    .transform((value, ctx) => {
      if (value === undefined || value === null)
        return violation(ctx, 'validation_failed', value === null ? 'must not be null' : 'is required');
      const decimal = value instanceof NumberText ? canonicalDecimal(value.text) : undefined;
      if (decimal === undefined)
        return violation(
          ctx,
          'invalid_amount',
          'must be a JSON number of at most 40 characters, with an exponent of at most 30',
        );
      if (decimal.startsWith('-') || (decimal === '0' && !zero))
        return violation(ctx, 'invalid_amount', zero ? 'must not be negative' : 'must be greater than 0');
      return decimal;
    })
    .meta({
      type: 'number',
      ...(zero ? { minimum: 0 } : { exclusiveMinimum: 0 }),
      maximum: Number(maxMinor),
      description: `${zero ? '0 or more' : 'Above 0'}, in units of the currency: at most its decimal places, and 10^15 - 1 minor units`,
      input_examples: [12.5],
    });
}

/** A number that has this value if it is not given. */
export function orNumber<S extends z.ZodType>(value: number, schema: S) {
  return z
    .preprocess((given) => (given === undefined ? new NumberText(String(value)) : given), schema)
    .meta({ input_default: value });
}

/** The errors of an amount and its currency, and those of every posting. */
export const moneyErrors: ErrorCode[] = [
  'invalid_amount',
  'invalid_amount_precision',
  'amount_too_large',
  'unsupported_currency',
];
export const postingErrors: ErrorCode[] = [
  ...moneyErrors,
  'account_not_found',
  'insufficient_funds',
  'inactive_account',
  'invalid_account_type',
  'currency_mismatch',
  'balance_limit_exceeded',
];

type Body = Record<string, unknown>;

/**
 * A rule over several fields. It is also checked if other rules are violated, so that all violations are reported
 * together.
 */
function rule(
  code: ErrorCode,
  field: string,
  message: string | ((body: Body) => string),
  holds: (body: Body) => boolean,
) {
  const when = ({ value }: { value: unknown }): boolean => typeof value === 'object' && value !== null;
  const error =
    typeof message === 'string' ? message : ({ input }: { input?: unknown }): string => message(input as Body);
  return z.refine<Body>(holds, { params: { code }, path: [field], error, when });
}

/** For a PATCH. If the body has only unknown fields, those are reported instead. */
export const changesSomething = z.refine<Body>((body) => Object.keys(body).length > 0, {
  message: 'must change at least one field',
  params: { code: 'validation_failed' },
  when: ({ issues }) => issues.length === 0,
});

/** Returns the requested scopes that a key bound to a client cannot have. */
function bankScopesOf({ client_id, scopes: asked }: Body): Scope[] {
  return typeof client_id === 'string' && Array.isArray(asked)
    ? bankScopes.filter((scope) => asked.includes(scope))
    : [];
}

/** Returns the JSON Schema of the same rule: if `when` has that value, `field` must be a string. */
function needsWhen(when: string, value: string, field: string) {
  return {
    if: { properties: { [when]: { const: value } }, required: [when] },
    then: { properties: { [field]: { type: 'string' } }, required: [field] },
  };
}

/** Checks the decimal places and size of `field` if the body names a currency. Otherwise the ledger checks them. */
export function amountFits(field: string) {
  const fault = (body: Body): unknown => {
    const { [field]: decimal, currency: code } = body;
    return typeof decimal === 'string' && typeof code === 'string' && isCurrency(code)
      ? toMinor(decimal, code)
      : undefined;
  };
  const digits = rule(
    'invalid_amount_precision',
    field,
    (body) => `has more decimal places than ${String(body['currency'])} has`,
    (body) => fault(body) !== 'invalid_amount_precision',
  );
  const size = rule(
    'amount_too_large',
    field,
    'exceeds 10^15 - 1 minor units',
    (body) => fault(body) !== 'amount_too_large',
  );
  return [digits, size] as const;
}

const transactionKind = z
  .unknown()
  .transform((value, ctx) => {
    if (value === undefined || value === null) return violation(ctx, 'validation_failed', 'is required');
    if (value !== 'Deposit' && value !== 'Withdrawal')
      return violation(ctx, 'invalid_transaction_type', 'must be Deposit or Withdrawal');
    return value as 'Deposit' | 'Withdrawal';
  })
  .meta({ type: 'string', enum: ['Deposit', 'Withdrawal'] });

export const description = text(0, 255).nullish();
export const reference = text(0, 100).nullish();
/** An id of any kind. A malformed id is reported as not found, not as a violation. */
export const id = z.string().meta({ pattern: textWithoutNul });

const contact = { email, contact_number: phone, address: text(0, 500, { lines: true }).nullish() };

const clientNames = {
  first_name: text(1, 100),
  last_name: text(1, 100),
  company_name: text(1, 200),
  registration_number: text(1, 64),
};

const retail = z
  .strictObject({
    client_type: z.literal('Retail'),
    first_name: clientNames.first_name,
    last_name: clientNames.last_name,
    ...contact,
    ussd_phone_number: phone.nullish(),
    ussd_status: ussdStatus.default('inactive'),
    ...givenNames,
  })
  .check(
    rule(
      'validation_failed',
      'ussd_phone_number',
      'is required when ussd_status is active',
      (body) => body['ussd_status'] !== 'active' || Boolean(body['ussd_phone_number']),
    ),
  )
  .meta(needsWhen('ussd_status', 'active', 'ussd_phone_number'));

const corporate = z.strictObject({
  client_type: z.literal('Corporate'),
  company_name: clientNames.company_name,
  registration_number: clientNames.registration_number,
  ...contact,
  ...givenNames,
});

/**
 * Converts a time to UTC with three decimals. Returns undefined for dates that do not exist (30 February) and
 * years outside 1 to 9999.
 */
function utcTime(text: string): string | undefined {
  const day = text.slice(0, 10);
  const dayMs = Date.parse(day);
  const ms = Date.parse(text);
  // Date.parse accepts 30 February as 2 March.
  if (Number.isNaN(ms) || Number.isNaN(dayMs) || new Date(dayMs).toISOString().slice(0, 10) !== day) return undefined;
  const utc = new Date(ms).toISOString();
  return /^\d{4}-/.test(utc) && !utc.startsWith('0000') ? utc : undefined;
}

/** A time in a body, converted to UTC with three decimals. */
export const moment = z.iso
  .datetime({ offset: true, error: 'must be an ISO 8601 time' })
  .transform((value, ctx) => utcTime(value) ?? violation(ctx, 'validation_failed', 'must be in the years 1 to 9999'));
const newTransaction = z
  .strictObject({
    account_id: id,
    transaction_type: transactionKind,
    amount: amount(false),
    currency: currency.nullish(),
    description,
    reference,
    ...givenNames,
  })
  .check(...amountFits('amount'));

const newTransfer = z
  .strictObject({
    from_account_id: id,
    to_account_id: id,
    amount: amount(false),
    currency: currency.nullish(),
    description,
    ...givenNames,
  })
  .check(...amountFits('amount'));

/** The maximum number of items in a batch, also in atomic mode, which uses one database transaction. */
export const maxItems = 1000;
const maxAtomicItems = 500;

/**
 * Whether source and destination are the same account is decided per item. A validation rule would refuse the whole
 * batch.
 */
const item = z
  .strictObject({ transaction: newTransaction.optional(), transfer: newTransfer.optional() })
  .check(
    z.refine((body) => (body.transaction === undefined) !== (body.transfer === undefined), {
      error: 'must be either a transaction or a transfer',
      when: ({ issues }) => issues.length === 0,
    }),
  )
  .meta({ minProperties: 1, maxProperties: 1 });

/** An account number from another system. It needs no check digit. */
const accountNumber = z
  .string()
  .regex(/^[A-Z]{3}-\d{4,20}$/, "must be the type's prefix, a hyphen and 4 to 20 digits, such as SAV-1234567897")
  .meta({
    description:
      'The number that the account had in another system (scope `accounts:import`): the prefix of its type, a hyphen, and 4 to 20 digits; if omitted, the bank generates one',
    pattern: `^(${Object.values(numberPrefixes).join('|')})-[0-9]{4,20}$`,
    input_examples: ['SAV-00042'],
  });

function prefixFor({ account_type }: Body): string | undefined {
  const type = accountType.safeParse(account_type);
  return type.success ? numberPrefixes[type.data] : undefined;
}

/** Invalid account numbers and unknown types violate other rules. */
function hasOwnPrefix(body: Body): boolean {
  const [prefix, number] = [prefixFor(body), body['account_number']];
  return (
    prefix === undefined ||
    typeof number !== 'string' ||
    !accountNumber.safeParse(number).success ||
    number.startsWith(`${prefix}-`)
  );
}

/** The bodies of write endpoints. */
export const bodies = {
  createClient: z.discriminatedUnion('client_type', [retail, corporate]),
  updateClient: z
    .strictObject({
      ...z.object(clientNames).partial().shape,
      email: email.optional(),
      contact_number: phone.optional(),
      address: contact.address,
      ussd_phone_number: phone.nullish(),
      ussd_status: ussdStatus.optional(),
      ...givenNames,
    })
    .check(changesSomething)
    .meta({ minProperties: 1 }),
  openAccount: z
    .strictObject({
      client_id: id,
      account_type: accountType,
      currency,
      initial_deposit: orNumber(0, amount(true)),
      status: accountStatus.default('Active'),
      account_number: accountNumber.nullish(),
      migrated: z.boolean().optional(),
      ...givenNames,
    })
    .check(
      ...amountFits('initial_deposit'),
      rule(
        'validation_failed',
        'account_number',
        (body) => `must begin with ${String(prefixFor(body))}-`,
        hasOwnPrefix,
      ),
    ),
  changeStatus: z
    .strictObject({
      status: accountStatus,
      reason: freezeReason.nullish(),
      note: text(0, 500, { lines: true }).nullish(),
    })
    .check(
      rule(
        'validation_failed',
        'reason',
        'is required to freeze an account',
        (body) => body['status'] !== 'Frozen' || Boolean(body['reason']),
      ),
    )
    .meta(needsWhen('status', 'Frozen', 'reason')),
  addNote: z.strictObject({ note: text(1, 500, { lines: true }) }),
  createTransaction: newTransaction,
  createTransfer: newTransfer,
  createBatch: z
    .strictObject({
      mode: batchMode,
      items: z.array(item).min(1, 'must have at least one item').max(maxItems),
      ...givenNames,
    })
    .check(
      rule(
        'validation_failed',
        'items',
        `must have at most ${maxAtomicItems} items in atomic mode`,
        ({ mode, items }) => mode !== 'atomic' || !Array.isArray(items) || items.length <= maxAtomicItems,
      ),
    ),
  reverse: z.strictObject({ reason: text(1, 255, { lines: true }), ...givenNames }),
  createKey: z
    .strictObject({
      name: text(1, 100),
      scopes: z.array(z.enum(scopes)).min(1, 'must name at least one scope').max(scopes.length),
      expires_at: moment.nullish(),
      client_id: id.nullish(),
      environment: keyEnvironment.default('live'),
    })
    .check(
      rule(
        'validation_failed',
        'scopes',
        (body) => `cannot be given to a key bound to one client: ${bankScopesOf(body).join(', ')}`,
        (body) => bankScopesOf(body).length === 0,
      ),
    ),
  rotateKey: z.strictObject({
    overlap_seconds: orNumber(3600, wholeNumber(0, 30 * 86400)),
  }),
  revokeKey: z.strictObject({ descendants: z.boolean().default(false) }),
};

export function wholeNumber(min: number, max: number) {
  return z
    .unknown()
    .transform((value, ctx) => {
      const decimal = value instanceof NumberText ? canonicalDecimal(value.text) : undefined;
      const number = decimal !== undefined && /^\d+$/.test(decimal) ? Number(decimal) : Number.NaN;
      if (!(number >= min && number <= max))
        return violation(ctx, 'validation_failed', `must be a whole number from ${min} to ${max}`);
      return number;
    })
    .meta({ type: 'integer', minimum: min, maximum: max });
}

const limit = z
  .string()
  .default('100')
  .transform((value, ctx) => {
    const number = /^\d{1,4}$/.test(value) ? Number(value) : 0;
    return number >= 1 && number <= 500
      ? number
      : violation(ctx, 'validation_failed', 'must be a whole number from 1 to 500');
  })
  .meta({ type: 'integer', minimum: 1, maximum: 500 });

/** An ISO 8601 date or time, converted to UTC with three decimals. A `+` that was decoded to a space is accepted. */
export const time = z
  .string()
  .transform((value, ctx) => {
    const text = value.replace(' ', '+');
    const known = /^\d{4}-\d\d-\d\d(T\d\d:\d\d(:\d\d(\.\d{1,9})?)?(Z|[+-]\d\d:\d\d))?$/.test(text);
    return (
      (known ? utcTime(text) : undefined) ??
      violation(ctx, 'validation_failed', 'must be an ISO 8601 date or time, such as 2026-01-02T03:04:05.678Z')
    );
  })
  .meta({ format: 'date-time', input_examples: ['2026-01-02T03:04:05.678Z'] });

/**
 * For the one period of an endpoint, not for the filters of a list: the end must not be before the start. Both are
 * normalized times.
 */
export const inOrder = rule('validation_failed', 'to', 'must not be before from', ({ from, to }) =>
  typeof from === 'string' && typeof to === 'string' ? from <= to : true,
);

const decimalParameter = z
  .string()
  .transform((value, ctx) => {
    const decimal = canonicalDecimal(value);
    if (decimal === undefined || decimal.startsWith('-'))
      return violation(ctx, 'invalid_amount', 'must be a number not below 0');
    return decimal;
  })
  .meta({ type: 'number', minimum: 0 });

/** Parameters of every list. */
export const page = { limit, cursor: z.string().max(2000).optional(), order: z.enum(['asc', 'desc']).default('desc') };

/** Ids of rows to return, so that a client can show them together with another list. */
const ids = (prefix: string) =>
  z
    .string()
    .regex(
      new RegExp(`^${prefix}_[0-9a-f]{32}(,${prefix}_[0-9a-f]{32}){0,99}$`),
      'must be at most 100 ids, separated by commas',
    )
    .optional();

const clientSearches = {
  client_ids: ids('cli'),
  email: email.optional(),
  registration_number: clientNames.registration_number.optional(),
  q: text(1, 255)
    .refine((value) => /[\p{L}\p{N}]/u.test(value), 'must have a letter or digit')
    .meta({
      description:
        'Words of a name: each is the beginning of one of its words, in any order, without regard to case and accents',
      input_examples: ['love ada'],
    })
    .optional(),
};

/**
 * Query parameters of read endpoints. Unknown parameters are refused, because a mistyped filter must not list
 * everything.
 */
export const parameters = {
  none: z.strictObject({}),
  listClients: z.strictObject({
    client_type: clientType.optional(),
    ussd_phone: phoneParameter.optional(),
    ...clientSearches,
    external_id: externalId.optional(),
    ...page,
  }),
  searchUssd: z.strictObject({ ussd_phone: phoneParameter }),
  listAccounts: z.strictObject({
    client_id: id.optional(),
    account_ids: ids('acc'),
    account_type: accountType.optional(),
    status: accountStatus.optional(),
    currency: currency.optional(),
    external_id: externalId.optional(),
    ...page,
  }),
  page: z.strictObject(page),
  balance: z.strictObject({ at: time.optional() }),
  statement: z
    .strictObject({ from: time.optional(), to: time.optional(), limit: page.limit, cursor: page.cursor })
    .check(inOrder),
  listTransactions: z.strictObject({
    account_id: id.optional(),
    transaction_type: transactionType.optional(),
    status: transactionStatus.optional(),
    currency: currency.optional(),
    actor: z.string().max(1000).optional(),
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
    external_id: externalId.optional(),
    ...page,
  }),
  listTransfers: z.strictObject({
    account_id: id.optional(),
    status: transactionStatus.optional(),
    from: time.optional(),
    to: time.optional(),
    external_id: externalId.optional(),
    ...page,
  }),
  listBatches: z.strictObject({ external_id: externalId.optional(), ...page }),
};
