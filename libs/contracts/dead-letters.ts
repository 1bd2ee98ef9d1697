import { z } from 'zod';
import { type EndpointRows, example, field, type Meanings, meaning, message, shown } from './subject.ts';
import { text } from './texts.ts';
import { deadLetterTopics } from './topics.ts';

/** Dead letters: messages that could not be processed. */

export const deadLetterState = z.enum(['open', 'redriven', 'dropped']);

/** A message that could not be processed. Topic names have no prefix. */
const deadLetterSchema = z
  .object({
    dead_letter_id: z.string(),
    topic: z.string(),
    partition: z.number().int().min(0),
    offset: z.number().int().min(0),
    source_topic: z.string(),
    source_partition: z.number().int().min(0).nullable(),
    source_offset: z.number().int().min(0).nullable(),
    key: z.string().nullable(),
    code: z.string().nullable(),
    reason: z.string().nullable(),
    /** The size of the value in bytes. */
    size_bytes: z.number().int().min(0),
    /** The name of the command or query, if its type is known. */
    message: z.string().nullable(),
    request_id: z.string().nullable(),
    dead_at: shown.time,
    state: deadLetterState,
    decided_by: z.string().nullable(),
    decided_at: shown.time.nullable(),
    drop_reason: z.string().nullable(),
  })
  .meta({ id: 'DeadLetter' });
export type DeadLetter = z.infer<typeof deadLetterSchema>;

/** A dead letter with the message stored in its topic. `available` is false once retention has deleted the message. */
const deadLetterContentSchema = deadLetterSchema
  .extend({
    available: z.boolean(),
    headers: z.record(z.string(), z.string()),
    /** The first 64 KiB: as text if they are valid UTF-8, otherwise in base64. */
    value: z.string().nullable(),
    encoding: z.enum(['utf-8', 'base64']).nullable(),
    truncated: z.boolean(),
  })
  .meta({ id: 'DeadLetterContent' });
export type DeadLetterContent = z.infer<typeof deadLetterContentSchema>;

const listFilters = z.strictObject({
  topic: z.enum(deadLetterTopics).optional(),
  state: deadLetterState.optional(),
  from: field.time.optional(),
  to: field.time.optional(),
  ...field.page,
});

const deadLetter = {
  topic: 'ledger.commands.dlq',
  source_partition: 3,
  source_offset: 40_512,
  key: example.ids.account,
  code: 'invalid_data',
  reason: 'amount: Invalid input',
  message: 'create_transaction',
  request_id: example.ids.request,
};
const decided = { decided_by: example.actor, decided_at: '2026-01-02T09:00:00.000Z' };

export const deadLetterEndpoints = {
  list_dead_letters: {
    route: 'GET /admin/dead-letters',
    summary: 'List messages that could not be processed',
    scope: 'ops:manage',
    query: listFilters,
    shape: 'page',
    answers: { poison: deadLetter },
  },
  get_dead_letter: {
    route: 'GET /admin/dead-letters/:dead_letter_id',
    summary: 'Get a dead letter with headers and value',
    scope: 'ops:manage',
    alsoRequires: 'clients:read',
    answers: {
      poison: {
        ...deadLetter,
        headers: { ce_id: example.ids.transaction, ce_type: 'corebanking.create_transaction.v1' },
        value: '{"account_id":"…"}',
        encoding: 'utf-8',
        truncated: false,
      },
    },
  },
  redrive_dead_letter: {
    route: 'POST /admin/dead-letters/:dead_letter_id/redrive',
    summary: 'Redrive a dead letter: publish its original bytes to its topic again',
    scope: 'ops:manage',
    body: z.strictObject({ renew_deadline: z.boolean().default(false) }),
    errors: ['invalid_status_transition', 'dead_letter_expired'],
    requests: { redrive: {}, renewed: { renew_deadline: true } },
    answers: { redrive: { ...deadLetter, ...decided, state: 'redriven' } },
  },
  drop_dead_letter: {
    route: 'POST /admin/dead-letters/:dead_letter_id/drop',
    summary: 'Drop a dead letter, so that this copy of the message is never executed',
    scope: 'ops:manage',
    body: z.strictObject({ reason: text(1, 255, { lines: true }).nullish() }),
    errors: ['invalid_status_transition'],
    requests: { drop: { reason: 'a test message' } },
    answers: { drop: { ...deadLetter, ...decided, state: 'dropped', drop_reason: 'a test message' } },
  },
} satisfies EndpointRows;

export const deadLetterMessages = {
  redrive_dead_letter: message.accounts.command(
    { dead_letter_id: message.id, renew_deadline: z.boolean() },
    deadLetterSchema,
  ),
  drop_dead_letter: message.accounts.command({ dead_letter_id: message.id, reason: message.text }, deadLetterSchema),
  list_dead_letters: message.accounts.query(message.listRequest(listFilters), message.pageSchema(deadLetterSchema)),
  get_dead_letter: message.accounts.query({ dead_letter_id: message.id }, deadLetterContentSchema),
};

export const deadLetterMeanings = {
  fields: {
    dead_letter_id: 'The dead letter: `dlt_` and 32 hexadecimal digits',
    'DeadLetter.reason': 'The error message with which the message was dead-lettered; null: unknown',
    'DeadLetter.message': 'The name of the command or query; null: its type is unreadable',
    'DeadLetter.code': 'The error code with which the message was dead-lettered; null: unknown',
    'DeadLetter.state':
      'open: not decided; redriven: published again; dropped: given up. It says nothing about another copy of the command, which a repeat of the request may have executed: read what has its id',
    'drop_dead_letter.reason': 'The reason for dropping, 1 to 255 characters',
    'list_dead_letters.from': 'Dead-lettered at or after this time: ISO 8601 date or time',
    'list_dead_letters.to': 'Dead-lettered before this time: ISO 8601 date or time',
    offset: 'Offset in the partition, from 0',
    source_topic: 'The original topic, without prefix',
    source_partition: 'The original partition; null: unknown',
    source_offset: 'The original offset; null: unknown',
    size_bytes: 'Size of the value in bytes',
    dead_at: `When it was dead-lettered, ${meaning.utc}`,
    drop_reason: 'Why it was dropped; null: it was not, or no reason was given',
    renew_deadline: 'Set a new deadline, so that the command is executed although its own has passed',
    available: 'false if retention has deleted it from the topic; headers and value are then empty',
    headers: 'Headers by name',
    value: 'The first 64 KiB of the value; null: none, or deleted',
    encoding: 'Encoding of `value`; null: no value',
    truncated: 'Whether the value is longer than shown',
  },
  errors: {
    dead_letter_not_found: {
      meaning: 'The dead letter does not exist.',
      action: 'Correct the id.',
      example: [`dead letter ${example.ids.dead_letter} not found`],
    },
    dead_letter_expired: {
      meaning: 'Retention has deleted the message of the dead letter, or its key is no longer accepted.',
      action: 'Drop it.',
      example: [`the message of ${example.ids.dead_letter} was deleted by retention: it can only be dropped`],
    },
  },
} satisfies Meanings;
