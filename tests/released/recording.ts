import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { gunzipSync } from 'node:zlib';
import { fromHeaders, replySchema, replyType } from '#libs/contracts/envelope.ts';
import { type EventType, events } from '#libs/contracts/events.ts';
import { decodeRequest } from '#libs/contracts/exchange.ts';
import { type MessageName, messages } from '#libs/contracts/messages.ts';
import { endedTokenSchema } from '#libs/contracts/sign-ins.ts';
import { createVerifier, signatureHeader } from '#libs/contracts/signature.ts';
import type { ReceivedMessage } from '#libs/kafka/consume/consume.ts';
import { testEventKeys, testKeys } from '#libs/service/test/keys.ts';
import { readEvent } from '#services/webhooks/events/read-event.ts';
import type { Asked } from './story.ts';

/**
 * What tests/released/<version> has of a release, written by record.suite.ts and never changed after
 * the tag of the release (until then, `npm run record` makes it anew):
 * - migrations.sha256: the migrations, as for `sha256sum --check`;
 * - dump.sql.gz: a database with every kind of row;
 * - messages.json.gz: a message of each type from each topic, with what it meant;
 * - answers.json: what the API answered on that database, to a key of that bank;
 * - topics.json: the settings of the topics;
 * - schemas.json.gz: the schemas of the messages that it reads.
 */

/** A message, and what its reader made of it. */
export interface Recorded {
  /** Without prefix. */
  topic: string;
  key: string | null;
  value: string | null;
  headers: Record<string, string>;
  /** Of a reply: the message that it answers. */
  answers?: MessageName;
  decoded: unknown;
}

export interface Recording {
  prefix: string;
  /** With which accounts signed the states of API keys. */
  publicKey: string;
  messages: Recorded[];
}

export interface Answers {
  /** Its parts between underscores, because no file may contain a key as a whole. */
  apiKey: string[];
  asked: Required<Pick<Asked, 'path' | 'answer'>>[] & Asked[];
}

export const folderOf = (release: string): string => join(import.meta.dirname, release);

/** The recorded releases, oldest first. */
export const releases: readonly string[] = readdirSync(import.meta.dirname)
  .filter((name) => /^\d+\.\d+\.\d+$/.test(name))
  .sort((a, b) => a.localeCompare(b, 'en', { numeric: true }));

export const readText = (release: string, file: string): string => {
  const content = readFileSync(join(folderOf(release), file));
  return (file.endsWith('.gz') ? gunzipSync(content) : content).toString('utf8');
};
export const readRecording = (release: string): Recording =>
  JSON.parse(readText(release, 'messages.json.gz')) as Recording;

/** Returns an answer, or the lines of one, without what is its own each time. */
export function readAnswer(text: string): unknown {
  const lines = text.trim().split('\n').filter(Boolean);
  const parsed = lines.map(
    (line) => JSON.parse(line, (name, value: unknown) => (name === 'request_id' ? undefined : value)) as unknown,
  );
  return text.endsWith('\n') ? parsed : parsed[0];
}

/** Reads a message as its reader does today: what is signed must be authentic. Returns plain JSON. */
export function decode(
  message: Omit<Recorded, 'decoded'>,
  { prefix, publicKey }: Omit<Recording, 'messages'>,
): unknown {
  return JSON.parse(
    JSON.stringify(read(message, prefix, publicKey), (_, value: unknown) =>
      typeof value === 'bigint' ? `${value}n` : value,
    ),
  );
}

function read(
  { topic, key, headers, ...message }: Omit<Recorded, 'decoded'>,
  prefix: string,
  publicKey: string,
): unknown {
  const value = message.value === null ? null : Buffer.from(message.value);
  const json: unknown = topic.endsWith('.dlq') || value === null ? null : JSON.parse(value.toString('utf8'));
  const type = headers['ce_type'] ?? '';
  if (Object.hasOwn(events, type)) {
    const { data } = events[type as EventType];
    const signature = headers[signatureHeader];
    return {
      ...(signature === undefined ? {} : { isSigned: createVerifier(publicKey)(value, signature) }),
      // Those for webhooks are signed by keys of events, those for a SIEM by the gateway's.
      ...('mac' in headers
        ? {
            isAuthentic: testEventKeys.verify({ headers, key, value }),
            signer: testKeys.verifySigner({ headers, value }),
          }
        : {}),
      stored: readEvent({ topic, key, value, headers } as ReceivedMessage),
      data: data.parse(json),
    };
  }
  if (type === replyType) {
    const body = replySchema.parse(json);
    const result = message.answers && body.ok ? messages[message.answers].result.parse(body.data) : undefined;
    const signer = 'mac' in headers ? testKeys.verifySigner({ headers, value }) : undefined;
    return { context: fromHeaders(headers), body, result, signer };
  }
  if (topic === 'sessions')
    return { signer: testKeys.verifySigner({ headers, value }), ended: endedTokenSchema.parse(json) };
  if (topic === 'ledger.position') {
    const { mac = '', ...record } = json as Record<string, string>;
    return { record, signer: testKeys.verifySigner({ headers: { mac }, value: JSON.stringify(record) }) };
  }
  return decodeRequest({ headers, value }, () => true, { prefix, keys: testKeys });
}
