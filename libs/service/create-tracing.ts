import type { Logger } from 'pino';
import { openTelemetry } from './config.ts';
import type { Tracing } from './tracing.ts';

/** Returns undefined unless the environment names a collector. */
export async function createTracing(service: string, instance: string, logger: Logger): Promise<Tracing | undefined> {
  if (openTelemetry().endpoint === undefined) return undefined;
  const { startTracing } = await import('./tracing-sdk.ts');
  return startTracing(service, instance, logger);
}
