import type { Logger } from 'pino';
import type { Tracing, TracingConfig } from './tracing.ts';

/** Returns undefined if no collector is configured. */
export async function createTracing(
  service: string,
  config: TracingConfig & { INSTANCE: string },
  logger: Logger,
): Promise<Tracing | undefined> {
  if (config.OTEL_EXPORTER_OTLP_ENDPOINT === undefined) return undefined;
  const { startTracing } = await import('./tracing-sdk.ts');
  return startTracing(service, config.OTEL_EXPORTER_OTLP_ENDPOINT, config, logger);
}
