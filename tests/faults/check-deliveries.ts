/** A posting on a customer's account, from its entries or its event. */
export interface Booking {
  account_id: string;
  sequence: number;
}

/** Returns the postings that the receiver has not accepted. */
export function notDelivered(booked: readonly Booking[], taken: readonly Booking[]): Booking[] {
  const known = new Set(taken.map(bookingName));
  return booked.filter((one) => !known.has(bookingName(one)));
}

/**
 * I7: `who` received every posting at least once, and its first copies are in the order of each account. `taken`: the
 * received postings, in order; for a receiver, the deliveries to which it responded with 2xx.
 */
export function deliveredInOrder(
  booked: readonly Booking[],
  taken: readonly Booking[],
  who = 'the receiver',
): string[] {
  const first = [...Map.groupBy(taken, bookingName).values()].flatMap(([one]) => one ?? []);
  const ofAccounts = Map.groupBy(first, ({ account_id }) => account_id).values();
  const overtaken = [...ofAccounts].flatMap((events) =>
    events.filter(({ sequence }, i) => sequence < (events[i - 1]?.sequence ?? 0)),
  );
  return [
    ...notDelivered(booked, taken).map((one) => `I7: LOST on the way to ${who}: entry ${bookingName(one)}`),
    ...overtaken.map((one) => `I7: ${who} got entry ${bookingName(one)} after a later one of its account`),
  ];
}

/** I7: a poller that follows its cursor received every posting exactly once, in the order of each account. */
export function polledOnce(booked: readonly Booking[], polled: readonly Booking[]): string[] {
  const repeated = [...Map.groupBy(polled, bookingName)].filter(([, copies]) => copies.length > 1);
  return [
    ...deliveredInOrder(booked, polled, 'the poller'),
    ...repeated.map(([name, copies]) => `I7: the poller got entry ${name} ${copies.length} times`),
  ];
}

/** I7: a webhook whose receiver responds with 410 is disabled, once, and has no pending deliveries. */
export function disabledByGone({
  status,
  pending,
  disablings,
}: {
  status: string;
  pending: number;
  disablings: number;
}): string[] {
  if (status !== 'Disabled') return [`I7: the webhook whose receiver answers 410 is ${status}`];
  return [
    ...(pending > 0 ? [`I7: the webhook that was disabled by 410 has ${pending} Pending deliveries`] : []),
    ...(disablings === 1 ? [] : [`I7: the webhook that was disabled by 410 has ${disablings} events about it`]),
  ];
}

/** The time of a delivery, and of a request that a receiver left without a response, in ms of performance.now(). */
export interface Taken extends Booking {
  at: number;
}
export interface Held {
  from: number;
  to: number;
}

/** An attempt ends after 15 s; those of killed processes are shorter. */
const wholeAttemptMs = 14_000;

/** I7: during each whole attempt at a receiver that hangs, another receiver gets deliveries. */
export function delaysDuring(held: readonly Held[], taken: readonly Pick<Taken, 'at'>[]): string[] {
  const whole = held.filter(({ from, to }) => to - from >= wholeAttemptMs);
  const { length } = whole.filter(({ from, to }) => !taken.some(({ at }) => from <= at && at <= to));
  return length === 0
    ? []
    : [`I7: nothing was delivered during ${length} of ${whole.length} attempts at a receiver that hangs`];
}

const bookingName = ({ account_id, sequence }: Booking): string => `${sequence} of ${account_id}`;
