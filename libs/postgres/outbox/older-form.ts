import type { OutboxEvent } from './outbox.ts';

/** The first byte of the older form; JSON starts with `{`. */
const form = 1;
const noPartition = -1;

/** Reports whether version 0.2 wrote these bytes. Its rows may still be unpublished when a later version starts. */
export function isOlderForm(bytes: Buffer): boolean {
  return bytes[0] === form;
}

/**
 * Reads the events of a row written by version 0.2. Each event is its topic (length as int16), its partition
 * (int32, -1 if the key determines it), a length (int32), and that many bytes with key, value, and headers as
 * in a record of Kafka's format v2.
 */
export function readOlderForm(bytes: Buffer): OutboxEvent[] {
  const events: OutboxEvent[] = [];
  let at = 1;
  const varInt = (): number => {
    let value = 0;
    for (let scale = 1, byte = 0x80; byte >= 0x80; scale *= 0x80) {
      byte = bytes.readUInt8(at++);
      value += (byte & 0x7f) * scale;
    }
    return value % 2 === 0 ? value / 2 : -(value + 1) / 2;
  };
  const textOf = (length: number): string | null => (length < 0 ? null : bytes.toString('utf8', at, (at += length)));
  while (at < bytes.length) {
    const topicLength = bytes.readInt16BE(at);
    at += 2;
    const topic = textOf(topicLength) ?? '';
    const partition = bytes.readInt32BE(at);
    at += 8;
    const key = textOf(varInt());
    const payload = textOf(varInt());
    const all: Record<string, string> = {};
    for (let left = varInt(); left > 0; left--) {
      const name = textOf(varInt()) ?? '';
      all[name] = textOf(varInt()) ?? '';
    }
    const {
      ce_specversion: _version,
      ce_id: id = '',
      ce_type: type = '',
      ce_source: _source,
      ce_time: time = '',
      ce_subject,
      'content-type': _type,
      ...headers
    } = all;
    if (ce_subject !== undefined && ce_subject !== key) headers['ce_subject'] = ce_subject;
    events.push({ id, topic, key, type, time, headers, payload, ...(partition === noPartition ? {} : { partition }) });
  }
  return events;
}
