import { errorMeanings } from '#libs/contracts/error-meanings.ts';
import { errorCodes } from '#libs/contracts/errors.ts';

/** docs/errors.md: every code of the error table, by status. */
export function errorsPage(): string {
  const rows = Object.entries(errorCodes)
    .toSorted(([, left], [, right]) => left.status - right.status)
    .map(
      ([code, { status }]) =>
        `| ${status} | \`${code}\` | ${errorMeanings[code]?.meaning ?? ''} | ${errorMeanings[code]?.action ?? ''} |`,
    );
  return `# Errors

Made from \`libs/contracts/errors.ts\` and \`error-meanings.ts\` by \`npm run generate\`. Every error has the body
\`{status: "error", message, code, request_id}\`, with \`errors: [{field, code, message}]\` where fields are wrong and \`details\` where
there is more to say. Programs look at \`code\`; a code has one HTTP status everywhere. Refusals that the bank has decided are kept: the
same request with the same Idempotency-Key gets the same answer. 401, 403, 429, violations and 5xx are answered anew.

| status | code | what it means | what to do |
|---|---|---|---|
${rows.join('\n')}
`;
}
