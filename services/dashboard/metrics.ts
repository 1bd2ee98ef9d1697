import type { Metrics } from '#libs/service/metrics.ts';

export type DashboardMetrics = ReturnType<typeof createDashboardMetrics>;

/** Creates the metrics of the dashboard. The label `page` is that of a route, so it has few values. */
export function createDashboardMetrics(metrics: Metrics) {
  const requests = metrics.counter('dashboard_requests_total', 'Responses of the dashboard by page and status', [
    'page',
    'status',
  ]);
  const durations = metrics.histogram(
    'dashboard_request_duration_seconds',
    'Time from request to response of the dashboard, by page',
    ['page'],
  );
  const cuts = metrics.counter(
    'dashboard_cut_connections_total',
    'Connections closed because their address, or all addresses together, had too many',
  );
  return {
    connectionCut: () => cuts.inc(),
    answered(page: string, status: number, seconds: number): void {
      requests.inc({ page, status });
      durations.observe({ page }, seconds);
    },
  };
}
