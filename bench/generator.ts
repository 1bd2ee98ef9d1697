import { randomBytes } from 'node:crypto';
import { connect, type Socket } from 'node:net';
import { type Phases, serveHelper } from './helper.ts';
import { Histogram } from './histogram.ts';
import { HttpResponses } from './http-responses.ts';
import type { LoadPlan, LoadResult } from './load-plan.ts';
import { createRequests } from './requests.ts';

/**
 * The load generator, a separate process. It receives plans over IPC, one at a time, and returns a result for each. It
 * uses the same machine as the processes that it measures, so it must be cheap: it uses raw keep-alive sockets, joins
 * requests from prepared parts, and parses only status and length of responses.
 */

const drainMs = 8_000;
const connectTimeoutMs = 10_000;
/** The maximum number of requests in progress in an open loop. Further ones count as failed, so that a plan ends. */
const maxWaiting = 50_000;

interface Connection {
  socket: Socket;
  /** The time at which its request was sent or due (performance.now); NaN while idle. */
  sentAt: number;
}

class Load {
  readonly #plan: LoadPlan;
  readonly #tell: (phase: keyof Phases) => void;
  readonly #next: () => string;
  readonly #histogram = new Histogram();
  readonly #late = new Histogram();
  readonly #statuses: Record<string, number> = {};
  #opened = 0;
  #connections: Connection[] = [];
  /** In an open loop: idle connections, and due times that wait for one. */
  #idle: Connection[] = [];
  #waiting: number[] = [];
  #measureFrom = 0;
  #end = Infinity;
  #completed = 0;
  #wrong = 0;
  #cpu = process.cpuUsage();

  constructor(plan: LoadPlan, tell: (phase: keyof Phases) => void) {
    this.#plan = plan;
    this.#tell = tell;
    this.#next = createRequests(plan, randomBytes(9).toString('base64url'));
  }

  async run(): Promise<LoadResult> {
    const { connections, seconds, warmUpSeconds, rate } = this.#plan;
    this.#connections = await Promise.all(Array.from({ length: connections }, () => this.#open()));
    const begun = performance.now();
    this.#measureFrom = begun + warmUpSeconds * 1000;
    this.#end = this.#measureFrom + seconds * 1000;
    setTimeout(() => {
      this.#cpu = process.cpuUsage();
      this.#tell('measuring');
    }, warmUpSeconds * 1000);
    if (rate === undefined) for (const connection of this.#connections) this.#send(connection, performance.now());
    else {
      this.#idle = [...this.#connections];
      this.#pace(begun, 1000 / rate, 0);
    }
    await until(() => performance.now() >= this.#end, seconds * 1000 + warmUpSeconds * 1000 + 1_000);
    this.#tell('measured');
    const cpu = process.cpuUsage(this.#cpu);
    const waiting = () => this.#connections.filter(({ sentAt }) => !Number.isNaN(sentAt)).length + this.#waiting.length;
    await until(() => waiting() === 0, drainMs);
    const unanswered = waiting();
    this.#wrong += unanswered;
    for (const { socket } of this.#connections) socket.destroy();
    return {
      perSecond: this.#completed / seconds,
      completed: this.#completed,
      latency: this.#histogram.summary(),
      statuses: this.#statuses,
      wrong: this.#wrong,
      unanswered,
      sentLateMs: this.#late.percentile(0.5) / 1000,
      generatorCores: (cpu.user + cpu.system) / 1e6 / seconds,
    };
  }

  #open(): Promise<Connection> {
    const port = this.#plan.ports[this.#opened++ % this.#plan.ports.length] ?? 0;
    return new Promise((resolve, reject) => {
      const responses = new HttpResponses((status) => this.#answered(connection, status));
      const socket: Socket = connect({
        host: '127.0.0.1',
        port,
        noDelay: true,
        timeout: connectTimeoutMs,
        onread: {
          buffer: Buffer.allocUnsafe(16_384),
          callback: (bytes, buffer) => {
            responses.take(Buffer.from(buffer.buffer, buffer.byteOffset, bytes));
            return true;
          },
        },
      });
      const connection: Connection = { socket, sentAt: NaN };
      socket.once('connect', () => {
        socket.setTimeout(0);
        resolve(connection);
      });
      socket.once('timeout', () => socket.destroy(new Error(`port ${port} does not take a connection`)));
      socket.on('error', reject);
      socket.once('close', () => this.#lost(connection));
    });
  }

  #send(connection: Connection, sentAt: number): void {
    connection.sentAt = sentAt;
    connection.socket.write(this.#next(), 'latin1');
  }

  #answered(connection: Connection, status: number): void {
    const now = performance.now();
    const { sentAt } = connection;
    connection.sentAt = NaN;
    this.#count(String(status), status >= 200 && status < 300, sentAt, now);
    if (this.#plan.rate === undefined) {
      if (now < this.#end) this.#send(connection, now);
      return;
    }
    const intended = this.#waiting.shift();
    if (intended === undefined) this.#idle.push(connection);
    else this.#send(connection, intended);
  }

  /**
   * In a closed loop, the requests answered within the measured time; in an open loop, the requests due within it,
   * whenever they are answered.
   */
  #count(status: string, right: boolean, sentAt: number, now: number): void {
    const at = this.#plan.rate === undefined ? now : sentAt;
    if (at < this.#measureFrom || at >= this.#end) return;
    this.#statuses[status] = (this.#statuses[status] ?? 0) + 1;
    if (!right) this.#wrong += 1;
    else {
      this.#completed += 1;
      this.#histogram.record((now - sentAt) * 1000);
    }
  }

  /** Counts a connection that the server closed, and opens it again. */
  #lost(connection: Connection): void {
    if (performance.now() >= this.#end) return;
    this.#count('lost', false, performance.now(), performance.now());
    connection.sentAt = NaN;
    this.#idle = this.#idle.filter((one) => one !== connection);
    void this.#open().then(
      (fresh) => {
        this.#connections = this.#connections.map((one) => (one === connection ? fresh : one));
        if (this.#plan.rate === undefined) this.#send(fresh, performance.now());
        else this.#idle.push(fresh);
      },
      () => undefined,
    );
  }

  /**
   * Sends requests that are due and checks again a millisecond later. A request without an idle
   * connection waits, and the wait counts as latency.
   */
  #pace(begun: number, gapMs: number, sent: number): void {
    const now = Math.min(performance.now(), this.#end);
    for (; begun + sent * gapMs < now; sent++) {
      const intended = begun + sent * gapMs;
      if (intended >= this.#measureFrom) this.#late.record((performance.now() - intended) * 1000);
      // The one that has been idle longest: the gateway closes a connection on which no request arrives for 15 s.
      const connection = this.#idle.shift();
      if (connection) this.#send(connection, intended);
      else if (this.#waiting.length < maxWaiting) this.#waiting.push(intended);
      else this.#count('unsent', false, intended, now);
    }
    if (now < this.#end) setTimeout(() => this.#pace(begun, gapMs, sent), 1);
  }
}

async function until(done: () => boolean, timeoutMs: number): Promise<void> {
  const end = performance.now() + timeoutMs;
  while (!done() && performance.now() < end) await new Promise((resolve) => setTimeout(resolve, 5));
}

serveHelper<LoadPlan, LoadResult>((plan, tell) => new Load(plan, tell).run());
