import { z } from 'zod';
import { statusTransitionSchema } from '#libs/contracts/account-status.ts';
import { accountBalanceSchema, accountSchema } from '#libs/contracts/accounts.ts';
import { apiKeySchema, apiKeyWithSecretSchema } from '#libs/contracts/api-keys.ts';
import { approvalSchema } from '#libs/contracts/approvals.ts';
import { auditActorSchema, auditRecordSchema } from '#libs/contracts/audit.ts';
import { batchSchema, batchSummarySchema } from '#libs/contracts/batches.ts';
import { systemAccountSchema, trialBalanceSchema } from '#libs/contracts/books.ts';
import { clientSchema } from '#libs/contracts/clients.ts';
import { dayBalanceSchema, dayClosingSchema, dayLineSchema } from '#libs/contracts/days.ts';
import { deadLetterContentSchema, deadLetterSchema } from '#libs/contracts/dead-letters.ts';
import { endpoints } from '#libs/contracts/endpoints.ts';
import { entrySchema } from '#libs/contracts/entries.ts';
import { errorBodySchema } from '#libs/contracts/errors.ts';
import { cloudEventSchema } from '#libs/contracts/event-feed.ts';
import { capturedHoldSchema, holdSchema } from '#libs/contracts/holds.ts';
import { limitsSchema } from '#libs/contracts/limits.ts';
import { noteSchema } from '#libs/contracts/notes.ts';
import { operationsSchema, verificationSchema } from '#libs/contracts/operations.ts';
import { searchHitSchema } from '#libs/contracts/search.ts';
import { staffDaySchema } from '#libs/contracts/staff-days.ts';
import { accountDaysSchema, balanceAtSchema, entryLineSchema, statementSchema } from '#libs/contracts/statements.ts';
import { cashDaysSchema, postingStatisticsSchema } from '#libs/contracts/statistics.ts';
import { tillSchema } from '#libs/contracts/tills.ts';
import { timelineSchema } from '#libs/contracts/timeline.ts';
import { transactionSchema } from '#libs/contracts/transactions.ts';
import { transferSchema } from '#libs/contracts/transfers.ts';
import { deliverySchema, webhookSchema, webhookWithSecretSchema } from '#libs/contracts/webhooks.ts';

export type Json = Record<string, unknown>;

/** Returns the JSON Schema of an input (`input`: before normalization) or output. */
export function jsonSchema(schema: z.ZodType, io: 'input' | 'output'): Json {
  const { $schema: _dialect, ...rest } = z.toJSONSchema(schema, {
    io,
    unrepresentable: 'any',
    override: ({ jsonSchema: made }) => adjust(made as Json, io),
  }) as Json;
  return rest;
}

/**
 * Properties that zod cannot express: money is a number in REST, defaults are optional, and
 * responses can gain fields.
 */
function adjust(made: Json, io: 'input' | 'output'): void {
  for (const name of ['default', 'examples']) {
    const given = made[`input_${name}`];
    if (given !== undefined) made[name] = given;
    delete made[`input_${name}`];
  }
  if (made['money'] === true) {
    made['type'] = 'number';
    delete made['money'];
    delete made['pattern'];
  }
  // zod adds these limits to every integer, but they are not ours.
  if (made['minimum'] === Number.MIN_SAFE_INTEGER) delete made['minimum'];
  if (made['maximum'] === Number.MAX_SAFE_INTEGER) delete made['maximum'];
  if (made['format'] === 'date-time') delete made['pattern'];
  if (made['type'] === 'integer' && typeof made['default'] === 'string') made['default'] = Number(made['default']);
  if (io === 'output' && made['additionalProperties'] === false) delete made['additionalProperties'];
  const { properties, required } = made as { properties?: Record<string, Json>; required?: string[] };
  if (io === 'input' && properties && required)
    made['required'] = required.filter((name) => properties[name]?.['default'] === undefined);
}

/** Resources that have a name in the document. */
const named = new Map<z.ZodType, string>([
  [clientSchema, 'Client'],
  [accountSchema, 'Account'],
  [accountBalanceSchema, 'AccountBalance'],
  [transactionSchema, 'Transaction'],
  [transferSchema, 'Transfer'],
  [holdSchema, 'Hold'],
  [capturedHoldSchema, 'CapturedHold'],
  [batchSchema, 'Batch'],
  [batchSummarySchema, 'BatchSummary'],
  [entrySchema, 'Entry'],
  [entryLineSchema, 'EntryLine'],
  [balanceAtSchema, 'BalanceAt'],
  [statementSchema, 'Statement'],
  [accountDaysSchema, 'AccountDays'],
  [limitsSchema, 'AccountLimits'],
  [dayClosingSchema, 'DayClosing'],
  [dayLineSchema, 'DayLine'],
  [dayBalanceSchema, 'DayBalance'],
  [statusTransitionSchema, 'StatusTransition'],
  [noteSchema, 'Note'],
  [apiKeySchema, 'ApiKey'],
  [apiKeyWithSecretSchema, 'ApiKeyWithSecret'],
  [trialBalanceSchema, 'TrialBalance'],
  [systemAccountSchema, 'SystemAccount'],
  [auditRecordSchema, 'AuditRecord'],
  [auditActorSchema, 'AuditActor'],
  [searchHitSchema, 'SearchHit'],
  [timelineSchema, 'Timeline'],
  [postingStatisticsSchema, 'PostingStatistics'],
  [cashDaysSchema, 'CashDays'],
  [staffDaySchema, 'StaffDay'],
  [tillSchema, 'Till'],
  [operationsSchema, 'Operations'],
  [verificationSchema, 'Verification'],
  [deadLetterSchema, 'DeadLetter'],
  [deadLetterContentSchema, 'DeadLetterContent'],
  [webhookSchema, 'Webhook'],
  [webhookWithSecretSchema, 'WebhookWithSecret'],
  [deliverySchema, 'Delivery'],
  [cloudEventSchema, 'CloudEvent'],
  [approvalSchema, 'Approval'],
  [endpoints.get_approval.result, 'ApprovalWithKey'],
  [errorBodySchema, 'Error'],
]);

export function componentSchemas(): Record<string, Json> {
  return Object.fromEntries([...named].map(([schema, name]) => [name, jsonSchema(schema, 'output')]));
}

/** Returns a reference if the resource has a name, otherwise its schema. */
export function schemaRef(schema: z.ZodType): Json {
  const name = named.get(schema);
  return name === undefined ? jsonSchema(schema, 'output') : { $ref: `#/components/schemas/${name}` };
}
