import { z } from 'zod';
import { statusEvents } from './account-status.ts';
import { accountEvents, accountStates } from './accounts.ts';
import { apiKeyStates } from './api-keys.ts';
import { approvalEvents } from './approvals.ts';
import { auditEvents } from './audit.ts';
import { batchEvents } from './batches.ts';
import { clientEvents, clientStates } from './clients.ts';
import { dayEvents } from './days.ts';
import { erasureEvents } from './erasure.ts';
import { holdEvents } from './holds.ts';
import { transactionEvents } from './transactions.ts';
import { transferEvents } from './transfers.ts';
import { webhookEvents } from './webhook-events.ts';

/**
 * Events for downstream systems: CloudEvents 1.0, delivered at least once, with the same ce_id on every repeat,
 * in order per key, and never published for a transaction that rolled back. Within a version, types only gain
 * fields (docs/events-evolution.md).
 */
export const events = {
  ...transactionEvents,
  ...transferEvents,
  ...holdEvents,
  ...batchEvents,
  ...accountEvents,
  ...statusEvents,
  ...clientEvents,
  ...erasureEvents,
  ...dayEvents,
  ...approvalEvents,
  ...webhookEvents,
  ...accountStates,
  ...clientStates,
  ...auditEvents,
  ...apiKeyStates,
};

/** Headers of an event: CloudEvents 1.0 in Kafka's binary content mode, and the ids used in logs and traces. */
export const eventHeadersSchema = z.object({
  ce_specversion: z.literal('1.0').describe('CloudEvents version'),
  ce_id: z.guid().describe('The same on every publication of the event, so that consumers recognize repeats'),
  ce_type: z
    .string()
    .regex(/^corebanking\.[a-z_]+(\.[a-z_]+)?\.v\d+$/)
    .describe('The event type, with its version'),
  ce_source: z
    .string()
    .regex(/^\/core-banking\/(ledger|accounts|gateway|webhooks)$/)
    .describe('The service that published the event'),
  ce_dataschema: z
    .string()
    .regex(/^urn:corebanking:/)
    .optional()
    .describe('The $id of the schema of the data; events from before 1.0.0 lack it'),
  ce_time: z.iso
    .datetime({ precision: 3 })
    .describe('The time of the change by the clock of the bank; UTC with three decimals'),
  ce_subject: z.string().describe('The message key'),
  'content-type': z.literal('application/json').describe('The content type of the value'),
  'request-id': z
    .string()
    .optional()
    .describe('X-Request-Id of the request that caused the event, as in logs and in the audit'),
  traceparent: z.string().optional().describe('W3C trace context of that request'),
});

/** Returns the schema name of an event type: the `$id` of its schema and the `ce_dataschema` of its events. */
export function schemaId(type: string): string {
  return `urn:corebanking:event:${type}`;
}

/** Returns the address of that schema at a gateway: the `dataschema` of events over HTTP. */
export function schemaUrl(apiUrl: string, type: string): string {
  return `${apiUrl.replace(/\/+$/, '')}/docs/events/${type}.schema.json`;
}

export type EventType = keyof typeof events;
export type EventData<T extends EventType> = z.infer<(typeof events)[T]['data']>;
