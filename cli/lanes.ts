/** Number of concurrent requests. Opening an account takes several messages, so fewer of them do not keep the bank busy. */
const lanes = 192;

/**
 * Runs the work for every item, with limited concurrency. An item is taken only when its work can start. The first
 * failure stops all work.
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
