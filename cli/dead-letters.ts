import { type Command, Option } from 'commander';
import { deadLetterState } from '#libs/contracts/dead-letters.ts';
import { deadLetterTopics } from '#libs/contracts/topics.ts';
import type { Bank, DeadLetter, DeadLetterContent } from '../clients/typescript/index.ts';
import { jsonOption, openBank, print, printJson, wholeNumber } from './api.ts';

type ListOptions = Parameters<Bank['listDeadLetters']>[0] & { limit: number; json?: true };

/** `bank dead-letters list|show|redrive|drop`: messages that could not be processed. */
export function addDeadLetters(group: Command): void {
  group
    .command('list')
    .description('List them, newest first')
    .addOption(new Option('--topic <topic>', 'of this topic only').choices(deadLetterTopics))
    .addOption(new Option('--state <state>', 'in this state only').choices(deadLetterState.options))
    .option('--from <time>', 'start of the period, inclusive (ISO 8601)')
    .option('--to <time>', 'end of the period, exclusive (ISO 8601)')
    .option('--limit <number>', 'maximum number', wholeNumber(1, 999_999), 100)
    .addOption(jsonOption())
    .action(async ({ limit, json: asJson, ...filters }: ListOptions) => {
      const letters = await openBank().listDeadLetters(filters).toArray(limit);
      if (asJson) return printJson(letters);
      for (const letter of letters) print(line(letter));
      if (letters.length === 0) print('none');
    });

  group
    .command('show <dead_letter_id>')
    .description('Show a dead letter with its headers and value')
    .addOption(jsonOption())
    .action(async (id: string, { json: asJson }: { json?: true }) => {
      const letter = await openBank().getDeadLetter({ dead_letter_id: id });
      if (asJson) return printJson(letter);
      show(letter);
    });

  group
    .command('redrive <dead_letter_id>')
    .description(
      'Publish a dead letter to its topic again, unchanged; a command past its deadline is then recorded as Failed',
    )
    .option('--renew-deadline', 'set a new deadline of 30 s; only if the caller has not repeated the request')
    .addOption(jsonOption())
    .action(async (id: string, { renewDeadline, json: asJson }: { renewDeadline?: true; json?: true }) => {
      decided(
        await openBank().redriveDeadLetter({ dead_letter_id: id, renew_deadline: renewDeadline === true }),
        asJson,
      );
    });

  group
    .command('drop <dead_letter_id>')
    .description('Decide that a dead letter will not be redriven')
    .option('--reason <text>', 'reason for the audit')
    .addOption(jsonOption())
    .action(async (id: string, { reason, json: asJson }: { reason?: string; json?: true }) => {
      decided(await openBank().dropDeadLetter({ dead_letter_id: id, reason }), asJson);
    });
}

function line({ dead_letter_id, state, dead_at, source_topic, message, code, reason }: DeadLetter): string {
  const why = [code, reason].filter((part) => part !== null).join(': ');
  return [
    dead_letter_id,
    state.padEnd(8),
    dead_at,
    source_topic,
    message ?? '-',
    why.replaceAll(/\s+/g, ' ').slice(0, 100),
  ].join('  ');
}

function show({ headers, value, available, truncated, ...letter }: DeadLetterContent): void {
  for (const [name, field] of Object.entries(letter)) if (field !== null) print(`${name}: ${field}`);
  if (!available) return print('\nIts bytes are no longer kept: it can only be dropped.');
  print(
    `\nheaders:\n${Object.entries(headers)
      .map(([name, header]) => `  ${name}: ${header}`)
      .join('\n')}`,
  );
  print(`\nvalue${truncated ? ' (truncated)' : ''}:\n${value ?? '(null)'}`);
}

function decided(letter: DeadLetter, asJson: true | undefined): void {
  if (asJson) return printJson(letter);
  print(`${letter.dead_letter_id} ${letter.state}`);
}
