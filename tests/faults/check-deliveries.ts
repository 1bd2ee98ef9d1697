/** A posting on a customer's account, from its entries or its event. */
export interface Booking {
  account_id: string;
  sequence: number;
}

/** Postings that the receiver has not accepted. */
export function notDelivered(booked: readonly Booking[], taken: readonly Booking[]): Booking[] {
  const known = new Set(taken.map(nameOf));
  return booked.filter((one) => !known.has(nameOf(one)));
}

/**
 * I7: the receiver of a webhook accepted every posting at least once, and its first acceptances are
 * in the order of each account. `taken`: the deliveries that it answered 2xx, in order.
 */
export function deliveredInOrder(booked: readonly Booking[], taken: readonly Booking[]): string[] {
  const first = [...Map.groupBy(taken, nameOf).values()].flatMap(([one]) => one ?? []);
  const ofAccounts = Map.groupBy(first, ({ account_id }) => account_id).values();
  const overtaken = [...ofAccounts].flatMap((events) =>
    events.filter(({ sequence }, i) => sequence < (events[i - 1]?.sequence ?? 0)),
  );
  return [
    ...notDelivered(booked, taken).map((one) => `I7: LOST on the way to the receiver: entry ${nameOf(one)}`),
    ...overtaken.map((one) => `I7: the receiver got entry ${nameOf(one)} after a later one of its account`),
  ];
}

const nameOf = ({ account_id, sequence }: Booking): string => `${sequence} of ${account_id}`;
