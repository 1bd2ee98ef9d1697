/**
 * Runs at most `limit` calls concurrently. After a failure it starts no more and rejects when the running ones
 * have ended.
 */
export async function inParallel<T>(items: T[], limit: number, run: (item: T) => Promise<void>): Promise<void> {
  const rest = items.values();
  const failures: unknown[] = [];
  const worker = async () => {
    for (const item of rest) {
      if (failures.length > 0) return;
      await run(item).catch((error: unknown) => failures.push(error));
    }
  };
  await Promise.all(Array.from({ length: Math.min(limit, items.length) }, worker));
  if (failures.length > 0) throw failures[0];
}
