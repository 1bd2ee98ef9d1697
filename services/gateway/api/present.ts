import { z } from 'zod';

/** Converts resources of messages to those of REST: the same fields, with money as JSON numbers. */

type Present = (value: unknown) => unknown;

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

/** Returns a function that converts the fields marked as money to numbers, or undefined if the schema has none. */
export function createPresenter(schema: z.ZodType): Present | undefined {
  if (z.globalRegistry.get(schema)?.['money'] === true)
    return (value) => (typeof value === 'string' ? jsonNumber(value) : value);
  if (schema instanceof z.ZodArray) return eachItem(createPresenter(schema.element as z.ZodType));
  if (schema instanceof z.ZodOptional || schema instanceof z.ZodNullable)
    return createPresenter(schema.unwrap() as z.ZodType);
  if (schema instanceof z.ZodObject) return eachField(schema.shape as Record<string, z.ZodType>);
  return undefined;
}

function eachItem(present: Present | undefined): Present | undefined {
  return present && ((value) => (Array.isArray(value) ? value.map(present) : value));
}

function eachField(shape: Record<string, z.ZodType>): Present | undefined {
  const fields = Object.entries(shape).flatMap(([name, field]) => {
    const present = createPresenter(field);
    return present ? [[name, present] as const] : [];
  });
  if (fields.length === 0) return undefined;
  return (value) => {
    if (typeof value !== 'object' || value === null) return value;
    const shown: Record<string, unknown> = { ...value };
    for (const [name, present] of fields) if (shown[name] !== undefined) shown[name] = present(shown[name]);
    return shown;
  };
}
