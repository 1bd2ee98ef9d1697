import { setTimeout as sleep } from 'node:timers/promises';
import type { Cluster, Node } from './cluster.ts';
import type { Attempt } from './journal.ts';
import type { Random } from './random.ts';

/** This is longer than any response may take, so a hang is detected and not caused by this limit. */
const patienceMs = 15_000;
const lookEveryMs = 50;

/**
 * Routes clients to gateways as a load balancer with readiness probes would: not to a gateway that is unavailable or about
 * to stop.
 */
export class Entrance {
  readonly #cluster: Cluster;
  readonly #random: Random;
  readonly #closed = new Set<string>();
  #watching = true;
  readonly #watches: Promise<void>[];

  constructor(cluster: Cluster, random: Random) {
    this.#cluster = cluster;
    this.#random = random;
    this.#watches = cluster.gateways.map((gateway) => this.#watch(gateway));
  }

  async stop(): Promise<void> {
    this.#watching = false;
    await Promise.all(this.#watches);
  }

  /** Returns one of the gateways that accept requests, or any of them if none does. */
  pick(): Node {
    const open = this.#cluster.gateways.filter(({ name }) => !this.#closed.has(name));
    return this.#random.pick(open.length > 0 ? open : this.#cluster.gateways);
  }

  async call(
    gateway: Node,
    method: 'GET' | 'POST' | 'PATCH',
    path: string,
    body?: unknown,
    key?: string,
  ): Promise<Attempt> {
    const sentAt = performance.now();
    const attempt = (status: Attempt['status'], answer: unknown, headers?: Headers): Attempt => ({
      sentAt,
      tookMs: performance.now() - sentAt,
      gateway: gateway.name,
      status,
      body: answer,
      replayed: headers?.get('idempotent-replayed') === 'true',
      location: headers?.get('location') ?? undefined,
    });
    try {
      const response = await fetch(gateway.baseUrl + path, {
        method,
        headers: {
          'x-api-key': this.#cluster.apiKey,
          'content-type': 'application/json',
          ...(key === undefined ? {} : { 'idempotency-key': key }),
        },
        body: body === undefined ? undefined : JSON.stringify(body),
        signal: AbortSignal.timeout(patienceMs),
      });
      const text = await response.text();
      return attempt(response.status, parsed(text), response.headers);
    } catch (error) {
      return attempt(
        (error as Error).name === 'TimeoutError' ? 'no answer' : 'cut',
        String((error as { cause?: unknown }).cause ?? error),
      );
    }
  }

  async #watch(gateway: Node): Promise<void> {
    while (this.#watching) {
      if (await isThere(gateway)) this.#closed.delete(gateway.name);
      else this.#closed.add(gateway.name);
      await sleep(lookEveryMs);
    }
  }
}

/** Reports whether the gateway runs, accepts connections, and is not stopping. */
export async function isThere(gateway: Node): Promise<boolean> {
  try {
    const response = await fetch(gateway.healthUrl, { signal: AbortSignal.timeout(1000) });
    const { checks } = (await response.json()) as { checks: Record<string, { ok: boolean }> };
    return checks['running']?.ok === true && checks['http']?.ok === true;
  } catch {
    return false;
  }
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}
