/** Number of concurrent requests; with more a gateway is not faster. */
const lanes = 48;

/**
 * Runs the work for every item, with limited concurrency; an item is taken only when it can start. The
 * first failure stops all.
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
