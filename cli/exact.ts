type Reviver = (key: string, value: unknown, context: { source: string }) => unknown;
// Available since Node 21, but not yet in TypeScript's library.
const { parse, rawJSON } = JSON as unknown as {
  parse(text: string, reviver: Reviver): unknown;
  rawJSON(text: string): number;
};

/**
 * Parses JSON so that no digit of an amount is lost: a number of more than 15 digits, as totals of the books may have, is
 * kept as its text. JSON.stringify returns that text; nothing can be calculated with it.
 */
export function parseExactly(text: string): unknown {
  if (!/\d[\d.]{15}/.test(text)) return JSON.parse(text);
  return parse(text, (_key, value, { source }) =>
    typeof value === 'number' && source.replace(/\D/g, '').length > 15 ? rawJSON(source) : value,
  );
}
