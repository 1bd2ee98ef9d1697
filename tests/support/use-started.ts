import { afterAll, beforeAll } from 'vitest';

/** Starts something before the tests of a file, and stops it after them. Its fields are there from then on. */
export function useStarted<T extends { stop(): Promise<unknown> }>(start: () => Promise<T>): T {
  const started: Partial<T> = {};
  beforeAll(async () => {
    Object.assign(started, await start());
  });
  afterAll(() => started.stop?.());
  return started as T;
}
