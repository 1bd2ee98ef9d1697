import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { parseAllDocuments } from 'yaml';
import { eventsRetentionDays } from '#libs/contracts/topics.ts';

const read = (file: string) => readFileSync(new URL(`../../${file}`, import.meta.url), 'utf8');

test('the brokers have the settings of docs/operations.md, except those that Strimzi forbids', () => {
  const block = /Broker settings:\n\n```\n([^`]*)```/.exec(read('docs/operations.md'))?.[1] ?? '';
  const named = [...block.matchAll(/^([\w.]+)=(\w+)/gm)].map(([, name = '', value = '']) => [name, value] as const);
  expect(Object.fromEntries(named)['offsets.retention.minutes']).toBe(String(eventsRetentionDays * 24 * 60));
  const documents = parseAllDocuments(read('deploy/kubernetes/kafka.yaml')).map((document) => document.toJS());
  const { config } = documents.find(({ kind }) => kind === 'Kafka').spec.kafka as { config: Record<string, unknown> };
  for (const [name, value] of named)
    if (!/^(broker|controller)\./.test(name)) expect([name, String(config[name])]).toEqual([name, value]);
});
