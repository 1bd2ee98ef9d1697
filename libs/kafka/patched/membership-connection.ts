/** What is touched of kafkajs' classes; its package ships no types for them. */
interface Connection {
  isConnected(): boolean;
}

interface ConnectionPool {
  pool: Connection[];
  getConnection(index?: number): Promise<Connection>;
  getConnectionByRequest(request: { request: { apiKey: number } }): Promise<Connection>;
}

export const heartbeatApiKey = 12;
/** JoinGroup, Heartbeat, SyncGroup. */
const membershipApiKeys = [11, heartbeatApiKey, 14];

/**
 * A broker answers the requests of one connection in their order: a commit of offsets when all
 * replicas in sync have it, and a join when all members of the group have joined or are expelled.
 * Behind a commit that waits for a lost replica a heartbeat does not even arrive, and its member is
 * expelled meanwhile. Behind a join no other question is answered in time, whose connection is
 * closed for that, and the join with it: its member comes back as another one, for whose
 * predecessor the group waits again. kafkajs has one connection to a broker for fetches and one for
 * all the rest: membership gets one of its own here, which is connected when its first request is
 * sent.
 */
export function poolWithMembership(theirs: new (options: object) => ConnectionPool): typeof theirs {
  return class extends theirs {
    readonly #membership: number;

    constructor(options: object) {
      super(options);
      const [first] = this.pool;
      if (first === undefined || typeof this.getConnectionByRequest !== 'function')
        throw new Error('kafkajs has another ConnectionPool');
      this.#membership = this.pool.push(new (first.constructor as new (options: object) => Connection)(options)) - 1;
    }

    override getConnectionByRequest(sent: { request: { apiKey: number } }): Promise<Connection> {
      return membershipApiKeys.includes(sent.request.apiKey)
        ? this.getConnection(this.#membership)
        : super.getConnectionByRequest(sent);
    }
  };
}
