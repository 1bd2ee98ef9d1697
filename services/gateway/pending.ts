import type { Caller } from './caller.ts';

/** What this gateway has answered 202 for, so that it never says of such an id that it does not exist. */
export interface PendingAnswers {
  /** Remembers the body for as long as anybody could ask for it; the oldest go first beyond 10,000. */
  remember(id: string, body: unknown, caller: Caller): void;
  /** The Pending resource, for those who may see it; undefined when there is none. */
  find(id: string, caller: Caller): unknown;
  forget(id: string): void;
  size(): number;
}

const maxEntries = 10_000;

export function createPendingAnswers(): PendingAnswers {
  const entries = new Map<string, { body: unknown; boundClientId: string | undefined }>();
  return {
    remember(id, body, caller) {
      const oldest = entries.size >= maxEntries ? entries.keys().next().value : undefined;
      if (oldest !== undefined) entries.delete(oldest);
      entries.set(id, { body, boundClientId: caller.boundClientId });
    },
    find(id, caller) {
      const entry = entries.get(id);
      // Whose account it is, only the ledger knows: a bound caller is shown what the same binding has asked for.
      const mayBeSeen = caller.boundClientId === undefined || caller.boundClientId === entry?.boundClientId;
      return mayBeSeen ? entry?.body : undefined;
    },
    forget: (id) => void entries.delete(id),
    size: () => entries.size,
  };
}
