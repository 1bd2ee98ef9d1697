import type { Metrics } from '#libs/service/metrics.ts';
import type { ConsumerLag } from './consumer-lag.ts';
import { createRecentRequests } from './recent-requests.ts';

export type GatewayMetrics = ReturnType<typeof createGatewayMetrics>;

/**
 * Creates the metrics that this process counts. Labels are endpoints, statuses, codes, and message names, so they have
 * few values, whatever callers send.
 */
export function createGatewayMetrics(metrics: Metrics) {
  const requests = metrics.counter(
    'gateway_requests_total',
    'Responses by endpoint and status; 202_unknown, and 200_unknown of a batch: no outcome, of no item, was known in time',
    ['endpoint', 'status'],
  );
  const durations = metrics.histogram(
    'gateway_request_duration_seconds',
    'Time from request to response, by endpoint',
    ['endpoint'],
  );
  const refusals = metrics.counter('gateway_refusals_total', 'Error responses by code', ['code']);
  const shed = metrics.counter(
    'gateway_shed_requests_total',
    'Requests refused because of overload or a wrong clock, by reason',
    ['reason'],
  );
  const replies = metrics.histogram(
    'gateway_reply_wait_seconds',
    'Time from publishing a message to its reply or timeout',
    ['message'],
  );
  const late = metrics.counter('gateway_late_replies_total', 'Replies that arrived after their request was given up');
  const forged = metrics.counter(
    'gateway_forged_key_states_total',
    'Ignored API key records without a valid signature of accounts',
  );
  const cuts = metrics.counter(
    'gateway_cut_connections_total',
    'Connections closed because their address, or all addresses together, had too many',
  );
  const activities = metrics.counter(
    'gateway_security_activity_total',
    'Security activities for a SIEM: refused credentials and permissions, sign-ins, API keys, exports',
    ['action', 'outcome'],
  );
  // The series are initialized, because Prometheus does not count the first increment of a new series as an increase.
  for (const action of ['create_api_key', 'rotate_api_key', 'revoke_api_key', 'export', 'sign_in'])
    activities.inc({ action, outcome: 'success' }, 0);
  let destinationRefusals = 0;
  metrics.gauge(
    'gateway_destination_refusals',
    'The largest number of payments refused because of a single destination in the last full minute',
    () => destinationRefusals,
  );
  const recent = createRecentRequests();
  return {
    answered(endpoint: string, status: number, seconds: number, isUnknown = false): void {
      requests.inc({ endpoint, status: isUnknown ? `${status}_unknown` : status });
      durations.observe({ endpoint }, seconds);
      recent.add(status, seconds);
    },
    refused: (code: string) => refusals.inc({ code }),
    shed: (reason: 'clock' | 'queue' | 'bytes') => shed.inc({ reason }),
    replied: (message: string, seconds: number) => replies.observe({ message }, seconds),
    lateReply: () => late.inc(),
    forgedKeyState: () => forged.inc(),
    activity: (action: string, outcome: string) => activities.inc({ action, outcome }),
    destinationRefusals: (most: number) => void (destinationRefusals = most),
    connectionCut: () => cuts.inc(),
    /** Returns the last minute of this process. */
    recent: () => recent.read(),
  };
}

export interface GatewayState {
  requester: { pending(): number };
  publisher: { queued(): number };
  consumerLag: ConsumerLag;
  forwarder: { breakers(): { service: string; state: 'open' | 'closed' }[] };
}

/** Measures the values that are read at each scrape. */
export function measureGateway(metrics: Metrics, { requester, publisher, consumerLag, forwarder }: GatewayState): void {
  metrics.gauge('gateway_pending_replies', 'Requests that wait for a reply', () => requester.pending());
  metrics.gauge('gateway_queued_messages', 'Messages that wait to be sent', () => publisher.queued());
  metrics.gauges(
    'gateway_breaker_open',
    '1 while the breaker of that service is open, because it does not reply',
    ['target'],
    () =>
      forwarder
        .breakers()
        .map(({ service, state }) => ({ labels: { target: service }, value: Number(state === 'open') })),
  );
  // The lag is measured here and not in the consumers, because it must be visible when they are not running.
  metrics.gauges(
    'consumer_lag_messages',
    "Messages that one of the bank's consumer groups has not committed; the same in every gateway",
    ['group', 'topic', 'partition'],
    async () =>
      (await consumerLag()).map(({ group, topic, partition, lag }) => ({
        labels: { group, topic, partition: String(partition) },
        value: lag,
      })),
  );
}
