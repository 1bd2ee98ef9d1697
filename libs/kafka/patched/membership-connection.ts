/** The patched part of kafkajs' classes, for which its package has no types. */
interface Connection {
  /** `siblings` is our addition: the connections to the same broker, which lost-brokers.ts closes together. */
  requestQueue: { siblings?: Connection[] };
}

interface ConnectionPool {
  pool: Connection[];
  getConnection(index?: number): Promise<Connection>;
  getConnectionByRequest(request: { request: { apiKey: number } }): Promise<Connection>;
}

export const heartbeatApiKey = 12;
/** API keys: JoinGroup, Heartbeat, SyncGroup. */
const membershipApiKeys = [11, heartbeatApiKey, 14];

/**
 * A broker responds to the requests of one connection in order: to an offset commit when all in-sync replicas
 * have it, and to a join when all members of the group have joined or been expelled. A heartbeat queued behind
 * a commit that waits for a lost replica is not even read, and its member is expelled. A request queued behind
 * a join times out, so the connection is closed during the join; the member then returns under a new id, and
 * the group waits for the old one. kafkajs uses one connection per broker for fetches and one for all other
 * requests. This adds a separate connection for membership, opened with its first request.
 */
export function poolWithMembership(theirs: new (options: object) => ConnectionPool): typeof theirs {
  return class extends theirs {
    readonly #membership: number;

    constructor(options: object) {
      super(options);
      const [first] = this.pool as [Connection, ...Connection[]];
      this.#membership = this.pool.push(new (first.constructor as new (options: object) => Connection)(options)) - 1;
      for (const { requestQueue } of this.pool) requestQueue.siblings = this.pool;
    }

    override getConnectionByRequest(sent: { request: { apiKey: number } }): Promise<Connection> {
      return membershipApiKeys.includes(sent.request.apiKey)
        ? this.getConnection(this.#membership)
        : super.getConnectionByRequest(sent);
    }
  };
}
