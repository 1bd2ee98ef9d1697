import { createRequire } from 'node:module';
import type * as KafkaJs from 'kafkajs';
import { addCodecs } from '../codecs/codecs.ts';
import { keepBrokers } from './brokers.ts';
import { decodeFetchResponse } from './fetch-response.ts';
import { FetchedBatch } from './fetched-batch.ts';
import { groupByPartition } from './group-by-partition.ts';
import { followNewestLeaders } from './leader-epochs.ts';
import { leaveLostBrokers } from './lost-brokers.ts';
import { poolWithMembership } from './membership-connection.ts';
import { produceRequestWith } from './produce-request.ts';
import { quietRequestQueue } from './request-queue.ts';

const patchedVersion = '2.2.4';
const require = createRequire(import.meta.url);

/** The replaced functions of kafkajs by module. README.md explains why. All patches rely on the version check. */
const replacements: Record<string, (theirs: never) => unknown> = {
  'protocol/requests/produce/v3/request': produceRequestWith,
  'producer/groupMessagesPerPartition': () => groupByPartition,
  'protocol/requests/fetch/v11/response': (theirs: object) => ({ ...theirs, decode: decodeFetchResponse }),
  'consumer/batch': () => FetchedBatch,
  'network/connectionPool': poolWithMembership,
};

let loaded: typeof KafkaJs | undefined;

/**
 * Loads kafkajs with the replacements listed in README.md applied in memory. Throws if the installed version is not the
 * one that the patches were written for, or if kafkajs was loaded before.
 */
export function loadKafkaJs(): typeof KafkaJs {
  if (!loaded) {
    patch();
    loaded = require('kafkajs') as typeof KafkaJs;
    addCodecs(loaded);
  }
  return loaded;
}

function patch(): void {
  const { version } = require('kafkajs/package.json') as { version: string };
  if (version !== patchedVersion) {
    throw new Error(
      `kafkajs ${version} is installed, but its patches were written for ${patchedVersion}: review libs/kafka/patched`,
    );
  }
  if (require.cache[require.resolve('kafkajs')])
    throw new Error('kafkajs was already loaded: only libs/kafka may import it in this process');
  for (const [path, replace] of Object.entries(replacements)) {
    const name = require.resolve(`kafkajs/src/${path}`);
    const theirs: unknown = require(name);
    (require.cache[name] as NodeJS.Module).exports = replace(theirs as never);
  }
  quietRequestQueue(require);
  keepBrokers(require);
  leaveLostBrokers(require);
  followNewestLeaders(require);
}
