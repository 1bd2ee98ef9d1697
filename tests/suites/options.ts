import type { TestContext } from 'vitest';

/** The options of `run.ts`, for the suite that it runs. */
export interface SuiteOptions {
  /** The command line, to run it again. */
  line: string;
  only?: string;
  seed?: string;
  quick?: boolean;
  short?: boolean;
  keep?: boolean;
  cases?: string;
  hours?: string;
  minutes?: string;
  'write-docs'?: boolean;
  'self-test'?: boolean;
}

/** The environment variable that passes the options to the workers of vitest. */
export const optionsVariable = 'SUITE_OPTIONS';
export const options = JSON.parse(process.env[optionsVariable] ?? '{"line":""}') as SuiteOptions;
/** The factor for time limits, for machines that are slow or shared. */
export const slowness = Number(process.env['FAULTS_SLOWNESS'] ?? 1);
export const say = (line: string): void => void process.stdout.write(`${line}\n`);

/** Returns what `--only` names, or all. Throws if it names something that does not exist. */
export function chosen<T extends { name: string }>(all: readonly T[], names = options.only?.split(',')): T[] {
  const unknown = names?.filter((name) => !all.some((one) => one.name === name)) ?? [];
  if (unknown.length > 0)
    throw new Error(`there is no ${unknown.join(', ')}; there are ${all.map(({ name }) => name).join(', ')}`);
  return all.filter(({ name }) => names?.includes(name) ?? true);
}

/** Ends a test that this machine cannot run. With CI_STRICT=1, that is a failure. */
export function notHere({ skip }: Pick<TestContext, 'skip'>, reason: string): never {
  if (process.env['CI_STRICT'] === '1') throw new Error(`not possible here: ${reason}`);
  return skip(reason);
}
