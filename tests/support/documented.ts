import { readFileSync } from 'node:fs';

interface Operation {
  method: string;
  form: RegExp;
  /** Error codes of each status that OpenAPI lists: each has an example. */
  codes: Map<number, string[]>;
}

type Response = {
  $ref?: string;
  content?: { 'application/json'?: { examples?: Record<string, object> } };
};

const { paths, components } = JSON.parse(readFileSync(new URL('../../docs/openapi.json', import.meta.url), 'utf8')) as {
  paths: Record<string, Record<string, { responses: Record<string, Response> }>>;
  components: { responses: Record<string, Response> };
};

function listCodes({ $ref, content }: Response): string[] {
  if ($ref !== undefined) return listCodes(components.responses[$ref.replace(/^.*\//, '')] ?? {});
  return Object.keys(content?.['application/json']?.examples ?? {});
}

const operations = Object.entries(paths).flatMap(([path, methods]) =>
  Object.entries(methods).map(
    ([method, { responses }]): Operation => ({
      method: method.toUpperCase(),
      form: new RegExp(`^${path.replace(/\{\w+\}/g, '[^/]+')}$`),
      codes: new Map(Object.entries(responses).map(([status, response]) => [Number(status), listCodes(response)])),
    }),
  ),
);

/** Throws if a response has a status or an error code that docs/openapi.json does not document. */
export function checkDocumented(method: string, path: string, status: number, text: string): void {
  const operation = operations.find((one) => one.method === method && one.form.test(path.split('?', 1)[0] ?? ''));
  if (operation === undefined) return;
  const code = status < 400 ? undefined : /"code":"(\w+)","request_id"/.exec(text)?.[1];
  if (code === 'route_not_found') return;
  const codes = operation.codes.get(status);
  if (codes === undefined || (code !== undefined && !codes.includes(code)))
    throw new Error(
      `${method} ${path} answered ${status} ${code ?? ''}, which docs/openapi.json does not list: ${text.slice(0, 300)}`,
    );
}
