import { setTimeout as sleep } from 'node:timers/promises';
import { fromMinor } from '#libs/contracts/money.ts';
import type { Node } from './cluster.ts';
import type { Entrance } from './entrance.ts';
import {
  type Attempt,
  done,
  type Effect,
  type Journal,
  type Kind,
  minorUnits,
  type Operation,
  openedAccount,
  pendingAs202,
  pendingAt,
  placedHold,
  type Read,
} from './journal.ts';
import type { Random } from './random.ts';

/** The number of concurrent clients, and their pause between two requests. */
const clients = 16;
const thinkMs = [100, 400] as const;
/** The newest opened accounts, which the clients continue to use. */
const keptAccounts = 40;

/** The initial accounts of a run, by their purpose. */
export interface Accounts {
  client: string;
  /**
   * One account per client of the load, which no other client uses, so its balance is known exactly. In USD, JPY, and
   * KWD.
   */
  own: string[];
  /** Loans, which are repaid by transfers. */
  loans: string[];
  /** The currencies of accounts that are not in USD. */
  currencies: Map<string, string>;
  /** Accounts with transfers among them that form a circle. */
  crossed: string[];
  /** The account that all clients use. */
  hot: string;
  /** The account of the holds of the load. It is never without funds, and nothing else is posted on it. */
  held: string;
  /** The account that is frozen and unfrozen while it is used. */
  frozen: string;
  /** Accounts of the recovery probe. */
  probes: string[];
}

interface Ids {
  transaction_id?: string;
  transfer_id?: string;
}

/**
 * Chooses operations from the seed and sends them through both gateways: openings (also of Loans), deposits,
 * withdrawals, transfers (crossed, hot, Loan Payments), batches of both modes, reversals, holds with captures and
 * releases, freezes, changes of the client, reads, and repeats of earlier keys with the same and with another body, in
 * currencies with 2, 0, and 3 decimal places.
 */
export class Load {
  readonly #entrance: Entrance;
  readonly #journal: Journal;
  readonly #random: Random;
  readonly #accounts: Accounts;
  readonly #opened: string[] = [];
  readonly #run: string;
  #sequence = 0;
  #running = false;
  #round = 0;
  #loops: Promise<void>[] = [];
  readonly #inFlight = new Set<Promise<Attempt>>();

  constructor(entrance: Entrance, journal: Journal, accounts: Accounts, random: Random, run: string) {
    this.#entrance = entrance;
    this.#journal = journal;
    this.#accounts = accounts;
    this.#random = random;
    this.#run = run;
  }

  start(): void {
    this.#running = true;
    const random = this.#random.fork(`round ${this.#round++}`);
    this.#loops = Array.from({ length: clients }, (_, i) => this.#loop(i, random.fork(`client ${i}`)));
  }

  /**
   * Lets every client complete its current operation, and waits for all responses, also to probes:
   * a 202 that arrives later would not be followed.
   */
  async stop(): Promise<void> {
    this.#running = false;
    await Promise.all(this.#loops);
    await Promise.all(this.#inFlight);
  }

  /** Sends an operation once, through this gateway or any. */
  async send(
    operation: Operation,
    gateway = this.#entrance.pick(),
    otherBody?: Record<string, unknown>,
  ): Promise<Attempt> {
    const sending = this.#send(operation, gateway, otherBody);
    this.#inFlight.add(sending);
    return sending.finally(() => this.#inFlight.delete(sending));
  }

  async #send(operation: Operation, gateway: Node, otherBody?: Record<string, unknown>): Promise<Attempt> {
    const { key, path } = operation;
    const body = otherBody ?? operation.body;
    this.#journal.sending({ key, path, body, gateway: gateway.name });
    const isPatch = operation.kind === 'patch';
    const attempt = pendingAs202(
      await this.#entrance.call(gateway, isPatch ? 'PATCH' : 'POST', path, body, isPatch ? undefined : key),
    );
    if (otherBody) attempt.otherBody = true;
    this.#journal.answered(operation, attempt);
    return attempt;
  }

  async read(
    path: string,
    what: Omit<Read, 'path' | 'attempt'> = {},
    gateway = this.#entrance.pick(),
  ): Promise<Attempt> {
    const attempt = await this.#entrance.call(gateway, 'GET', path);
    this.#journal.reads.push({ path, ...what, attempt });
    return attempt;
  }

  /**
   * Queries the outcome of an operation whose response was 202. The operation is never sent again, so a loss is
   * detected.
   */
  async ask(operation: Operation, gateway = this.#entrance.pick()): Promise<void> {
    this.#journal.asked(operation, await this.read(pendingAt(operation) ?? '', { pending: true }, gateway));
  }

  /** Returns a new operation, recorded but not yet sent. */
  make(
    kind: Kind,
    path: string,
    body: Record<string, unknown>,
    effects: Effect[],
    rest: { deserves?: string[]; mustFail?: boolean; items?: Effect[][] } = {},
  ): Operation {
    return this.#journal.begin({ key: `${this.#run}-${this.#sequence++}`, kind, path, body, effects, ...rest });
  }

  deposit(account: string, minor: number): Operation {
    // Half of them have an external_id and metadata.
    const names = minor % 2 === 0 ? {} : { external_id: `slip ${this.#sequence}`, metadata: { run: this.#run } };
    const body = { account_id: account, transaction_type: 'Deposit', amount: this.#amount(account, minor), ...names };
    return this.make('deposit', '/transactions', body, [{ account, minor }], { deserves: this.#mayBeFrozen(account) });
  }

  withdrawal(account: string, minor: number, mustFail = false): Operation {
    const deserves = ['insufficient_funds', ...this.#mayBeFrozen(account)];
    const body = { account_id: account, transaction_type: 'Withdrawal', amount: this.#amount(account, minor) };
    return this.make('withdrawal', '/transactions', body, [{ account, minor: -minor }], { deserves, mustFail });
  }

  /** A transfer to a Loan is a Loan Payment, which lowers the outstanding amount. */
  transfer(from: string, to: string, minor: number): Operation {
    const isPayment = this.#accounts.loans.includes(to);
    const effects = [
      { account: from, minor: -minor },
      { account: to, minor: isPayment ? -minor : minor },
    ];
    const deserves = [
      'insufficient_funds',
      ...(isPayment ? ['amount_exceeds_outstanding'] : []),
      ...this.#mayBeFrozen(from, to),
    ];
    const body = { from_account_id: from, to_account_id: to, amount: this.#amount(from, minor) };
    return this.make('transfer', '/transfers', body, effects, { deserves });
  }

  /** Returns a batch: deposits and transfers in one request, between accounts that all clients use. */
  batch(size: number, random: Random): Operation {
    const { crossed, hot } = this.#accounts;
    const mode = random.pick(['independent', 'atomic']);
    const drawn = Array.from({ length: size }, () => {
      const [from = '', to = ''] = random.shuffle([hot, ...crossed]);
      const minor = random.int(1, 300);
      const amount = this.#amount(from, minor);
      return random.chance(0.4)
        ? {
            item: { transaction: { account_id: from, transaction_type: 'Deposit', amount } },
            effects: [{ account: from, minor }],
          }
        : {
            item: { transfer: { from_account_id: from, to_account_id: to, amount } },
            effects: [
              { account: from, minor: -minor },
              { account: to, minor },
            ],
          };
    });
    const items = drawn.map(({ effects }) => effects);
    return this.make('batch', '/batches', { mode, items: drawn.map(({ item }) => item) }, items.flat(), {
      items,
      deserves: ['batch_refused'],
    });
  }

  /** Returns a capture of a hold on the account `from`: in cash, or with `to` a transfer. */
  capture(
    { hold_id, from, to }: { hold_id: string; from: string; to: string | undefined },
    minor: number,
    { final = true, deserves = [] }: { final?: boolean; deserves?: string[] } = {},
  ): Operation {
    const effects = [{ account: from, minor: -minor }, ...(to === undefined ? [] : [{ account: to, minor }])];
    const body = { amount: this.#amount(from, minor), final, ...(to === undefined ? {} : { to_account_id: to }) };
    return this.make('capture', `/holds/${hold_id}/capture`, body, effects, { deserves });
  }

  release(hold_id: string): Operation {
    return this.make('release', `/holds/${hold_id}/release`, {}, []);
  }

  opening(minor: number, account_type = 'Savings', currency = 'USD'): Operation {
    const initial_deposit = Number(fromMinor(BigInt(minor), currency));
    return this.make(
      'open_account',
      '/accounts',
      { client_id: this.#accounts.client, account_type, currency, initial_deposit },
      [],
    );
  }

  patch(): Operation {
    const contact_number = `+254${String(700_000_000 + this.#sequence)}`;
    return this.make('patch', `/clients/${this.#accounts.client}`, { contact_number }, []);
  }

  status(account: string, status: 'Active' | 'Frozen'): Operation {
    const body = status === 'Frozen' ? { status, reason: 'fraud' } : { status };
    return this.make('status', `/accounts/${account}/status-transitions`, body, []);
  }

  #accountCurrency(account: string): string {
    return this.#accounts.currencies.get(account) ?? 'USD';
  }

  #amount(account: string, minor: number): number {
    return Number(fromMinor(BigInt(minor), this.#accountCurrency(account)));
  }

  #mayBeFrozen(...accounts: string[]): string[] {
    return accounts.includes(this.#accounts.frozen) ? ['inactive_account'] : [];
  }

  async #loop(client: number, random: Random): Promise<void> {
    while (this.#running) {
      await this.#step(client, random);
      await sleep(random.int(...thinkMs));
    }
  }

  async #step(client: number, random: Random): Promise<void> {
    const draw = random.int(1, 104);
    const own = this.#accounts.own[client] ?? this.#accounts.hot;
    const { hot, frozen, crossed, loans } = this.#accounts;
    const isDollars = this.#accountCurrency(own) === 'USD';
    if (draw <= 16) await this.#finish(this.deposit(own, random.int(1, 5000)), random);
    else if (draw <= 24) await this.#finish(this.withdrawal(own, random.int(1, 4000)), random);
    else if (draw <= 27) await this.#finish(this.withdrawal(own, 90_000_000_000_000, true), random);
    else if (draw <= 43) await this.#finish(this.#crossedTransfer(random), random);
    else if (draw <= 48)
      await this.#finish(this.transfer(isDollars ? own : hot, random.pick(loans), random.int(1, 900)), random);
    else if (draw <= 56) await this.#finish(this.deposit(hot, random.int(1, 999)), random);
    else if (draw <= 61) await this.#finish(this.transfer(hot, random.pick(crossed), random.int(1, 500)), random);
    else if (draw <= 65) await this.#open(random);
    else if (draw <= 69) await this.#reverse(random);
    else if (draw <= 71) await this.#finish(this.status(frozen, random.pick(['Active', 'Frozen'])), random);
    else if (draw <= 76)
      await this.#finish(this.deposit(random.pick([frozen, ...this.#opened]), random.int(1, 999)), random);
    else if (draw <= 80) await this.#finish(this.batch(random.int(1, 30), random), random);
    else if (draw <= 84) await this.read(`/accounts/${own}`, { account: own });
    else if (draw <= 90) await this.#readOther(random);
    else if (draw > 100) await this.#hold(random);
    else if (client === 0 && draw <= 95) await this.#finish(this.patch(), random);
    else await this.#repeat(random);
  }

  #crossedTransfer(random: Random): Operation {
    const [from = '', to = ''] = random.shuffle(this.#accounts.crossed);
    return this.transfer(from, to, random.int(1, 3000));
  }

  /** Places a hold, and captures it, wholly or in part, or releases it. */
  async #hold(random: Random): Promise<void> {
    const { held: from, crossed } = this.#accounts;
    const minor = random.int(1, 500);
    const placed = this.make('hold', `/accounts/${from}/holds`, { amount: this.#amount(from, minor) }, []);
    await this.#finish(placed, random);
    const hold_id = placedHold(placed);
    if (hold_id === undefined) return;
    const to = random.chance(0.5) ? random.pick(crossed) : undefined;
    const end = random.chance(0.3) ? this.release(hold_id) : this.capture({ hold_id, from, to }, random.int(1, minor));
    await this.#finish(end, random);
  }

  async #open(random: Random): Promise<void> {
    const [type, currency] = random.pick([
      ['Savings', 'USD'],
      ['Savings', 'USD'],
      ['Current', 'JPY'],
      ['Checking', 'KWD'],
      ['Loan', 'USD'],
    ]);
    const operation = this.opening(random.chance(0.7) ? random.int(1, 100_000) : 0, type, currency);
    await this.#finish(operation, random);
    const account = openedAccount(operation);
    if (account === undefined) return;
    if (currency !== undefined) this.#accounts.currencies.set(account, currency);
    if (type === 'Loan') return void this.#accounts.loans.push(account);
    this.#opened.push(account);
    if (this.#opened.length > keptAccounts) this.#opened.shift();
    // The next request is sent immediately, perhaps through another gateway, because after the response the account
    // accepts postings.
    await this.#finish(this.deposit(account, random.int(1, 999)), random);
  }

  async #reverse(random: Random): Promise<void> {
    const recent = this.#journal.operations
      .slice(-200)
      .filter((operation) => done(operation) && ['deposit', 'withdrawal', 'transfer'].includes(operation.kind));
    if (recent.length === 0) return;
    const original = random.pick(recent);
    const body = original.decided?.body as Ids & { data?: Ids };
    // If GET returned the outcome of a transfer, it is not wrapped (asAnswered in journal.ts).
    const transaction = body.transaction_id ?? (body.data ?? body).transfer_id?.replace('trf_', 'txn_');
    const effects = original.effects.map(({ account, minor }) => ({ account, minor: -minor }));
    const deserves = [
      'insufficient_funds',
      'already_reversed',
      ...this.#mayBeFrozen(...effects.map(({ account }) => account)),
    ];
    await this.#finish(
      this.make('reversal', `/transactions/${transaction}/reversal`, { reason: 'mistake' }, effects, { deserves }),
      random,
    );
  }

  async #readOther(random: Random): Promise<void> {
    const account = random.pick([this.#accounts.hot, ...this.#accounts.crossed, ...this.#opened]);
    await this.read(`/accounts/${account}`, { account });
  }

  /**
   * Repeats an earlier key that is not Pending: with its own body or, if its outcome is known, with
   * another one.
   */
  async #repeat(random: Random): Promise<void> {
    const mayRepeat = (one: Operation) =>
      one.kind !== 'patch' && one.kind !== 'approved' && (one.decided !== undefined || pendingAt(one) === undefined);
    const operations = this.#journal.operations.filter(mayRepeat);
    if (operations.length === 0) return;
    const operation = random.chance(0.5) ? random.pick(operations) : random.pick(operations.slice(-100));
    if (done(operation) && operation.kind === 'batch' && random.chance(0.3)) {
      await this.send(operation, undefined, {
        ...operation.body,
        mode: operation.body['mode'] === 'atomic' ? 'independent' : 'atomic',
      });
    } else if (
      done(operation) &&
      !['batch', 'status', 'reversal', 'release'].includes(operation.kind) &&
      random.chance(0.3)
    ) {
      const field = operation.kind === 'open_account' ? 'initial_deposit' : 'amount';
      const currency = String(operation.body['currency'] ?? this.#accountCurrency(operation.effects[0]?.account ?? ''));
      // The sum is computed in minor units, because 15.74 + 1 is not exact.
      const other = Number(fromMinor(BigInt(minorUnits(operation.body[field], currency) + 1), currency));
      await this.send(operation, undefined, { ...operation.body, [field]: other });
    } else await this.send(operation);
  }

  /**
   * Sends the operation. If the outcome is unknown, half of the clients query or repeat immediately; the others do so
   * later.
   */
  async #finish(operation: Operation, random: Random): Promise<void> {
    await this.send(operation);
    const mayLeave = operation.kind !== 'patch'; // the next one must not overtake it
    for (let again = 0; this.#running && operation.decided === undefined; again++) {
      if (mayLeave && (again === 3 || random.chance(0.5))) return;
      await sleep(random.int(50, 500));
      if (pendingAt(operation) === undefined) await this.send(operation);
      else await this.ask(operation);
    }
  }
}
