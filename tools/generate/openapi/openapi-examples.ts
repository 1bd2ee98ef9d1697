import { z } from 'zod';
import type { Endpoint } from '#libs/contracts/endpoints.ts';
import { type ErrorCode, refusal } from '#libs/contracts/errors.ts';
import { kindFromField } from '#libs/contracts/ids.ts';
import { type Statement, statementSchema } from '#libs/contracts/statements.ts';
import { example } from '#libs/contracts/subject.ts';
import { camtEnd, camtEntries, camtStart } from '#services/gateway/api/camt.ts';
import { errorMeanings } from '../meanings.ts';
import { sample } from '../samples.ts';
import { type Json, jsonSchema, unnamed } from './openapi-schemas.ts';

/** Returns an example of a path parameter. */
export function pathExample(name: string): string {
  const kind = kindFromField(name);
  if (kind) return example.ids[kind];
  return name === 'accountNumber' ? example.accountNumber : name;
}

/** Example bodies of an operation, by name. */
export function requestExamples({ requests, body }: Endpoint): Record<string, Json> {
  return body ? samples(jsonSchema(body, 'input'), requests) : {};
}

/** Resources that the operation returns, by the name of the example. */
export function answerExamples({ answers, result }: Endpoint): Record<string, Json> {
  return samples(jsonSchema(result, 'output'), answers);
}

function samples(schema: Json, said: Record<string, object> = { example: {} }): Record<string, Json> {
  return Object.fromEntries(Object.entries(said).map(([title, one]) => [title, sample(schema, one) as Json]));
}

/** Returns the example of a statement as camt.053, made as the gateway makes it. */
export function camtExample(): string {
  const statement = sample(z.toJSONSchema(statementSchema, { metadata: unnamed })) as Statement;
  const on = '2026-01-02';
  return (
    camtStart({ statement, on, holder: 'Ada Lovelace', created_at: Date.parse('2026-01-03T03:04:05.678Z') }) +
    camtEntries(statement, on) +
    camtEnd
  );
}

/** Returns an error body with that code. */
export function errorExample(code: ErrorCode): Json {
  const [message, rest] = errorMeanings[code].example;
  return { status: 'error', ...refusal(code, message, rest), request_id: example.ids.request };
}
