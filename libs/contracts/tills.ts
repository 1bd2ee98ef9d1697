import { z } from 'zod';
import { currencies, money } from './money.ts';
import { type EndpointRows, example, field, type Meanings, meaning, message, shown } from './subject.ts';
import { text } from './texts.ts';

/** Tills (contract: tills): what a person has in cash, from one count to the next. */

const count = z.number().int().min(0);
const counted = z.object({ currency: z.string(), amount: money }).meta({ id: 'CountedCash' });
const sumsSchema = z
  .object({
    currency: z.string(),
    opening: money,
    cash_in: money,
    cash_in_count: count,
    cash_out: money,
    cash_out_count: count,
    expected: money,
  })
  .meta({ id: 'TillSums' });
const balanceSchema = z.object({ ...sumsSchema.shape, counted: money, difference: money }).meta({ id: 'TillBalance' });
const tillSchema = z
  .object({
    till_id: z.string(),
    actor: z.string(),
    status: z.enum(['Open', 'Closed']),
    opened_at: shown.time,
    /** What was counted when it was opened, by currency. */
    opening: z.array(counted),
    closed_at: shown.time.nullable(),
    /** As they were at the closing, by currency; empty while it is open. */
    balances: z.array(balanceSchema),
    /** What an open one has taken, by currency; not for its own person, who counts without knowing it. */
    so_far: z.array(sumsSchema).optional(),
    reason: z.string().nullable(),
    closed_by: z.string().nullable(),
  })
  .meta({ id: 'Till' });
export type Till = z.infer<typeof tillSchema>;
export type TillBalance = z.infer<typeof balanceSchema>;
export type TillSums = z.infer<typeof sumsSchema>;

/** A till may take cash in every currency, and all must be counted. */
const mostCounts = currencies.length;
const countsField = z
  .array(
    z
      .strictObject({ currency: field.currency, amount: field.amount(true) })
      .check(...field.amountFits('amount'))
      .meta({ id: 'CashCount' }),
  )
  .min(1, 'must have at least one currency')
  .max(mostCounts, `must have at most ${mostCounts} currencies`)
  .refine((counts) => new Set(counts.map(({ currency }) => currency)).size === counts.length, {
    error: 'must name each currency once',
  });

const kes = { currency: 'KES', opening: 5000, cash_in: 1500, cash_in_count: 1, cash_out: 200, cash_out_count: 1 };
const opened = {
  opening: [{ currency: 'KES', amount: 5000 }],
  closed_at: null,
  balances: [],
  reason: null,
  closed_by: null,
};
const closed = {
  ...opened,
  status: 'Closed',
  closed_at: example.time,
  balances: [{ ...kes, expected: 6300, counted: 6250, difference: -50 }],
  reason: 'a note of 50 is missing',
  closed_by: 'jwt:https://id.example.com|ada',
};
const soFar = { ...opened, so_far: [{ ...kes, expected: 6300 }] };
const onlyPersons = 'A till belongs to a person who has signed in: API keys and OAuth clients have none.';

const listFilters = z.strictObject({
  actor: z.string().max(600).optional(),
  status: tillSchema.shape.status.optional(),
  ...field.page,
});

export const tillEndpoints = {
  open_till: {
    route: 'POST /tills',
    summary: 'Open a till',
    scope: 'transactions:write',
    bankOnly: true,
    body: z.strictObject({ counted: countsField }),
    description: `${onlyPersons} A person has at most one that is open. From then on it takes the deposits and withdrawals that the person posts.`,
    success: 201,
    errors: [...field.moneyErrors, 'till_open'],
    requests: { open: { counted: [{ currency: 'KES', amount: 5000 }] } },
    answers: { open: opened },
  },
  list_tills: {
    route: 'GET /tills',
    summary: 'List tills',
    scope: null,
    bankOnly: true,
    query: listFilters,
    description: "The caller's own, or with `books:read` those of everybody.",
    shape: 'page',
    errors: ['insufficient_scope'],
    answers: { closed },
  },
  get_till: {
    route: 'GET /tills/:till_id',
    summary: 'Get a till',
    scope: null,
    bankOnly: true,
    description: 'Another person than its own requires `books:read`, and sees in `so_far` what an open one has taken.',
    answers: { open: opened, closed, open_of_another: soFar },
  },
  close_till: {
    route: 'POST /tills/:till_id/closing',
    summary: 'Close a till',
    scope: 'transactions:write',
    bankOnly: true,
    body: z.strictObject({ counted: countsField, reason: text(1, 500, { lines: true }).nullish() }),
    description:
      'By its own person, or by another one with `books:read`, who must give a reason. Every currency in which it was opened, or has taken or paid cash, must be counted. If what was counted is not what is expected, a reason is required. Refused counts are audited, and the refusal does not say what is expected.',
    errors: [...field.moneyErrors, 'till_closed', 'till_not_counted', 'till_difference'],
    requests: {
      close: { counted: [{ currency: 'KES', amount: 6250 }], reason: closed.reason },
    },
    answers: { close: closed },
  },
} satisfies EndpointRows;

const counts = z.array(z.object({ currency: message.currency, amount: message.amountOrZero })).max(mostCounts);

export const tillMessages = {
  open_till: message.ledger.command({ till_id: message.id, counted: counts }, tillSchema),
  close_till: message.ledger.command(
    // `of_others`: the caller may close the till of another person.
    { till_id: message.id, counted: counts, reason: message.text, of_others: z.boolean().optional() },
    tillSchema,
  ),
  list_tills: message.ledger.query(message.listRequest(listFilters), message.pageSchema(tillSchema)),
  get_till: message.ledger.query({ till_id: message.id }, tillSchema),
};

export const tillMeanings = {
  fields: {
    till_id: 'The till: `til_` and 32 hexadecimal digits',
    'Till.actor': 'The person to whom it belongs',
    'Till.status': 'Open or Closed',
    opened_at: `When it was opened, ${meaning.utc}`,
    'Till.opening': 'What was counted when it was opened, by currency',
    'Till.closed_at': `When it was closed, ${meaning.utc}; null: it is open`,
    so_far:
      'By currency, what an open till has taken; only for another person than its own, who counts without knowing it',
    balances: 'By currency, as they were when it was closed; empty: it is open',
    'TillSums.opening': 'What was counted when it was opened; 0 if the currency was not counted',
    'TillSums.expected': 'opening plus cash_in minus cash_out',
    'TillBalance.opening': 'What was counted when it was opened; 0 if the currency was not counted',
    'TillBalance.expected': 'opening plus cash_in minus cash_out',
    'TillBalance.counted': 'What was counted when it was closed',
    'TillBalance.difference': 'counted minus expected',
    counted: 'What was counted, by currency, each once',
    'CashCount.amount': `0 or more, ${meaning.inUnits}`,
    'CountedCash.amount': `What was counted, ${meaning.inUnits}`,
    'Till.reason': 'Why there is a difference; null: there is none, or nothing was said',
    'Till.closed_by': 'Who closed it; null: it is open',
    'close_till.reason': 'Why there is a difference, or why another person closes it, 1 to 500 characters',
    'list_tills.actor': 'Only those of this person, as `jwt:<issuer>|<subject>`',
    'list_tills.status': 'Only Open or only Closed ones',
  },
  errors: {
    till_not_found: meaning.notFound('till', example.ids.till),
    till_open: {
      meaning: 'The person has a till that is open; `details.till_id` names it.',
      action: 'Close it before another is opened.',
      example: [`till ${example.ids.till} is open: close it first`, { details: { till_id: example.ids.till } }],
    },
    till_closed: {
      meaning: 'The till is closed already.',
      action: 'Read it.',
      example: [`till ${example.ids.till} is closed`, { details: { till_id: example.ids.till } }],
    },
    till_not_counted: {
      meaning: 'A currency was not counted in which the till was opened, or has taken or paid cash.',
      action:
        'Count the currencies in `details.currencies`, too, 0 if there is nothing, under another Idempotency-Key.',
      example: ['counted lacks USD', { details: { currencies: ['USD'] } }],
    },
    till_difference: {
      meaning: 'What was counted is not what is expected, and no reason was given. Nothing was closed.',
      action: 'Count again, or close it with a reason, under another Idempotency-Key. The audit has the first count.',
      example: [
        'counted is not what is expected in KES: count again, or give a reason',
        { details: { currencies: ['KES'] } },
      ],
    },
  },
} satisfies Meanings;
