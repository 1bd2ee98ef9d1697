/** What a client accepts (RFC 9110, 12.5.1). */

const problem = 'application/problem+json';

/** Returns the weight of each media type and range that an Accept header names. */
function acceptedTypes(accept: string): ReadonlyMap<string, number> {
  return new Map(
    accept.split(',').map((part) => {
      const [type = '', ...parameters] = part.split(';').map((text) => text.trim().toLowerCase());
      const [, q = '1'] = /^q=([01](?:\.\d{0,3})?)$/.exec(parameters.find((one) => one.startsWith('q=')) ?? '') ?? [];
      return [type, Number(q)];
    }),
  );
}

/** Reports whether this Accept header prefers CSV to JSON lines: it names CSV, with at least the weight of the other. Pure. */
export function prefersCsv(accept = ''): boolean {
  const wanted = acceptedTypes(accept);
  const own = wanted.get('text/csv') ?? wanted.get('text/*') ?? 0;
  const other = wanted.get('application/x-ndjson') ?? wanted.get('application/*') ?? wanted.get('*/*') ?? 0;
  return own > 0 && own >= other;
}

/**
 * Returns the one of these media types that this Accept header prefers to JSON, or undefined: it names the type, and does not
 * prefer JSON. Browsers name HTML; programs that accept anything get JSON. If it names several types with the same weight,
 * the first of the list. Pure.
 */
export function preferredType<T extends string>(accept = '', types: readonly T[]): T | undefined {
  const wanted = acceptedTypes(accept);
  const own = Math.max(...types.map((type) => wanted.get(type) ?? 0));
  const json = wanted.get('application/json');
  const isPreferred =
    own > 0 && (json === undefined ? own >= (wanted.get('application/*') ?? wanted.get('*/*') ?? 0) : own > json);
  return isPreferred ? types.find((type) => wanted.get(type) === own) : undefined;
}

/**
 * Reports whether this Accept header asks for errors as RFC 9457 describes them: it names their type, and does not prefer
 * JSON. A client that names both gets them, because it has no other reason to name that type. Pure.
 */
export function prefersProblem(accept: string | undefined): boolean {
  if (accept === undefined || !/problem\+json/i.test(accept)) return false;
  const wanted = acceptedTypes(accept);
  const own = wanted.get(problem) ?? 0;
  return own > 0 && own >= (wanted.get('application/json') ?? wanted.get('application/*') ?? wanted.get('*/*') ?? 0);
}
