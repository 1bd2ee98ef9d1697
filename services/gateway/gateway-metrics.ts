import type { Operations } from '#libs/contracts/administration.ts';
import type { Metrics } from '#libs/service/metrics.ts';
import { createRecentRequests } from './recent-requests.ts';

/** What this process counts. Labels are endpoints, statuses, codes and message names: few values, whatever callers send. */
export interface GatewayMetrics {
  answered(endpoint: string, status: number, seconds: number): void;
  refused(code: string): void;
  /** Refused unseen, for the gateway's own sake. */
  turnedAway(reason: string): void;
  replied(message: string, seconds: number): void;
  lateReply(): void;
  /** The last minute of this process. */
  recent(): Operations['requests'];
}

/** Counters and histograms, with the objects of each label kept: finding them anew costs more than counting. */
export function createGatewayMetrics(metrics: Metrics): GatewayMetrics {
  const requests = metrics.counter('gateway_requests_total', 'Answers by endpoint and status', ['endpoint', 'status']);
  const durations = metrics.histogram('gateway_request_seconds', 'Time from request to answer, by endpoint', ['endpoint']);
  const refusals = metrics.counter('gateway_refusals_total', 'Answers other than success, by error code', ['code']);
  const turnedAway = metrics.counter('gateway_turned_away_total', 'Requests refused because of overload or a wrong clock, by reason', ['reason']);
  const replies = metrics.histogram('gateway_reply_wait_seconds', 'Time from publishing a message to its reply, or to giving up', ['message']);
  const late = metrics.counter('gateway_late_replies_total', 'Replies that came when nobody waited any more');
  const requestOf = memo((key: string) => {
    const [endpoint = '', status = ''] = key.split('\0');
    return requests.labels(endpoint, status);
  });
  const durationOf = memo((endpoint: string) => durations.labels(endpoint));
  const replyOf = memo((message: string) => replies.labels(message));
  const recent = createRecentRequests();
  return {
    answered(endpoint, status, seconds) {
      requestOf(`${endpoint}\0${status}`).inc();
      durationOf(endpoint).observe(seconds);
      recent.add(status, seconds);
    },
    refused: (code) => refusals.inc({ code }),
    turnedAway: (reason) => turnedAway.inc({ reason }),
    replied: (message, seconds) => replyOf(message).observe(seconds),
    lateReply: () => late.inc(),
    recent: () => recent.read(),
  };
}

function memo<T>(make: (key: string) => T): (key: string) => T {
  const made = new Map<string, T>();
  return (key) => {
    let value = made.get(key);
    if (value === undefined) {
      value = make(key);
      made.set(key, value);
    }
    return value;
  };
}
