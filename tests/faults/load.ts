import { setTimeout as sleep } from 'node:timers/promises';
import type { Entrance } from './entrance.ts';
import { accountOf, type Attempt, decides, done, type Effect, type Journal, type Kind, type Operation, type Read } from './journal.ts';
import type { Random } from './random.ts';

/** Clients that send at the same time, and how long each thinks between two requests. */
const clients = 16;
const thinkMs = [100, 400] as const;
/** Opened accounts that the clients go on to use: the newest ones. */
const keptAccounts = 40;

/** The accounts that a run begins with, by what they are for. */
export interface Accounts {
  client: string;
  /** One per client of the load, which alone uses it: its balance is known to the cent. */
  own: string[];
  /** In a circle of transfers, against each other. */
  crossed: string[];
  /** Which everybody uses. */
  hot: string;
  /** Frozen and unfrozen while it is used. */
  frozen: string;
  /** Of the recovery probe. */
  probes: string[];
}

/**
 * Draws operations from the seed and sends them through both gateways: openings, deposits, withdrawals, transfers (crossed,
 * hot), reversals, freezes, reads, repeats of earlier keys with the same and with another body.
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

  /** Lets every client finish what it has begun. */
  async stop(): Promise<void> {
    this.#running = false;
    await Promise.all(this.#loops);
  }

  /** Sends an operation once, through this gateway or any. */
  async send(operation: Operation, gateway = this.#entrance.pick(), otherBody?: Record<string, unknown>): Promise<Attempt> {
    const { key, path } = operation;
    const body = otherBody ?? operation.body;
    this.#journal.sending({ key, path, body, gateway: gateway.name });
    const attempt = await this.#entrance.call(gateway, 'POST', path, body, key);
    if (otherBody) attempt.otherBody = true;
    this.#journal.answered(operation, attempt);
    return attempt;
  }

  async read(path: string, what: Omit<Read, 'path' | 'attempt'> = {}): Promise<Attempt> {
    const attempt = await this.#entrance.call(this.#entrance.pick(), 'GET', path);
    this.#journal.reads.push({ path, ...what, attempt });
    return attempt;
  }

  /** A new operation, written down and not sent. */
  make(kind: Kind, path: string, body: Record<string, unknown>, effects: Effect[], rest: { deserves?: string[]; mustFail?: boolean } = {}): Operation {
    return this.#journal.begin({ key: `${this.#run}-${this.#sequence++}`, kind, path, body, effects, ...rest });
  }

  deposit(account: string, minor: number): Operation {
    return this.make('deposit', '/transactions', { account_id: account, transaction_type: 'Deposit', amount: minor / 100 }, [{ account, minor }], { deserves: this.#mayBeFrozen(account) });
  }

  withdrawal(account: string, minor: number, mustFail = false): Operation {
    const deserves = ['insufficient_funds', ...this.#mayBeFrozen(account)];
    return this.make('withdrawal', '/transactions', { account_id: account, transaction_type: 'Withdrawal', amount: minor / 100 }, [{ account, minor: -minor }], { deserves, mustFail });
  }

  transfer(from: string, to: string, minor: number): Operation {
    const effects = [{ account: from, minor: -minor }, { account: to, minor }];
    const deserves = ['insufficient_funds', ...this.#mayBeFrozen(from, to)];
    return this.make('transfer', '/transfers', { from_account_id: from, to_account_id: to, amount: minor / 100 }, effects, { deserves });
  }

  opening(minor: number): Operation {
    return this.make('open_account', '/accounts', { client_id: this.#accounts.client, account_type: 'Savings', currency: 'USD', initial_deposit: minor / 100 }, []);
  }

  status(account: string, status: 'Active' | 'Frozen'): Operation {
    const body = status === 'Frozen' ? { status, reason: 'fraud' } : { status };
    return this.make('status', `/accounts/${account}/status-transitions`, body, []);
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
    const draw = random.int(1, 100);
    const own = this.#accounts.own[client] ?? this.#accounts.hot;
    if (draw <= 18) await this.#finish(this.deposit(own, random.int(1, 5000)), random);
    else if (draw <= 26) await this.#finish(this.withdrawal(own, random.int(1, 4000)), random);
    else if (draw <= 30) await this.#finish(this.withdrawal(own, 90_000_000_000_000, true), random);
    else if (draw <= 48) await this.#finish(this.#crossedTransfer(random), random);
    else if (draw <= 56) await this.#finish(this.deposit(this.#accounts.hot, random.int(1, 999)), random);
    else if (draw <= 61) await this.#finish(this.transfer(this.#accounts.hot, random.pick(this.#accounts.crossed), random.int(1, 500)), random);
    else if (draw <= 65) await this.#open(random);
    else if (draw <= 69) await this.#reverse(random);
    else if (draw <= 71) await this.#finish(this.status(this.#accounts.frozen, random.pick(['Active', 'Frozen'])), random);
    else if (draw <= 76) await this.#finish(this.deposit(random.pick([this.#accounts.frozen, ...this.#opened]), random.int(1, 999)), random);
    else if (draw <= 84) await this.read(`/accounts/${own}`, { account: own });
    else if (draw <= 90) await this.#readOther(random);
    else await this.#repeat(random);
  }

  #crossedTransfer(random: Random): Operation {
    const [from = '', to = ''] = random.shuffle(this.#accounts.crossed);
    return this.transfer(from, to, random.int(1, 3000));
  }

  async #open(random: Random): Promise<void> {
    const operation = this.opening(random.chance(0.7) ? random.int(1, 100_000) : 0);
    await this.#finish(operation, random);
    const account = accountOf(operation);
    if (account === undefined) return;
    this.#opened.push(account);
    if (this.#opened.length > keptAccounts) this.#opened.shift();
    // At once, through another gateway perhaps: it takes postings from its answer on.
    await this.#finish(this.deposit(account, random.int(1, 999)), random);
  }

  async #reverse(random: Random): Promise<void> {
    const recent = this.#journal.operations.slice(-200).filter((operation) => done(operation) && ['deposit', 'withdrawal', 'transfer'].includes(operation.kind));
    if (recent.length === 0) return;
    const original = random.pick(recent);
    const body = original.decided?.body as { transaction_id?: string; data?: { transfer_id: string } };
    const transaction = body.transaction_id ?? body.data?.transfer_id.replace('trf_', 'txn_');
    const effects = original.effects.map(({ account, minor }) => ({ account, minor: -minor }));
    const deserves = ['insufficient_funds', 'already_reversed', ...this.#mayBeFrozen(...effects.map(({ account }) => account))];
    await this.#finish(this.make('reversal', `/transactions/${transaction}/reversal`, { reason: 'mistake' }, effects, { deserves }), random);
  }

  async #readOther(random: Random): Promise<void> {
    const account = random.pick([this.#accounts.hot, ...this.#accounts.crossed, ...this.#opened]);
    await this.read(`/accounts/${account}`, { account });
  }

  /** An earlier key: with its own body, or, where its outcome is known, with another. */
  async #repeat(random: Random): Promise<void> {
    const { operations } = this.#journal;
    if (operations.length === 0) return;
    const operation = random.chance(0.5) ? random.pick(operations) : random.pick(operations.slice(-100));
    if (done(operation) && operation.kind !== 'status' && operation.kind !== 'reversal' && random.chance(0.3)) {
      const field = operation.kind === 'open_account' ? 'initial_deposit' : 'amount';
      // In minor units: 15.74 + 1 is no amount.
      const other = (Math.round(Number(operation.body[field]) * 100) + 100) / 100;
      await this.send(operation, undefined, { ...operation.body, [field]: other });
    } else await this.send(operation);
  }

  /** Sends it; where the outcome is not known, half of the clients ask and repeat at once, the others leave it open. */
  async #finish(operation: Operation, random: Random): Promise<void> {
    let attempt = await this.send(operation);
    for (let repeats = 0; this.#running && repeats < 3 && !decides(attempt) && random.chance(0.5); repeats++) {
      if (attempt.status === 202 && attempt.location !== undefined) await this.read(attempt.location, { pending: true });
      await sleep(random.int(50, 500));
      attempt = await this.send(operation);
    }
  }
}
