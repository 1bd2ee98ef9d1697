import { z } from 'zod';
import { showNamesTo } from '#libs/contracts/names.ts';

/** Converts resources of messages to those of REST: the same fields, with money as JSON numbers. */

/** `bound`: the client to which the caller is bound, who does not see metadata that others gave. */
type Present = (value: unknown, bound?: string) => unknown;

const exactDigits = 15;
// In V8 since Node 21, but not yet in the compiler's library.
const { rawJSON } = JSON as typeof JSON & { rawJSON(text: string): unknown };

/**
 * Converts a decimal string to a JSON number. With more than 15 digits (Vault only) the text is written as it
 * is, so that no digit is lost.
 */
export function jsonNumber(decimal: string): unknown {
  return decimal.length <= exactDigits ? Number(decimal) : rawJSON(decimal);
}

/** Returns a function that converts fields marked as money to numbers and hides metadata, or undefined if the schema has neither. */
export function createPresenter(schema: z.ZodType): Present | undefined {
  if (z.globalRegistry.get(schema)?.['money'] === true)
    return (value) => (typeof value === 'string' ? jsonNumber(value) : value);
  if (schema instanceof z.ZodArray) return eachItem(createPresenter(schema.element as z.ZodType));
  if (schema instanceof z.ZodOptional || schema instanceof z.ZodNullable)
    return createPresenter(schema.unwrap() as z.ZodType);
  if (schema instanceof z.ZodDiscriminatedUnion)
    return eachField(Object.assign({}, ...schema.options.map((option) => (option as z.ZodObject).shape)));
  if (schema instanceof z.ZodObject) return eachField(schema.shape as Record<string, z.ZodType>);
  return undefined;
}

function eachItem(present: Present | undefined): Present | undefined {
  return present && ((value, bound) => (Array.isArray(value) ? value.map((item) => present(item, bound)) : value));
}

function eachField(shape: Record<string, z.ZodType>): Present | undefined {
  const fields = Object.entries(shape).flatMap(([name, field]) => {
    const present = createPresenter(field);
    return present ? [[name, present] as const] : [];
  });
  const hasMetadata = Object.hasOwn(shape, 'metadata');
  if (fields.length === 0 && !hasMetadata) return undefined;
  return (value, bound) => {
    if (typeof value !== 'object' || value === null) return value;
    const shown: Record<string, unknown> = { ...(hasMetadata ? showNamesTo(bound, value) : value) };
    for (const [name, present] of fields) if (shown[name] !== undefined) shown[name] = present(shown[name], bound);
    return shown;
  };
}
