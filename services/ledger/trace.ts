import { outcomeLabel } from '#libs/service/measures.ts';
import type { Tracing } from '#libs/service/tracing.ts';
import { isSampled } from '#libs/service/tracing.ts';
import type { DecidedBatch } from './batch/commands.ts';

/**
 * Returns a function that creates a span for each traced command of a batch, in the command's trace. The batch
 * and its transaction are spans in the trace of the first command; the spans of the other commands link to
 * them.
 */
export function batchTracer(tracing: Tracing): (batch: DecidedBatch) => void {
  return ({ commands, replies, times: { begun, read, decided, committed } }) => {
    let batch: string | undefined;
    for (const [i, { name, context }] of commands.entries()) {
      const { traceparent, message_id, request_id } = context;
      const reply = replies[i];
      if (!reply || !isSampled(traceparent)) continue;
      const attributes = {
        'messaging.system': 'kafka',
        'messaging.message.id': message_id,
        request_id,
        outcome: outcomeLabel(reply),
        commands: commands.length,
      };
      const span = tracing.begin(`process ${name}`, {
        kind: 'consumer',
        traceparent,
        startedAt: begun,
        attributes,
        ...(batch === undefined ? {} : { links: [batch] }),
      });
      batch ??= traceBatch(span.traceparent);
      span.end({ at: committed });
    }

    function traceBatch(traceparent: string): string {
      const others = commands
        .flatMap(({ context }) => (isSampled(context.traceparent) ? [context.traceparent] : []))
        .slice(1);
      const whole = tracing.begin('batch', {
        kind: 'internal',
        traceparent,
        startedAt: begun,
        attributes: { commands: commands.length },
        links: others,
      });
      const part = (name: string, kind: 'client' | 'internal', from: number, to: number) =>
        tracing
          .begin(name, {
            kind,
            traceparent: whole.traceparent,
            startedAt: from,
            attributes: kind === 'client' ? { 'db.system.name': 'postgresql' } : {},
          })
          .end({ at: to });
      part('SQL lock and read', 'client', begun, read);
      part('decide', 'internal', read, decided);
      part('SQL write and commit', 'client', decided, committed);
      whole.end({ at: committed });
      return whole.traceparent;
    }
  };
}
