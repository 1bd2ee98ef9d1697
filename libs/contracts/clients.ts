import { z } from 'zod';
import { email, emailParameter } from './emails.ts';
import { clientsOwn, externalId, givenNames, shownMasterNames } from './names.ts';
import { phone, phoneParameter } from './phones.ts';
import { type EndpointRows, event, example, field, type Meanings, meaning, message, shown } from './subject.ts';
import { nameText, text } from './texts.ts';

/** Clients (contract: clients): people and organizations that have accounts. */

const clientType = z.enum(['Retail', 'Corporate']);
const ussdStatus = z.enum(['active', 'inactive']);

/** The fields that identify a client. Bound credentials cannot change them, and previous values are audited. */
export const identityFields = ['first_name', 'last_name', 'company_name', 'registration_number'] as const;
/** The fields by which the bank reaches and recognizes a client. Whoever changes them alone could take over accounts. */
const contactFields: readonly string[] = [
  ...identityFields,
  'email',
  'contact_number',
  'ussd_phone_number',
  'ussd_status',
];

/**
 * Reports whether a change of this field is one of how the bank reaches the client. Switching the USSD phone off only
 * protects the client, and must not wait.
 */
export function isContact([field, value]: readonly [string, unknown]): boolean {
  return contactFields.includes(field) && value !== 'inactive';
}

const shownContact = {
  email: z.string(),
  contact_number: z.string(),
  address: z.string().nullable(),
  /** Set if the client was erased; all personal data is then replaced. */
  erased_at: shown.time.optional(),
};

export const clientSchema = z
  .discriminatedUnion('client_type', [
    z
      .object({
        client_id: z.string(),
        client_type: z.literal('Retail'),
        first_name: z.string(),
        last_name: z.string(),
        ...shownContact,
        ussd_phone_number: z.string().nullable(),
        ussd_status: ussdStatus,
        ...shownMasterNames,
        created_at: shown.time,
        updated_at: shown.time,
      })
      .meta({ id: 'RetailClient' }),
    z
      .object({
        client_id: z.string(),
        client_type: z.literal('Corporate'),
        company_name: z.string(),
        registration_number: z.string(),
        ...shownContact,
        ...shownMasterNames,
        created_at: shown.time,
        updated_at: shown.time,
      })
      .meta({ id: 'CorporateClient' }),
  ])
  .meta({ id: 'Client' });
export type Client = z.infer<typeof clientSchema>;

/** Returns the name by which people know the client. Pure. */
export const clientName = (client: Client): string =>
  client.client_type === 'Corporate' ? client.company_name : `${client.first_name} ${client.last_name}`;

const contact = { email, contact_number: phone, address: text(0, 500, { lines: true }).nullish() };

const clientNames = {
  first_name: nameText(1, 100),
  last_name: nameText(1, 100),
  company_name: nameText(1, 200),
  registration_number: nameText(1, 64),
};

const retailBody = z
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
    field.rule(
      'validation_failed',
      'ussd_phone_number',
      'is required when ussd_status is active',
      (body) => body['ussd_status'] !== 'active' || Boolean(body['ussd_phone_number']),
    ),
  )
  .meta(field.needsWhen('ussd_status', 'active', 'ussd_phone_number'))
  .meta({ id: 'CreateRetailClientRequest' });

const corporateBody = z
  .strictObject({
    client_type: z.literal('Corporate'),
    company_name: clientNames.company_name,
    registration_number: clientNames.registration_number,
    ...contact,
    ...givenNames,
  })
  .meta({ id: 'CreateCorporateClientRequest' });

const createBody = z.discriminatedUnion('client_type', [retailBody, corporateBody]).meta({ id: 'CreateClientRequest' });
const changes = z
  .strictObject({
    ...z.object(clientNames).partial().shape,
    email: email.optional(),
    contact_number: phone.optional(),
    address: contact.address,
    ussd_phone_number: phone.nullish(),
    ussd_status: ussdStatus.optional(),
    ...givenNames,
    ...clientsOwn,
  })
  .check(field.changesSomething)
  .meta({ minProperties: 1 });

const clientSearches = {
  client_ids: field.ids('cli'),
  email: emailParameter.optional(),
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

const listFilters = z.strictObject({
  client_type: clientType.optional(),
  ussd_phone: phoneParameter.optional(),
  ...clientSearches,
  external_id: externalId.optional(),
  ...field.page,
});
const ussdFilter = z.strictObject({ ussd_phone: phoneParameter });

const types = { Retail: { client_type: 'Retail' }, Corporate: { client_type: 'Corporate' } };
const names = { external_id: 'crm-A17', metadata: { segment: 'student' } };

export const clientEndpoints = {
  list_clients: {
    route: 'GET /clients',
    summary: 'List clients',
    scope: 'clients:read',
    query: listFilters,
    shape: 'page',
    answers: types,
  },
  search_client_by_ussd: {
    route: 'GET /clients/ussd/search',
    summary: 'Find a Retail client by USSD phone number',
    scope: 'clients:read',
    query: ussdFilter,
    versioned: true,
    errors: ['client_not_found'],
  },
  get_client: {
    route: 'GET /clients/:client_id',
    summary: 'Get a client',
    scope: 'clients:read',
    versioned: true,
    answers: types,
  },
  create_client: {
    route: 'POST /clients',
    summary: 'Create a client',
    scope: 'clients:write',
    bankOnly: true,
    body: createBody,
    description: 'Not for credentials bound to one client.',
    success: 201,
    versioned: true,
    errors: ['duplicate_ussd_phone', 'duplicate_external_id'],
    requests: { ...types, USSD: { client_type: 'Retail', ussd_phone_number: '+254700000001', ussd_status: 'active' } },
    answers: types,
  },
  update_client: {
    route: 'PATCH /clients/:client_id',
    summary: 'Update a client: names, contact fields, USSD phone and status, external_id, and metadata',
    scope: 'clients:write',
    body: changes,
    description:
      'Omitted fields keep their values. Credentials bound to a client cannot change names and the registration number (the audit log records their previous values); a new USSD phone of theirs is inactive until the bank activates it, and `metadata` of theirs is `client_metadata`. With `If-Match`, the client is changed only if it still has this `ETag`.',
    versioned: true,
    errors: ['client_erased', 'duplicate_ussd_phone', 'duplicate_external_id'],
    requests: {
      address: { address: '12 St James Square' },
      name: { last_name: 'King' },
      names,
      'no metadata': { metadata: null },
    },
    answers: { address: {}, names },
  },
} satisfies EndpointRows;

export const clientMessages = {
  create_client: message.accounts.command({ client_id: message.id, client: createBody }, clientSchema),
  update_client: message.accounts.command(
    { client_id: message.id, changes, if_match: z.array(z.string()).optional() },
    clientSchema,
  ),
  list_clients: message.accounts.query(message.listRequest(listFilters), message.pageSchema(clientSchema)),
  get_client: message.accounts.query({ client_id: message.id }, clientSchema),
  search_client_by_ussd: message.accounts.query(ussdFilter.shape, clientSchema),
};

export const eventClient = { client_id: event.idField('client'), client_type: clientType };

export const clientEvents = {
  /** Ids, type, external_id, metadata, and the names of changed fields; no personal data. */
  'corebanking.client.created.v1': event.row('clients', {
    summary: 'A client was created. Contains no personal data',
    fields: { ...eventClient, created_at: event.moment, ...shownMasterNames, ...event.asked },
  }),
  'corebanking.client.updated.v1': event.row('clients', {
    summary: 'Fields of a client were changed. Contains the names of the fields but not their values',
    fields: {
      ...eventClient,
      changed_fields: z.array(z.string()),
      updated_at: event.moment,
      ...shownMasterNames,
      ...event.asked,
    },
    example: { changed_fields: ['email'] },
  }),
};

export const clientStates = {
  /** The master data of a client after every change, without personal data; the topic is compacted. */
  'corebanking.client.v1': event.row('client-masters', {
    summary:
      'The master data of a client after a change, without personal data; the topic keeps the latest of each client forever',
    fields: {
      ...eventClient,
      created_at: event.moment,
      updated_at: event.moment,
      erased_at: event.moment.nullable(),
      ...shownMasterNames,
    },
  }),
};

export const clientMeanings = {
  fields: {
    client_id: `The client: \`cli_\` and 32 hexadecimal digits, ${meaning.opaque}`,
    client_ids: 'Only these clients: at most 100 ids, separated by commas',
    client_type: 'Retail: a person; Corporate: a business or organization. Never changes',
    first_name: 'First name of a Retail client: 1 to 100 characters in any script',
    last_name: 'Last name of a Retail client: 1 to 100 characters in any script',
    company_name: 'Name of a Corporate client: 1 to 200 characters in any script',
    registration_number: 'Registration number of a Corporate client: 1 to 64 characters',
    email: 'E-mail address, at most 254 characters; a domain beyond ASCII in its ASCII form (punycode)',
    contact_number: 'Phone number in E.164: `+` and 7 to 15 digits',
    address: 'Postal address with lines separated by line feeds, at most 500 characters; null: none',
    ussd_phone_number: 'Phone number for USSD banking in E.164; active for at most one client at a time; null: none',
    ussd_status: 'Whether USSD banking is enabled',
    'list_clients.email': 'Only clients with this e-mail address, ignoring case, with its domain in either form',
    'list_clients.registration_number': 'Only clients with this registration number, ignoring case',
  },
  eventFields: {
    changed_fields: 'Field names as in REST',
  },
  errors: {
    duplicate_ussd_phone: {
      meaning: 'Another client has this USSD phone number active.',
      action: 'Deactivate it there first.',
      example: ['another client has this USSD phone number active'],
    },
    client_not_found: meaning.notFound('client', example.ids.client),
  },
} satisfies Meanings;
