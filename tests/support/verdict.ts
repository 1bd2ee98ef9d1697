export interface Verdict {
  passed: number;
  failed: number;
}

/** Runs a test command to its end: prints `N passed, N failed` alone on the last line, and exits with 0 only if nothing failed. What it throws counts as one failure. */
export async function reportVerdict(work: () => Promise<Verdict>): Promise<void> {
  const { passed, failed } = await work().catch((error: unknown) => {
    process.stdout.write(`${error instanceof Error ? (error.stack ?? error.message) : String(error)}\n`);
    return { passed: 0, failed: 1 };
  });
  process.stdout.write(`${passed} passed, ${failed} failed\n`);
  process.exitCode = failed === 0 ? 0 : 1;
}
