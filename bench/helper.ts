import { fork } from 'node:child_process';
import { join } from 'node:path';
import type { LoadPlan, LoadResult } from './load-plan.ts';

/** A helper's message: its measured time begins or has ended, or its result is ready. */
type Told = { phase: 'measuring' | 'measured' } | { result: unknown } | { error: string };

export interface Phases {
  measuring?(): void;
  measured?(): void;
}

/** A process that receives one plan at a time over IPC. */
export interface Helper<Plan, Result> {
  pid: number;
  /** Resolves when the process has reported that it is ready. */
  ready(timeoutMs: number): Promise<void>;
  /** Resolves with the result. Rejects if the helper failed, ended, or did not finish within `timeoutMs`. */
  run(plan: Plan, timeoutMs: number, phases?: Phases): Promise<Result>;
  stop(): void;
}

/** Starts a script of bench/ that executes plans. It ends together with this process. */
export function startHelper<Plan extends object, Result>(
  script: string,
  env: Record<string, string> = {},
): Helper<Plan, Result> {
  const child = fork(join(import.meta.dirname, script), {
    env: { ...process.env, ...env },
    stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
  });
  const ended = Promise.withResolvers<never>();
  ended.promise.catch(() => undefined);
  child.once('exit', (code, signal) => ended.reject(new Error(`${script} ended by itself (${signal ?? code})`)));
  const listenFor = async <T>(timeoutMs: number, phases: Phases, ask: () => void): Promise<T> => {
    const settled = Promise.withResolvers<T>();
    const timer = setTimeout(
      () => settled.reject(new Error(`${script} returned no result within ${timeoutMs / 1000} s`)),
      timeoutMs,
    );
    const listen = (told: Told): void => {
      if ('phase' in told) phases[told.phase]?.();
      else if ('result' in told) settled.resolve(told.result as T);
      else settled.reject(new Error(`${script}: ${told.error}`));
    };
    child.on('message', listen);
    ask();
    try {
      return await Promise.race([settled.promise, ended.promise]);
    } finally {
      clearTimeout(timer);
      child.off('message', listen);
    }
  };
  return {
    pid: child.pid ?? 0,
    ready: (timeoutMs) => listenFor<void>(timeoutMs, {}, () => undefined),
    run: (plan, timeoutMs, phases = {}) => listenFor<Result>(timeoutMs, phases, () => void child.send(plan)),
    stop: () => void child.kill('SIGTERM'),
  };
}

/** Executes each plan of a helper. */
export function serveHelper<Plan, Result>(
  run: (plan: Plan, tell: (phase: keyof Phases) => void) => Promise<Result>,
): void {
  const tell = (told: Told): void => void process.send?.(told);
  process.on('message', (plan: Plan) => {
    run(plan, (phase) => tell({ phase })).then(
      (result) => tell({ result }),
      (error: unknown) => tell({ error: error instanceof Error ? error.message : String(error) }),
    );
  });
  process.on('disconnect', () => process.exit());
}

export type Generator = Helper<LoadPlan, LoadResult>;

export function startGenerator(): Generator {
  return startHelper<LoadPlan, LoadResult>('generator.ts');
}
