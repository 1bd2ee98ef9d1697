export interface Verdict {
  passed: number;
  failed: number;
  /** The number of skipped tests. With CI_STRICT=1, a skipped test is a failure. */
  skipped?: number;
}

/**
 * Runs a test command to its end: prints `N passed, N failed` alone on the last line (preceded by
 * `N skipped` if some were), and exits with 0 only if nothing failed. An exception counts as one
 * failure.
 */
export async function reportVerdict(work: () => Promise<Verdict>): Promise<void> {
  const verdict = await work().catch((error: unknown): Verdict => {
    process.stdout.write(`${error instanceof Error ? (error.stack ?? error.message) : String(error)}\n`);
    return { passed: 0, failed: 1 };
  });
  const { passed, skipped = 0 } = verdict;
  const failed = verdict.failed + (process.env['CI_STRICT'] === '1' ? skipped : 0);
  if (skipped > 0) process.stdout.write(`${skipped} skipped\n`);
  process.stdout.write(`${passed} passed, ${failed} failed\n`);
  process.exitCode = failed === 0 ? 0 : 1;
}
