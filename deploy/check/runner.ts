import type { Check, Part } from './check.ts';

const partLimitMs = 2 * 60 * 60_000;
const undoLimitMs = 5 * 60_000;

export interface Run {
  say(line: string): void;
  /** A folder that is removed after the run, and one that is kept. */
  dir: string;
  cache: string;
  /** True if a skip is a failure. */
  strict: boolean;
  /** True if each part plants its defect, and fails unless the right step finds it. */
  selfTest: boolean;
  /** Prepares the engine, or returns why it is not available; called once, if a part needs it. */
  prepareEngine(check: Check): Promise<string | undefined>;
}

export interface Runner {
  /** Runs the parts one after the other; never rejects. */
  runParts(parts: Part[]): Promise<void>;
  /**
   * Prints "N passed, N failed" after all clean-ups; returns 0 only if something passed and nothing
   * failed. Further calls resolve with the same result.
   */
  end(): Promise<number>;
  onEnd(undo: () => Promise<void>): void;
}

/**
 * Counts the results of parts. A part fails if a step fails, it rejects between its steps, has no step, or exceeds its
 * time limit, or a clean-up fails.
 */
export function createRunner(run: Run): Runner {
  const { say, strict, selfTest } = run;
  const counts = { passed: 0, failed: 0, skipped: 0 };
  const undos: (() => Promise<void>)[] = [];
  const fail = (line: string) => {
    counts.failed += 1;
    say(`  ✗ ${line}`);
  };
  const shared = {
    env: {},
    standIns: [] as string[],
    dir: run.dir,
    cache: run.cache,
    selfTest,
    onEnd: (undo: () => Promise<void>) => void undos.push(undo),
  };

  async function runPart(
    name: string,
    work: (check: Check) => Promise<void>,
    { limitMs = partLimitMs, planted }: { limitMs?: number; planted?: Part['planted'] },
  ): Promise<void> {
    const seen = { steps: 0, failed: undefined as { title: string; why: string } | undefined, isOver: false };
    const check: Check = {
      ...shared,
      async step(title, work) {
        if (seen.isOver) throw new Error(`${name} is over`);
        seen.steps += 1;
        const startedAt = performance.now();
        const line = (mark: string, rest = '') =>
          say(`  ${mark} ${title}${rest} (${((performance.now() - startedAt) / 1000).toFixed(1)} s)`);
        try {
          const result = await work();
          if (seen.isOver) throw new Error(`${name} is over`);
          if (planted === undefined) counts.passed += 1;
          line('✓', typeof result === 'string' && result !== '' ? `: ${result}` : '');
          return result;
        } catch (error) {
          if (!seen.isOver) {
            seen.failed ??= { title, why: (error as Error).message };
            if (planted === undefined) counts.failed += 1;
            line('✗');
          }
          throw error;
        }
      },
      skip(title, reason) {
        if (seen.isOver) return;
        seen.steps += 1;
        counts[strict ? 'failed' : 'skipped'] += 1;
        say(`  ${strict ? '✗' : '-'} ${title}: skipped, ${reason}`);
      },
    };
    const before = counts.failed + counts.skipped;
    const error = await withLimit(() => work(check), limitMs).then(
      () => undefined,
      (reason: unknown) => reason as Error,
    );
    seen.isOver = true;
    shared.standIns = check.standIns;
    if (error !== undefined) say(`    ${error.message.replaceAll('\n', '\n    ')}`);
    if (planted !== undefined && seen.failed?.title === planted.foundBy && planted.says.test(seen.failed.why)) {
      counts.passed += 1;
      say('  ✓ the planted defect was found');
    } else if (planted !== undefined) {
      // A skipped part counts as skipped.
      if (counts.failed + counts.skipped === before)
        fail(`${name}: "${planted.foundBy}" did not find the planted defect`);
    } else if (error !== undefined && seen.failed === undefined) fail(`${name} ended between its steps`);
    else if (error instanceof TimeOver) fail(`${name} was not done in time`);
    else if (seen.steps === 0) fail(`${name} checked nothing`);
  }

  /** Runs the clean-ups that were registered after the first `count`, in reverse order. */
  async function clearUp(count: number): Promise<void> {
    for (const undo of undos.splice(count).toReversed())
      await withLimit(undo, undoLimitMs).catch((error: unknown) =>
        fail(`could not clear up: ${(error as Error).message}`),
      );
  }

  async function end(): Promise<number> {
    await clearUp(0);
    if (counts.passed === 0 && counts.failed === 0) fail('nothing was checked');
    say(`${counts.passed} passed, ${counts.failed} failed${counts.skipped > 0 ? `, ${counts.skipped} skipped` : ''}`);
    return counts.failed === 0 ? 0 : 1;
  }

  let ending: Promise<number> | undefined;
  return {
    onEnd: shared.onEnd,
    async runParts(parts) {
      let reason: string | undefined;
      if (parts.some(({ needsEngine }) => needsEngine)) {
        say('\nengine');
        reason = 'the engine could not be prepared';
        await runPart(
          'engine',
          async (check) => {
            reason = await run.prepareEngine(check);
            if (reason !== undefined) check.skip('engine', reason);
          },
          {},
        );
      }
      for (const { name, needsEngine, planted, limitMs, run: work } of parts) {
        say(`\n${name}${selfTest ? `, with ${planted.defect}` : ''}`);
        const isWithout = needsEngine && reason !== undefined;
        const registered = undos.length;
        await runPart(name, async (check) => (isWithout ? check.skip('all of it', reason ?? '') : work(check)), {
          limitMs,
          planted: selfTest ? planted : undefined,
        });
        // The next part must not compete with this one for the machine.
        await clearUp(registered);
      }
      if (shared.standIns.length > 0)
        say(
          `\nStand-ins, built here under the official names, which cannot be pulled: ${shared.standIns.join(', ')}. What the official images do otherwise was not seen.`,
        );
    },
    end: () => (ending ??= end()),
  };
}

class TimeOver extends Error {}

async function withLimit(work: () => Promise<void>, limitMs: number): Promise<void> {
  let timer: NodeJS.Timeout | undefined;
  const over = new Promise<never>((_resolve, reject) => {
    timer = setTimeout(() => reject(new TimeOver(`not done after ${limitMs / 1000} s`)), limitMs);
  });
  try {
    await Promise.race([Promise.try(work), over]);
  } finally {
    clearTimeout(timer);
  }
}
