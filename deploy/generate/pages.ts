import { metricsPage } from './metrics.ts';

/** Pages of docs/ by their names. */
export const pages: Record<string, () => string> = { 'metrics.md': metricsPage };
