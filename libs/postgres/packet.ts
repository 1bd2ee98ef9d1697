import pg from 'pg';
import type { FieldDef, PoolClient, QueryResult, QueryResultRow } from 'pg';
import { bindMessage } from './bind.ts';
import type { Queries, Query } from './pool.ts';

/** What pg has and its types do not name. */
interface Connection {
  stream: { writable: boolean; write(chunk: Buffer): boolean; cork(): void; uncork(): void };
  /** Name → text: parsed, and sent to be parsed. */
  parsedStatements: Record<string, string | undefined>;
  submittedNamedStatements: Record<string, string | undefined>;
  parse(statement: { text: string; name: string }): void;
  describe(portal: { type: 'P'; name: string }): void;
  execute(portal: { portal: string }): void;
  sync(): void;
  sendCopyFail(reason: string): void;
}
interface Result extends QueryResult {
  addFields(fields: FieldDef[]): void;
  parseRow(values: unknown[]): QueryResultRow;
  addRow(row: QueryResultRow): void;
  addCommandComplete(message: { text: string }): void;
}
const { prepareValue } = (pg as unknown as { utils: { prepareValue(value: unknown): Buffer | string | null } }).utils;
const newResult = (client: PoolClient): Result => new pg.Result('', (client as unknown as { _types: typeof pg.types })._types) as Result;

/** What the rows of named statements consist of, as far as a connection has been told. */
const described = new WeakMap<Connection, Map<string, FieldDef[]>>();

interface Statement {
  name: string;
  text: string;
  bind: Buffer[];
  result: Result;
  failure?: unknown;
  resolve(result: Result): void;
  reject(reason: unknown): void;
}

/**
 * Statements that one connection is given one behind the other, each executed as soon as it has arrived, whose answers the
 * server sends all at once: only behind the last of them is it told to (Sync; PostgreSQL's documentation, 54.2.4, Pipelining).
 * For pg it is one query. Where a statement fails the server executes none of those behind it: they reject with the same error.
 */
export class Packet {
  readonly #client: PoolClient;
  readonly #isWithin: boolean;
  readonly #connection: Connection;
  readonly #fields: Map<string, FieldDef[]>;
  readonly #statements: Statement[] = [];
  #answered = 0;
  #isGiven = false;
  #isSubmitted = false;
  #isClosed = false;
  #failure: { error: unknown } | undefined;
  /** pg reads it when it is given the packet: the longest that a statement asked for, else that of the pool. */
  query_timeout: number | undefined;
  /** pg's: clears that time-out. */
  callback?: (error: unknown) => void;

  /** `isWithin`: it is for a transaction that was begun before it, and refused where none is open. */
  constructor(client: PoolClient, isWithin: boolean) {
    this.#client = client;
    this.#isWithin = isWithin;
    this.#connection = (client as unknown as { connection: Connection }).connection;
    this.#fields = described.get(this.#connection) ?? new Map<string, FieldDef[]>();
    described.set(this.#connection, this.#fields);
  }

  /** Rejects with what the driver or the server says against the statement; the driver's refusal concerns no other. */
  add({ name = '', text, values = [], query_timeout }: Query): Promise<QueryResult> {
    return new Promise((resolve, reject) => {
      const known = name && (this.#connection.parsedStatements[name] ?? this.#connection.submittedNamedStatements[name] ?? this.#statements.find((one) => one.name === name)?.text);
      if (known && known !== text) throw new Error(`prepared statements must be unique: '${name}' was used for another one`);
      const statement: Statement = { name, text, bind: bindMessage(name, values, prepareValue), result: newResult(this.#client), resolve, reject };
      if (this.#failure) throw this.#failure.error;
      this.#statements.push(statement);
      if (query_timeout !== undefined) this.query_timeout = Math.max(query_timeout, this.query_timeout ?? 0);
      if (this.#isSubmitted) this.#send(statement);
    });
  }

  /** Lets the server begin; what is added afterwards goes with `close`. */
  flush(): void {
    this.#give();
    this.#connection.stream.cork();
  }

  /** Nothing can be added behind it. */
  close(): void {
    this.#isClosed = true;
    if (!this.#isGiven) return this.#give();
    if (this.#isSubmitted) this.#connection.sync();
    this.#connection.stream.uncork();
  }

  #give(): void {
    this.#isGiven = true;
    this.#client.query(this);
  }

  #send({ name, text, bind }: Statement): void {
    const { stream, parsedStatements, submittedNamedStatements } = this.#connection;
    if (!stream.writable) return;
    if (!name || (parsedStatements[name] ?? submittedNamedStatements[name]) === undefined) {
      this.#connection.parse({ text, name });
      if (name) submittedNamedStatements[name] = text;
    }
    for (const chunk of bind) stream.write(chunk);
    if (!this.#fields.has(name)) this.#connection.describe({ type: 'P', name: '' });
    this.#connection.execute({ portal: '' });
  }

  // What follows is called by pg.

  /** Of the statement whose answer comes next. */
  get name(): string {
    return this.#statements[this.#answered]?.name ?? '';
  }

  get text(): string {
    return this.#statements[this.#answered]?.text ?? '';
  }

  submit(): Error | null {
    // Each of its statements would be a transaction of its own.
    if (this.#isWithin && this.#client.getTransactionStatus() === 'I') return new Error('the transaction is not open');
    this.#isSubmitted = true;
    this.#connection.stream.cork();
    for (const statement of this.#statements) this.#send(statement);
    if (this.#isClosed) this.#connection.sync();
    this.#connection.stream.uncork();
    return null;
  }

  handleRowDescription({ fields }: { fields: FieldDef[] }): void {
    this.#statements[this.#answered]?.result.addFields(fields);
  }

  handleDataRow({ fields }: { fields: unknown[] }): void {
    const statement = this.#statements[this.#answered];
    if (statement === undefined || statement.failure !== undefined) return;
    const { name, result } = statement;
    if (result.fields.length === 0) result.addFields(this.#fields.get(name) ?? []);
    try {
      result.addRow(result.parseRow(fields));
    } catch (error) {
      statement.failure = error;
    }
  }

  handleCommandComplete(message: { text: string }): void {
    const statement = this.#statements[this.#answered];
    if (statement === undefined) return;
    const { name, result } = statement;
    if (name && !this.#fields.has(name)) this.#fields.set(name, result.fields);
    result.addCommandComplete(message);
    this.#answered += 1;
  }

  handleEmptyQuery(): void {
    this.#answered += 1;
  }

  handleCopyInResponse(connection: Connection): void {
    connection.sendCopyFail('COPY FROM STDIN is not supported here');
    // The server took one that came before for a part of the copy.
    if (this.#isClosed) connection.sync();
  }

  handleReadyForQuery(): void {
    this.#settle();
    this.callback?.(null);
  }

  handleError(error: unknown): void {
    this.#failure = { error };
    this.#settle();
    for (const { name, reject } of this.#statements.slice(this.#answered)) {
      reject(error);
      delete this.#connection.submittedNamedStatements[name];
    }
    this.#answered = this.#statements.length;
    this.callback?.(error);
  }

  #settle(): void {
    for (const { failure, result, resolve, reject } of this.#statements.slice(0, this.#answered)) {
      if (failure === undefined) resolve(result);
      else reject(failure);
    }
  }
}

/** Queries of one connection: those of one turn of the event loop are one packet, those that are held together too. */
export class PacketClient implements Queries {
  readonly #client: PoolClient;
  #packet: Packet | undefined;
  #isBegun = false;
  #isHeld = false;

  constructor(client: PoolClient) {
    this.#client = client;
  }

  query<R extends QueryResultRow>(query: string | Query, values?: unknown[]): Promise<QueryResult<R>> {
    if (this.#packet === undefined) {
      this.#packet = new Packet(this.#client, this.#isBegun);
      process.nextTick(() => this.#isHeld || this.close());
    }
    return this.#packet.add(typeof query === 'string' ? { text: query, ...(values && { values }) } : query) as Promise<QueryResult<R>>;
  }

  /** Begins a transaction: packets behind the one with this query are sent only while it is open. */
  begin(query: Query): Promise<QueryResult> {
    const begun = this.query(query);
    this.#isBegun = true;
    return begun;
  }

  /** What is queried from now on is one packet, until `close`. */
  hold(): void {
    this.#isHeld = true;
  }

  /** Lets the server begin with what was queried. */
  flush(): void {
    this.#packet?.flush();
  }

  /** Asks for the answers. */
  close(): void {
    this.#isHeld = false;
    this.#packet?.close();
    this.#packet = undefined;
  }
}
