import { z } from 'zod';

/**
 * external_id and metadata (contract: names): a caller's own id for a resource, and strings
 * stored with it.
 */
const maxKeys = 20;
const maxValue = 500;
const keyForm = /^[a-z0-9_.-]{1,40}$/;
const externalIdForm = /^[\x20-\x7e]{1,128}$/;
const control = /[\u0000-\u001f\u007f-\u009f]/;

const keyPattern = '^[a-z0-9_.-]{1,40}$';
const shown = '[^\\u0000-\\u001f\\u007f-\\u009f]';

/** Stored unchanged: not trimmed, and case-sensitive. */
export const externalId = z
  .string()
  .regex(externalIdForm, 'must have 1 to 128 printable ASCII characters')
  .meta({
    minLength: 1,
    maxLength: 128,
    input_examples: ['core-4711'],
  });

function brokenBy(value: unknown): string | undefined {
  if (typeof value !== 'string') return 'must be a string';
  if ([...value].length > maxValue) return `must have at most ${maxValue} characters`;
  return control.test(value) ? 'must not contain control characters' : undefined;
}

/** Named strings. An empty object becomes null. */
const metadata = z
  .record(z.string(), z.unknown())
  .transform((value, ctx) => {
    const entries = Object.entries(value);
    const broken = (message: string, path: string[] = []) =>
      ctx.addIssue({ code: 'custom', params: { code: 'validation_failed' }, path, message });
    if (entries.length > maxKeys) broken(`must have at most ${maxKeys} keys`);
    else
      for (const [key, item] of entries) {
        const rule = keyForm.test(key) ? brokenBy(item) : 'is not a key of 1 to 40 of the characters a-z 0-9 _ . -';
        if (rule !== undefined) broken(rule, [key]);
      }
    return entries.length === 0 ? null : (value as Record<string, string>);
  })
  .meta({
    maxProperties: maxKeys,
    propertyNames: { type: 'string', pattern: keyPattern },
    additionalProperties: { type: 'string', maxLength: maxValue, pattern: `^${shown}*$` },
    input_examples: [{ branch: 'Nairobi 3', 'crm.id': 'A-17' }],
  });

/** In requests and commands. */
export const givenNames = { external_id: externalId.nullish(), metadata: metadata.nullish() };
/** Filters of a list, given as `metadata.<key>=<value>`. */
export const metadataFilters = { metadata: metadata.optional() };
export const listedMetadata =
  'Only those whose metadata has this value under this key, such as `metadata.order=17`; all of several. Needs account_id or a period';
/** Metadata has no index, so a list by metadata is confined to an account or a period (contract: names-11). */
export const metadataConfined = z.superRefine<Record<string, unknown>>(
  ({ metadata: filters, account_id, from, to, effective_from, effective_to }, ctx) => {
    if (typeof filters !== 'object' || (account_id ?? from ?? to ?? effective_from ?? effective_to) !== undefined)
      return;
    const message = 'needs account_id or a period (from, to, effective_from, or effective_to)';
    for (const key in filters) ctx.addIssue({ code: 'custom', path: ['metadata', key], message });
  },
  { when: () => true },
);
/** The metadata of a client or account that credentials bound to the client give. */
export const clientsOwn = { client_metadata: metadata.nullish() };

const texts = z.record(z.string(), z.string()).optional();

/** In resources and events; omitted if not set. `metadata_client_id` names the client whose credentials gave the metadata. */
export const shownNames = {
  external_id: z.string().optional(),
  metadata: texts,
  metadata_client_id: z.string().optional(),
};

/** In clients and accounts, whose metadata is the bank's. */
export const shownMasterNames = { external_id: shownNames.external_id, metadata: texts, client_metadata: texts };

export interface Names {
  external_id?: string;
  metadata?: Record<string, string>;
  metadata_client_id?: string;
  client_metadata?: Record<string, string>;
}

/** As received: null and undefined mean not set. */
export type GivenNames = { [N in keyof Names]?: Names[N] | null | undefined };

/** Returns those of the names that are set. Pure. */
export function pickNames(from: GivenNames): Names {
  const { external_id, metadata: noted, metadata_client_id, client_metadata } = from;
  return {
    ...(external_id === undefined || external_id === null ? {} : { external_id }),
    ...(noted === undefined || noted === null ? {} : { metadata: noted }),
    ...(metadata_client_id === undefined || metadata_client_id === null ? {} : { metadata_client_id }),
    ...(client_metadata === undefined || client_metadata === null ? {} : { client_metadata }),
  };
}

/** Returns a resource as credentials bound to this client see it: without metadata that others gave. Pure. */
export function showNamesTo<T extends object>(clientId: string | undefined, resource: T): T {
  const { metadata: _, metadata_client_id, ...shown } = resource as T & Names;
  return clientId === undefined || metadata_client_id === clientId ? resource : (shown as unknown as T);
}
