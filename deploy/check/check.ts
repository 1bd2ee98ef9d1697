import { runToEnd } from '../../tools/local/child.ts';
import { PROJECT } from '../../tools/local/local-dir.ts';

/**
 * A part of `npm run check:deploy`: steps that build on each other. The first that fails ends the
 * part, not the run.
 */
export interface Part {
  name: string;
  /** Whether a container engine, its base images and docker compose must be there; without them the part is skipped. */
  needsEngine: boolean;
  /** The defect that `--self-test` plants, the step that must find it, and what it must say. */
  planted: { defect: string; foundBy: string; says: RegExp };
  /** Longest that it may take, two hours where nothing is said; what takes longer has failed. */
  limitMs?: number;
  run(check: Check): Promise<void>;
}

export interface Check {
  /** Environment in which `docker` and `docker compose` reach the engine. */
  env: NodeJS.ProcessEnv;
  /**
   * Base images that are not the official ones but stand-ins of the same name: what rests on them
   * is not proved for those.
   */
  standIns: string[];
  /** The part has to plant its defect. */
  selfTest: boolean;
  /** A folder that is gone after the run. */
  dir: string;
  /** A folder that stays, for what takes long to build. */
  cache: string;
  /** Does it, prints it with its time and what it answers, and counts it. Rejects when it fails. */
  step<T>(title: string, work: () => Promise<T>): Promise<T>;
  /** Says what cannot be checked on this machine, and why; with CI_STRICT=1 that is a failure. */
  skip(title: string, reason: string): void;
  /** What must be undone at the end, whatever happens; called in reverse order. */
  onEnd(undo: () => Promise<void>): void;
}

export interface Output {
  code: number | null;
  stdout: string;
  stderr: string;
}

/** Exit code of the scripts of this folder for: not to be had on this machine, and the last line says why. */
export const notHere = 3;

/**
 * Runs a program in the project's folder. Rejects with the end of its output where it does not exit
 * with one of `codes`.
 */
export async function run(
  command: string,
  args: string[],
  { env, timeoutMs = 120_000, codes = [0] }: { env?: NodeJS.ProcessEnv; timeoutMs?: number; codes?: number[] } = {},
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

/** Throws `message` where `condition` does not hold. */
export function expect(condition: boolean, message: string): asserts condition {
  if (!condition) throw new Error(message);
}
