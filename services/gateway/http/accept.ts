/** What a client accepts (RFC 9110, 12.5.1). */

const problem = 'application/problem+json';

/** Returns the weight of each media type and range that an Accept header names. */
export function acceptedTypes(accept: string): ReadonlyMap<string, number> {
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
 * Reports whether this Accept header asks for errors as RFC 9457 describes them: it names their type, and does not prefer
 * JSON. A client that names both gets them, because it has no other reason to name that type. Pure.
 */
export function prefersProblem(accept: string | undefined): boolean {
  if (accept === undefined || !/problem\+json/i.test(accept)) return false;
  const wanted = acceptedTypes(accept);
  const own = wanted.get(problem) ?? 0;
  return own > 0 && own >= (wanted.get('application/json') ?? wanted.get('application/*') ?? wanted.get('*/*') ?? 0);
}
