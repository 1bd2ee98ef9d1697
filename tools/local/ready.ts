import { setTimeout as sleep } from 'node:timers/promises';

export type Probe = { url: string; headers?: Record<string, string> };

/** Returns the status of a GET of this URL, or the error, within two seconds. */
export async function probeStatus(probe: Probe): Promise<number | string> {
  try {
    const response = await fetch(probe.url, { headers: probe.headers, signal: AbortSignal.timeout(2000) });
    await response.arrayBuffer();
    return response.status;
  } catch (error) {
    const cause = (error as { cause?: { code?: string } }).cause?.code;
    return cause ?? (error as Error).name;
  }
}

/**
 * Waits until a URL returns 200. Throws an error with the last response after `timeoutMs`, or immediately if `failed`
 * returns a reason.
 */
export async function awaitReady(
  probe: Probe,
  timeoutMs: number,
  failed: () => string | undefined = () => undefined,
): Promise<void> {
  const end = Date.now() + timeoutMs;
  for (;;) {
    const status = await probeStatus(probe);
    if (status === 200) return;
    const failure = failed() ?? (Date.now() > end ? `answers ${status} after ${timeoutMs / 1000} s` : undefined);
    if (failure !== undefined) throw new Error(`${probe.url} ${failure}`);
    await sleep(100);
  }
}
