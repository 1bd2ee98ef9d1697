import { z } from 'zod';
import { eventClient } from './clients.ts';
import { type EndpointRows, event, example, type Meanings, meaning, message, shown } from './subject.ts';

/** Erasure of a client's personal data (contract: clients). */

/** The text that replaces an erased one. */
export const erasedText = '(erased)';

/** The number of records of a client that an erasure replaced, and where data of the client remains and until when. */
export const erasureSchema = z
  .object({
    client_id: z.string(),
    erased_at: shown.time,
    /** The number of each that this request replaced, not counting earlier requests. */
    replaced: z
      .object({
        kept_replies: z.number().int().min(0),
        audit_records: z.number().int().min(0),
        approvals: z.number().int().min(0),
        status_notes: z.number().int().min(0),
      })
      .meta({ id: 'ErasureCounts' }),
    revoked_keys: z.number().int().min(0),
    /** `gone_at`: the time after which nothing remains; null if it is never deleted automatically. */
    remaining: z.array(
      z.object({ place: z.string(), holds: z.string(), gone_at: shown.time.nullable() }).meta({ id: 'RemainingData' }),
    ),
  })
  .meta({ id: 'Erasure' });
export type Erasure = z.infer<typeof erasureSchema>;

export const erasureEndpoints = {
  erase_client: {
    route: 'POST /admin/clients/:client_id/erasure',
    summary: 'Erase the personal data of a client',
    scope: 'clients:erase',
    description:
      'Replaces names, contact data, and notes, also in stored responses, approvals, and audit records, and revokes bound API keys. Postings, holds, and batches keep their texts, like the books; so do approvals of captures and reversals, whose requests name neither the client nor an account. The client can no longer be changed. Every account of the client must be Inactive and empty, and must have been opened, changed, and last posted to more than RETENTION_YEARS ago; otherwise erasure_refused names each account and the reason. The response lists the data that remains and when it is deleted. A repeat replaces what was added since.',
    errors: ['erasure_refused'],
    answers: {
      erased: {
        remaining: [
          { place: 'topic transactions', holds: 'descriptions and references', gone_at: '2038-02-13T09:00:00.000Z' },
        ],
      },
    },
  },
} satisfies EndpointRows;

export const erasureMessages = {
  /** Starts the erasure saga: see services/accounts/erasure. */
  erase_client: message.accounts.command({ client_id: message.id }, erasureSchema),
  /**
   * The ledger's step of an erasure, which is refused while an account of the client is not Inactive, has money, or has a
   * posting after `kept_since`. It is on the queries topic, because it changes nothing in the ledger.
   */
  check_erasure: message.command(
    'ledger.queries',
    z.object({ client_id: event.idField('client'), kept_since: message.time }),
    z.object({}),
  ),
};

export const erasureEvents = {
  /** Consumers that store data of the client must erase it too. */
  'corebanking.client.erased.v1': event.row('clients', {
    summary: 'The personal data of a client was erased. Erase your copies too',
    fields: { ...eventClient, erased_at: event.moment, ...event.asked },
  }),
};

export const erasureMeanings = {
  fields: {
    erased_at: `When the client's personal data was erased, ${meaning.utc}; omitted if it was not`,
    replaced: 'Counts of what this request replaced',
    kept_replies: 'Number of stored responses from which personal data was removed',
    audit_records: 'Number of audit records from which personal details were removed',
    approvals: 'Number of approvals from which personal details were removed',
    status_notes: 'Number of notes on the client, their accounts, and status changes that were replaced',
    revoked_keys: 'Number of revoked API keys that were bound to the client',
    remaining: 'Where personal data remains, and until when',
    place: 'The place',
    holds: 'What remains there',
    gone_at: `When it is deleted, ${meaning.utc}; null: never automatically`,
  },
  errors: {
    erasure_refused: {
      meaning: 'The client cannot be erased yet.',
      action: 'See the message and `details`.',
      example: [
        `client ${example.ids.client} cannot be erased: 1 of their accounts must be kept`,
        {
          details: {
            accounts: [
              {
                account_id: example.ids.account,
                reasons: ['within_retention'],
                kept_until: '2036-01-02T03:04:05.678Z',
              },
            ],
          },
        },
      ],
    },
    client_erased: {
      meaning: 'The client was erased and can no longer be changed.',
      action: 'Create a new client.',
      example: [`client ${example.ids.client} was erased and can no longer be changed`],
    },
  },
} satisfies Meanings;
