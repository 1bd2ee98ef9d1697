import { z } from 'zod';
import type { ErrorCode } from './errors.ts';
import { canonicalDecimal, isCurrency, maxMinor, NumberText, toMinor, withdrawnOn } from './money.ts';
import { text, textWithoutNul } from './texts.ts';
import { parameterTime, utcTime } from './times.ts';
import { violation } from './violation.ts';

/**
 * Fields of requests, normalized while parsing. Violations carry an error code in `params`. For OpenAPI, `meta`
 * describes in JSON Schema the rules that a transform hides (with `input_default` and `input_examples`, because zod
 * drops the default and examples of a transformed field).
 */

function currencyThat(isAccepted: (code: string) => boolean) {
  const wrong = (code: string) => {
    const day = withdrawnOn(code);
    return day === undefined ? 'must be an ISO 4217 currency code in upper case' : `${code} was withdrawn on ${day}`;
  };
  return z
    .string()
    .transform((value, ctx) => (isAccepted(value) ? value : violation(ctx, 'unsupported_currency', wrong(value))))
    .meta({ pattern: '^[A-Z]{3}$', description: 'ISO 4217 code', input_examples: ['USD'] });
}

export const currency = currencyThat(isCurrency);
/** A currency in which accounts are opened. */
export const currencyInUse = currencyThat((code) => isCurrency(code) && withdrawnOn(code) === undefined);

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
      format: 'decimal',
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
export type Body = Record<string, unknown>;

/**
 * A rule over several fields. It is also checked if other rules are violated, so that all violations are reported
 * together.
 */
export function rule(
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

/** Returns the JSON Schema of such a rule: not `when` of that value with `field` absent or no string. */
export function needsWhen(when: string, value: string, field: string) {
  return { not: { properties: { [when]: { enum: [value] }, [field]: { not: { type: 'string' } } }, required: [when] } };
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

export const description = text(0, 255).nullish();
export const reference = text(0, 100).nullish();
/** An id of any kind. A malformed id is reported as not found, not as a violation. */
export const id = z.string().meta({ pattern: textWithoutNul });

/** A day of the bank. Postgres has no year 0. */
export const day = z.iso
  .date({ error: 'must be a day such as 2026-01-31' })
  .refine((value) => value >= '0001', 'must be in the years 1 to 9999');

/** A time in a body, converted to UTC with three decimals. */
export const moment = z.iso
  .datetime({ offset: true, error: 'must be an ISO 8601 time' })
  .transform((value, ctx) => utcTime(value) ?? violation(ctx, 'validation_failed', 'must be in the years 1 to 9999'));

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

/** A whole number from 1 to at most `most`, which has at most four digits. */
export const count = (most: number, otherwise: number) =>
  z
    .string()
    .default(String(otherwise))
    .transform((value, ctx) => {
      const number = /^\d{1,4}$/.test(value) ? Number(value) : 0;
      return number >= 1 && number <= most
        ? number
        : violation(ctx, 'validation_failed', `must be a whole number from 1 to ${most}`);
    })
    .meta({ type: 'integer', minimum: 1, maximum: most });
const limit = count(500, 100);

/** An ISO 8601 date or time, converted to UTC with three decimals. A `+` that was decoded to a space is accepted. */
export const time = z
  .string()
  .transform((value, ctx) => {
    return (
      parameterTime(value.trim().replace(' ', '+')) ??
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

export const decimalParameter = z
  .string()
  .transform((value, ctx) => {
    const decimal = canonicalDecimal(value);
    if (decimal === undefined || decimal.startsWith('-'))
      return violation(ctx, 'invalid_amount', 'must be a number not below 0');
    return decimal;
  })
  .meta({ type: 'number', format: 'decimal', minimum: 0 });

/** Parameters of every list. */
export const page = { limit, cursor: z.string().max(2000).optional(), order: z.enum(['asc', 'desc']).default('desc') };

/** Ids of rows to return, so that a client can show them together with another list. */
export function ids(prefix: string) {
  const [one, error] = [`${prefix}_[0-9a-f]{32}`, 'must be at most 100 ids, separated by commas'];
  return z
    .string()
    .max(100 * `${prefix}_,`.length + 100 * 32 - 1, error)
    .regex(new RegExp(`^${one}(,${one})*$`), error)
    .optional();
}

/** Unknown parameters are refused, because a mistyped filter must not list everything. */
export const noParameters = z.strictObject({}).meta({ id: 'EmptyRequest' });
export const pageParameters = z.strictObject(page);
