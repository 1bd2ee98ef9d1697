import { z } from 'zod';
import type { Endpoint, EndpointName } from '#libs/contracts/endpoints.ts';
import { endpoints } from '#libs/contracts/endpoints.ts';
import type { Json } from './openapi-schemas.ts';

/** Path parameters whose names differ from those of the fields. */
const fieldNames: Record<string, string> = { accountNumber: 'account_number' };

/**
 * Returns the OpenAPI links of a creation: every operation whose path contains the id or the number of the created
 * resource. `{}` if nothing is created.
 */
export function links(name: EndpointName): { links?: Json } {
  const { success, shape, result }: Endpoint = endpoints[name];
  if (success !== 201) return {};
  const data = shape === 'bare' ? '$response.body#' : '$response.body#/data';
  const fields = ownNames(result);
  const found = Object.entries(endpoints).flatMap(([target, { path, summary }]) => {
    const [, parameter = ''] = /:(\w+)/.exec(path) ?? [];
    const field = fieldNames[parameter] ?? parameter;
    return fields.includes(field)
      ? [[target, { operationId: target, parameters: { [parameter]: `${data}/${field}` }, description: summary }]]
      : [];
  });
  return { links: Object.fromEntries(found) as Json };
}

/** Returns the fields that identify a resource: the first one of its schema is its id. */
function ownNames(result: z.ZodType): string[] {
  const one = result instanceof z.ZodDiscriminatedUnion ? result.options[0] : result;
  const [id = '', ...rest] = one instanceof z.ZodObject ? Object.keys(one.shape) : [];
  return [id, ...rest.filter((field) => field === 'account_number')];
}
