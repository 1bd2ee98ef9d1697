import { createRequire } from 'node:module';
import type * as KafkaJs from 'kafkajs';
import { FetchedBatch } from './fetched-batch.ts';
import { fetchRequest } from './fetch-request.ts';
import { decodeFetchResponse } from './fetch-response.ts';
import { groupMessagesPerPartition } from './group-messages.ts';
import { patchKafkaJs } from './kafkajs-patch.ts';
import { createRequest, produceRequestWith } from './produce-request.ts';

const patchedVersion = '2.2.4';
const require = createRequire(import.meta.url);

/** The functions of kafkajs that cost most CPU, by module, each with what takes its place. */
const replacements: Record<string, (theirs: never) => unknown> = {
  'protocol/request': () => createRequest,
  'protocol/requests/produce/v3/request': produceRequestWith,
  'producer/groupMessagesPerPartition': () => groupMessagesPerPartition,
  'protocol/requests/fetch/v11/request': () => fetchRequest,
  'protocol/requests/fetch/v11/response': (theirs: object) => ({ ...theirs, decode: decodeFetchResponse }),
  'consumer/batch': () => FetchedBatch,
};

/**
 * kafkajs with its slow parts replaced and its faults mended, in memory only. Importing this throws when the installed kafkajs
 * is another version than the one this was written against, or was loaded before: its modules would hold the old parts then.
 */
export const kafkajs = load();

function load(): typeof KafkaJs {
  const { version } = require('kafkajs/package.json') as { version: string };
  if (version !== patchedVersion) {
    throw new Error(`kafkajs ${version} is installed, but its patches were written for ${patchedVersion}: review libs/kafka/kafkajs.ts`);
  }
  if (require.cache[require.resolve('kafkajs')]) throw new Error('kafkajs was loaded before libs/kafka: only libs/kafka may import it, or another process');
  for (const [path, replace] of Object.entries(replacements)) {
    const name = require.resolve(`kafkajs/src/${path}`);
    const theirs: unknown = require(name);
    const module = require.cache[name];
    if (!module || theirs === undefined) throw new Error(`kafkajs has no ${path}`);
    module.exports = replace(theirs as never);
  }
  patchKafkaJs(require);
  return require('kafkajs') as typeof KafkaJs;
}
