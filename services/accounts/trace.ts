import type { Tracing } from '#libs/service/tracing.ts';
import { isSampled } from '#libs/service/tracing.ts';
import type { Handled } from './consumers.ts';

/**
 * Returns a function that creates a span for each traced message, in its own trace: its transaction or read,
 * which it may share with others.
 */
export function handlingTracer(tracing: Tracing): (handled: Handled) => void {
  return ({ name, messages, startedAt }) => {
    for (const { topic, headers } of messages) {
      const { traceparent } = headers;
      if (!isSampled(traceparent)) continue;
      const attributes = {
        'messaging.system': 'kafka',
        'messaging.destination.name': topic,
        'messaging.message.id': headers['ce_id'],
        'db.system.name': 'postgresql',
        request_id: headers['request-id'],
        messages: messages.length,
      };
      tracing.begin(`process ${name}`, { kind: 'consumer', traceparent, startedAt, attributes }).end();
    }
  };
}
