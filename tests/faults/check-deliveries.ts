/** A booking on a customer's account, as the entries or the event of it name it. */
export interface Booking {
  account_id: string;
  sequence: number;
}

/** What was booked and the receiver has not taken. */
export function notDelivered(booked: readonly Booking[], taken: readonly Booking[]): Booking[] {
  const known = new Set(taken.map(nameOf));
  return booked.filter((one) => !known.has(nameOf(one)));
}

/**
 * I7: everything that was booked was taken by the receiver of a webhook at least once, and what it
 * took first of each booking came in the order of the account. `taken`: what it answered 2xx, in
 * the order in which it did.
 */
export function deliveredInOrder(booked: readonly Booking[], taken: readonly Booking[]): string[] {
  const first = [...Map.groupBy(taken, nameOf).values()].flatMap(([one]) => one ?? []);
  const ofAccounts = Map.groupBy(first, ({ account_id }) => account_id).values();
  const overtaken = [...ofAccounts].flatMap((events) =>
    events.filter(({ sequence }, i) => sequence < (events[i - 1]?.sequence ?? 0)),
  );
  return [
    ...notDelivered(booked, taken).map((one) => `I7: LOST on the way to the receiver: entry ${nameOf(one)}`),
    ...overtaken.map((one) => `I7: the receiver got entry ${nameOf(one)} behind a later one of its account`),
  ];
}

const nameOf = ({ account_id, sequence }: Booking): string => `${sequence} of ${account_id}`;
