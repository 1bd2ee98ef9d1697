import { readFileSync } from 'node:fs';
import { join } from 'node:path';

/**
 * docs/guides/<language>.md: how to generate a client of docs/openapi.json and use it, in parts of the example that
 * tests/documents/languages.e2e.test.ts runs.
 */
const examples = join(import.meta.dirname, '../../examples');

interface Guide {
  title: string;
  folder: string;
  /** The example's file, and its language for Markdown. */
  source: string;
  fence: string;
  generator: string;
  money: string;
}

const guides: Record<string, Guide> = {
  java: {
    title: 'Java',
    folder: 'java/client',
    source: 'Caller.java',
    fence: 'java',
    generator:
      'openapi-generator makes a client for `java.net.http` and Jackson ([settings](../../examples/java/client/generator.yaml)):',
    money: 'Amounts are `BigDecimal`: create them from text, and compare them with `compareTo`.',
  },
  python: {
    title: 'Python',
    folder: 'python',
    source: 'caller.py',
    fence: 'python',
    generator:
      'openapi-generator, which needs Java, makes a client for urllib3 and pydantic ([settings](../../examples/python/generator.yaml)):',
    money:
      'Amounts are `Decimal`. The generated client would send them as texts, which the bank refuses; this one does not. Sums of the bank may have more than 15 digits: decode them with `json.loads(answer.raw_data, parse_float=Decimal)`.',
  },
  go: {
    title: 'Go',
    folder: 'go',
    source: 'caller.go',
    fence: 'go',
    generator: 'oapi-codegen makes a client for `net/http` ([settings](../../examples/go/oapi-codegen.yaml)):',
    money: 'Amounts are `decimal.Decimal` of shopspring. At the start of the program:',
  },
  typescript: {
    title: 'TypeScript',
    folder: 'typescript',
    source: 'caller.ts',
    fence: 'ts',
    generator:
      '[clients/typescript](../../clients/typescript) retries, polls, and paginates for you. With openapi-typescript and openapi-fetch instead:',
    money:
      "An amount of a posting or an account has at most 15 digits, which a number keeps exactly. Sums of the bank may have more: request them with `parseAs: 'text'`. Calculate with `new Decimal(amount)` of decimal.js, never with numbers:",
  },
};

/** The marked part of an example, without its indentation; undefined if there is none of that name. */
function part(source: string, name: string): string | undefined {
  const found = new RegExp(`^[ \\t]*(?://|#) #region ${name}\\n([^]*?)\\n[ \\t]*(?://|#) #endregion$`, 'm').exec(
    source,
  )?.[1];
  return found?.replaceAll(new RegExp(`^${/^[ \t]*/.exec(found)?.[0]}`, 'gm'), '').trimEnd();
}

function guide({ title, folder, source, fence, generator, money }: Guide): string {
  const text = readFileSync(join(examples, folder, source), 'utf8');
  const code = (...names: string[]) => {
    const shown = names.flatMap((name) => part(text, name) ?? []);
    return shown.length === 0 ? '' : `\n\`\`\`${fence}\n${shown.join('\n\n')}\n\`\`\`\n`;
  };
  return `# ${title}

${generator}

\`\`\`sh
examples/${folder}/generate.sh
\`\`\`
[${source}](../../examples/${folder}/${source}), which a test runs, has all of what follows.

**Retries.** By [the rules for all languages](api-client.md#retries):
${code('post')}
**Money.** ${money}
${code('money')}
**Lists** and **errors.** Pass the \`cursor\` of the \`Link\` header with \`rel="next"\` on, until there is none. Codes, types, and statuses are texts: new ones may come. Take an unknown code by its HTTP status.
`;
}

export const languageGuides: Record<string, () => string> = Object.fromEntries(
  Object.entries(guides).map(([name, one]) => [`guides/${name}.md`, () => guide(one)]),
);
