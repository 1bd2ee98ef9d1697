import type { Logger } from 'pino';
import { hashApiKey, parseApiKey, sameHash } from '#libs/contracts/api-key.ts';
import { type EventData, events } from '#libs/contracts/events.ts';
import { grantedScopes } from '#libs/contracts/scopes.ts';
import type { Caller } from './caller.ts';

type KeyState = EventData<'corebanking.api_key.v1'>;

interface KnownKey {
  state: KeyState;
  expiresMs: number;
  caller: Caller;
  usedMs: number;
  /** The full key, once it was verified. Its hash is not calculated again until its state changes. */
  shown?: string;
}

export interface ApiKeysOptions {
  /** Keys hashed with any of them are valid. */
  peppers: readonly string[];
  /** Keys of other environments are treated as unknown. */
  environments: readonly KeyState['environment'][];
  logger: Logger;
  /** Called when a key is used, at most once a minute per key. Must not throw. */
  onUse(keyId: string, at: Date): void;
  /** Returns the bank's time in ms since 1970. */
  now: () => number;
}

export type ApiKeys = ReturnType<typeof createApiKeys>;

const useEveryMs = 60_000;
/**
 * How long a request that changes an API key waits until this gateway knows the change (contract: permission-20).
 */
export const seenWithinMs = 2_000;
const schema = events['corebanking.api_key.v1'].data;

/** All API keys, as published on the topic `api-keys`. Verifying a key needs no lookup outside the process. */
export function createApiKeys({ peppers, environments, logger, onUse, now }: ApiKeysOptions) {
  const known = new Map<string, KnownKey>();
  const byText = new Map<string, KnownKey>();
  let changes = 0;
  const waiting = new Set<() => void>();
  // The hash to which unknown keys are compared, so that they take as long as known ones.
  const nobodysHash = hashApiKey(peppers[0] ?? '', '');

  // All peppers are always tried, so that the time does not reveal which one matched.
  const isRight = (apiKey: string, hash: string): boolean =>
    peppers.filter((one) => sameHash(hashApiKey(one, apiKey), hash)).length > 0;

  const prove = (apiKey: string): KnownKey | undefined => {
    const parsed = parseApiKey(apiKey);
    if (!parsed) return undefined;
    const key = known.get(parsed.key_id);
    if (!isRight(apiKey, key?.state.secret_hash ?? nobodysHash) || !key) return undefined;
    key.shown = apiKey;
    byText.set(apiKey, key);
    return key;
  };

  return {
    /**
     * Applies one message of the topic, whatever its record key. An older version than the known one has no effect, and
     * neither has a tombstone.
     */
    take(key: string | null, value: Buffer | null): void {
      if (key === null) return;
      const state = value === null ? undefined : readState(key, value, logger);
      const before = state && known.get(state.key_id);
      if (!state || (before && before.state.version > state.version)) return;
      changes += state.version - (before?.state.version ?? 1);
      known.set(state.key_id, {
        state,
        expiresMs: Date.parse(state.expires_at),
        caller: toCaller(state),
        usedMs: before?.usedMs ?? -Infinity,
      });
      if (before?.shown !== undefined) byText.delete(before.shown);
      for (const check of [...waiting]) check();
    },
    /**
     * Returns the caller of a key, or undefined if the key is malformed, unknown, expired, revoked, or of another
     * environment.
     */
    find(apiKey: string): Caller | undefined {
      const key = byText.get(apiKey) ?? prove(apiKey);
      const nowMs = now();
      if (
        !key ||
        key.state.revoked_at !== null ||
        key.expiresMs <= nowMs ||
        !environments.includes(key.state.environment)
      )
        return undefined;
      if (nowMs - key.usedMs >= useEveryMs) {
        key.usedMs = nowMs;
        onUse(key.state.key_id, new Date(nowMs));
      }
      return key.caller;
    },
    /** Returns the number of known keys, and of their changes since they were created. */
    counted: () => ({ keys: known.size, changes }),
    /** Returns live or test, or undefined for an unknown key. */
    environment: (keyId: string) => known.get(keyId)?.state.environment,
    /** Resolves with true as soon as the key's state passes the test, or with false after `timeoutMs`. */
    seen(keyId: string, test: (state: KeyState) => boolean, timeoutMs = seenWithinMs): Promise<boolean> {
      const holds = (): boolean => {
        const key = known.get(keyId);
        return key !== undefined && test(key.state);
      };
      if (holds()) return Promise.resolve(true);
      return new Promise((resolve) => {
        const done = (result: boolean): void => {
          clearTimeout(timer);
          waiting.delete(check);
          resolve(result);
        };
        const check = (): void => {
          if (holds()) done(true);
        };
        const timer = setTimeout(() => done(false), timeoutMs);
        waiting.add(check);
      });
    },
  };
}

function readState(key: string, value: Buffer, logger: Logger): KeyState | undefined {
  try {
    return schema.parse(JSON.parse(value.toString()));
  } catch (error) {
    // The key keeps its state, because an unreadable message must neither revoke nor grant access.
    logger.error({ err: error, key_id: key }, 'a message of the topic api-keys cannot be read');
    return undefined;
  }
}

function toCaller(state: KeyState): Caller {
  const boundClientId = state.client_id ?? undefined;
  return {
    actor: `key:${state.family_id}`,
    scopes: grantedScopes(state.scopes, boundClientId),
    boundClientId,
    keyId: state.key_id,
  };
}
