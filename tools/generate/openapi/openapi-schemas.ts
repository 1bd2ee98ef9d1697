import { z } from 'zod';
import * as administration from '#libs/contracts/administration.ts';
import { approvalSchema } from '#libs/contracts/approvals.ts';
import { endpoints } from '#libs/contracts/endpoints.ts';
import { errorBodySchema } from '#libs/contracts/errors.ts';
import { capturedHoldSchema, holdSchema } from '#libs/contracts/holds.ts';
import * as resources from '#libs/contracts/resources.ts';
import * as webhooks from '#libs/contracts/webhooks.ts';

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

const withSecret = endpoints.create_api_key.result;

/** Resources that have a name in the document. */
const named = new Map<z.ZodType, string>([
  [resources.clientSchema, 'Client'],
  [resources.accountSchema, 'Account'],
  [resources.accountBalanceSchema, 'AccountBalance'],
  [resources.transactionSchema, 'Transaction'],
  [resources.transferSchema, 'Transfer'],
  [holdSchema, 'Hold'],
  [capturedHoldSchema, 'CapturedHold'],
  [resources.batchSchema, 'Batch'],
  [resources.batchSummarySchema, 'BatchSummary'],
  [resources.entrySchema, 'Entry'],
  [resources.entryLineSchema, 'EntryLine'],
  [resources.balanceAtSchema, 'BalanceAt'],
  [resources.statementSchema, 'Statement'],
  [resources.statusTransitionSchema, 'StatusTransition'],
  [resources.noteSchema, 'Note'],
  [resources.apiKeySchema, 'ApiKey'],
  [withSecret, 'ApiKeyWithSecret'],
  [resources.trialBalanceSchema, 'TrialBalance'],
  [resources.systemAccountSchema, 'SystemAccount'],
  [administration.auditRecordSchema, 'AuditRecord'],
  [administration.searchHitSchema, 'SearchHit'],
  [administration.timelineSchema, 'Timeline'],
  [administration.postingStatisticsSchema, 'PostingStatistics'],
  [administration.operationsSchema, 'Operations'],
  [administration.verificationSchema, 'Verification'],
  [administration.deadLetterSchema, 'DeadLetter'],
  [administration.deadLetterContentSchema, 'DeadLetterContent'],
  [webhooks.webhookSchema, 'Webhook'],
  [webhooks.webhookWithSecretSchema, 'WebhookWithSecret'],
  [webhooks.deliverySchema, 'Delivery'],
  [webhooks.cloudEventSchema, 'CloudEvent'],
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
