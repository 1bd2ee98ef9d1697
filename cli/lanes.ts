/** So many requests at once: a gateway takes more, and answers no faster. */
const lanes = 48;

/**
 * Does the work for every item, some at a time; no item is taken before a lane is free for it. The
 * first failure ends them all.
 */
export async function inLanes<Item>(
  items: Iterable<Item> | AsyncIterable<Item>,
  work: (item: Item) => Promise<void>,
): Promise<void> {
  const iterator = Symbol.asyncIterator in items ? items[Symbol.asyncIterator]() : items[Symbol.iterator]();
  let failed = false;
  const lane = async () => {
    while (!failed) {
      const next = await iterator.next();
      if (next.done || failed) return;
      await work(next.value);
    }
  };
  await Promise.all(
    Array.from({ length: lanes }, () =>
      lane().catch((error: unknown) => {
        failed = true;
        throw error;
      }),
    ),
  );
}
