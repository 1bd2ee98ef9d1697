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

/** In resources and events; omitted if not set. */
export const shownNames = {
  external_id: z.string().optional(),
  metadata: z.record(z.string(), z.string()).optional(),
};

export interface Names {
  external_id?: string;
  metadata?: Record<string, string>;
}

/** As received: null and undefined mean not set. */
export type GivenNames = { [N in keyof Names]?: Names[N] | null | undefined };

/** Returns external_id and metadata if they are set. Pure. */
export function pickNames(from: GivenNames): Names {
  const { external_id, metadata: noted } = from;
  return {
    ...(external_id === undefined || external_id === null ? {} : { external_id }),
    ...(noted === undefined || noted === null ? {} : { metadata: noted }),
  };
}
