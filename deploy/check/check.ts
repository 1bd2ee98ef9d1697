import { join } from 'node:path';
import { runToEnd } from '../../tools/local/child.ts';
import { PROJECT } from '../../tools/local/local-dir.ts';

/**
 * A part of `npm run check:deploy`: steps that depend on each other. The first failing step ends the part, but not the
 * run.
 */
export interface Part {
  name: string;
  /** True if the part needs a container engine, its base images, and docker compose. Without them it is skipped. */
  needsEngine: boolean;
  /**
   * The defect that `--self-test` plants, the step that must find it, and the message that it must
   * report.
   */
  planted: { defect: string; foundBy: string; says: RegExp };
  /** Time limit, two hours by default; a part that exceeds it has failed. */
  limitMs?: number;
  run(check: Check): Promise<void>;
}

/** What a part is run with. */
export interface Setting extends Omit<Check, 'step' | 'skip'> {
  say(line: string): void;
  /** Aborted when the part is out of time. No step begins or passes after that. */
  signal: AbortSignal;
}

export interface Check {
  /** The environment in which `docker` and `docker compose` reach the engine. */
  env: NodeJS.ProcessEnv;
  /**
   * Base images that are stand-ins with the names of the official ones. Results that depend on them
   * are not proved for the official images.
   */
  standIns: string[];
  /** True if the part must plant its defect. */
  selfTest: boolean;
  /** A folder that is removed after the run. */
  dir: string;
  /** A folder that is kept, for tools that take long to build. */
  cache: string;
  /** Runs a step, and prints it with its duration and result. Rejects if it fails. */
  step<T>(title: string, work: () => Promise<T>): Promise<T>;
  /** Reports what cannot be checked on this machine, and why; with CI_STRICT=1 the part then fails. */
  skip(title: string, reason: string): void;
  /** Registers a clean-up that always runs at the end of the part, in reverse order. If it fails, the part fails. */
  onEnd(undo: () => Promise<void>): void;
}

/**
 * Runs a part, and returns the reasons why some of it is not possible here. Rejects if it fails: if a step fails, it
 * rejects between its steps, or it has no step. In a self-test it rejects unless the right step finds the defect.
 */
export async function runPart({ name, planted, run: work }: Part, setting: Setting): Promise<string[]> {
  const { say, signal, selfTest } = setting;
  const reasons: string[] = [];
  let passed = 0;
  let failed: { title: string; why: string } | undefined;
  const check: Check = {
    ...setting,
    async step(title, work) {
      signal.throwIfAborted();
      const startedAt = performance.now();
      const line = (mark: string, rest = '') =>
        say(`  ${mark} ${title}${rest} (${((performance.now() - startedAt) / 1000).toFixed(1)} s)`);
      try {
        const result = await work();
        signal.throwIfAborted();
        passed += 1;
        line('✓', typeof result === 'string' && result !== '' ? `: ${result}` : '');
        return result;
      } catch (error) {
        failed ??= { title, why: (error as Error).message };
        line('✗');
        throw error;
      }
    },
    skip(title, reason) {
      reasons.push(`${title}: ${reason}`);
      say(`  - ${title}: skipped, ${reason}`);
    },
  };
  say(`\n${name}${selfTest ? `, with ${planted.defect}` : ''}`);
  const error = await Promise.try(work, check).then(
    () => undefined,
    (reason: unknown) => reason as Error,
  );
  const isFound = failed?.title === planted.foundBy && planted.says.test(failed.why);
  if (!selfTest && error !== undefined) throw error;
  if (passed === 0 && error === undefined && reasons.length === 0) throw new Error(`${name} checked nothing`);
  if (selfTest && !isFound && (error !== undefined || reasons.length === 0))
    throw new Error(`"${planted.foundBy}" did not find the planted defect`, { cause: error });
  if (isFound) say('  ✓ the planted defect was found');
  return reasons;
}

export interface Output {
  code: number | null;
  stdout: string;
  stderr: string;
}

/**
 * The exit code with which this folder's scripts report that a check is not possible here. The last line gives the
 * reason.
 */
export const notHere = 3;

/**
 * Runs a program in the project's folder. Rejects with the end of its output if its exit code is
 * not one of `codes`.
 */
export async function run(
  command: string,
  args: string[],
  { env, timeoutMs = 600_000, codes = [0] }: { env?: NodeJS.ProcessEnv; timeoutMs?: number; codes?: number[] } = {},
): Promise<Output> {
  const output = await runToEnd(command, args, {
    cwd: PROJECT,
    env: { ...process.env, ...env },
    timeoutMs,
    groupGraceMs: 60_000,
  });
  if (output.code !== null && codes.includes(output.code)) return output;
  const end = (output.stdout + output.stderr).trim().split('\n').slice(-20).join('\n');
  throw new Error(
    `${command} ${args.join(' ').slice(0, 200)} ${output.code === null ? `was killed after ${timeoutMs / 1000} s` : `ended with ${output.code}`}:\n${end}`,
  );
}

/** Returns the last line of a program's output, which is its result or its reason. */
export const lastLine = (stdout: string): string => stdout.trim().split('\n').at(-1) ?? '';

/**
 * Prepares a program by a script of this folder, with the cache as its argument. Returns the last line of its output, or
 * undefined if the part is not possible here, after reporting that.
 */
export async function prepare(
  check: Check,
  { part, script, timeoutMs }: { part: string; script: string; timeoutMs: number },
): Promise<string | undefined> {
  const args = [join(import.meta.dirname, script), check.cache];
  const { code, stdout } = await run('bash', args, { timeoutMs, codes: [0, notHere] });
  if (code !== notHere) return lastLine(stdout);
  check.skip(part, lastLine(stdout));
  return undefined;
}

/** Throws `message` if `condition` is false. */
export function expect(condition: boolean, message: string): asserts condition {
  if (!condition) throw new Error(message);
}
