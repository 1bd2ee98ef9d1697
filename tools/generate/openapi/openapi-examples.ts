import { type Endpoint, type EndpointName, endpoints } from '#libs/contracts/endpoints.ts';
import { type ErrorCode, refusal } from '#libs/contracts/errors.ts';
import { kindFromField } from '#libs/contracts/ids.ts';
import { example } from '#libs/contracts/subject.ts';
import { errorMeanings } from '../meanings.ts';
import type { Json } from './openapi-schemas.ts';

/** Returns an example of a path parameter. */
export function pathExample(name: string): string {
  const kind = kindFromField(name);
  if (kind) return example.ids[kind];
  return name === 'accountNumber' ? example.accountNumber : name;
}

export function requestExamples(name: EndpointName): Record<string, Json> {
  const { requests = {} }: Endpoint = endpoints[name];
  return Object.fromEntries(Object.entries(requests).map(([title, value]) => [title, { value }]));
}

/** Resources that the operation returns, by the name of the example. */
export function answerExamples(name: EndpointName): Record<string, object> {
  return endpoints[name].answers;
}

/** Returns an error body with that code. */
export function errorExample(code: ErrorCode): Json {
  const [message, rest] = errorMeanings[code].example;
  return { status: 'error', ...refusal(code, message, rest), request_id: example.ids.request };
}
