import { type ErrorCode, errorCodes } from '#libs/contracts/errors.ts';
import { errorMeanings } from './meanings.ts';

/** Returns docs/errors.md: every code of the error table, by status. */
export function errorsPage(): string {
  const rows = Object.entries(errorCodes)
    .toSorted(([, left], [, right]) => left.status - right.status)
    .map(
      ([code, { status }]) =>
        `| ${status} | \`${code}\` | ${errorMeanings[code as ErrorCode].meaning} | ${errorMeanings[code as ErrorCode].action} |`,
    );
  return `# Errors

Generated from \`libs/contracts\` by \`npm run generate\`. Every error has the body
\`{status: "error", message, code, request_id}\`, with \`errors: [{field, code, message}]\` for invalid fields and \`details\` for additional
data. Programs should use \`code\`, which always has the same HTTP status. Decided refusals are stored: the same request with the same
Idempotency-Key gets the same response. 401, 403, 429, violations, and 5xx are not stored.

| status | code | meaning | what to do |
|---|---|---|---|
${rows.join('\n')}
`;
}
