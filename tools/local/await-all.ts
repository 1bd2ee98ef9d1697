import { setTimeout as sleep } from 'node:timers/promises';

const FAIL_TOGETHER_MS = 500;

/**
 * Waits for all results. When one fails, does not wait for the others to end, but gives them half a second to fail as
 * well, so that people read all that they have to correct at once. Throws an error with every reason.
 */
export async function awaitAll<Results extends readonly unknown[]>(
  work: readonly [...{ [Index in keyof Results]: Promise<Results[Index]> | Results[Index] }],
): Promise<Results> {
  const reasons: Error[] = [];
  const all = work.map(async (result) => {
    try {
      return await result;
    } catch (error) {
      reasons.push(error as Error);
      throw error;
    }
  });
  try {
    return (await Promise.all(all)) as unknown as Results;
  } catch (error) {
    await Promise.race([Promise.allSettled(all), sleep(FAIL_TOGETHER_MS)]);
    if (reasons.length === 1) throw error;
    throw new Error([...new Set(reasons.map(({ message }) => message))].join('\nAlso: '), { cause: error });
  }
}
