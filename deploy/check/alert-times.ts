import { readFileSync } from 'node:fs';
import { parse } from 'yaml';
import { rulesFile } from '../../tests/support/rules.ts';

/**
 * Tests for promtool, which simulates time. Each alert is silent for at least five quiet minutes;
 * then its condition becomes true, and it must be pending for exactly its `for`, and then fire.
 */
const tickSeconds = 15;
/** Values per tick: normal until the change, then faulty for longer than the longest `for`. */
const gauge = (quiet: number, trouble: number) => `${quiet}x20 ${trouble}x300`;
const counter = (each: number) => `0x20 ${each}+${each}x300`;
const gone = '1x20 stale';
const up = (service: string) => [`corebanking_build_info{service="${service}"}`, '1x320'] as const;

/** Ten minutes of a hundred requests per second, all successful; then half of them fail. */
const [requests, duration] = ['corebanking_gateway_requests_total', 'corebanking_gateway_request_duration_seconds'];
const half = '0+1500x40 60750+750x200';
const burning = {
  [`${requests}{endpoint="e",status="200"}`]: half,
  [`${requests}{endpoint="e",status="500"}`]: '0x40 750+750x200',
};
const slow = {
  [`${duration}_bucket{endpoint="e",le="0.25"}`]: half,
  [`${duration}_count{endpoint="e"}`]: '0+1500x240',
};
const activity = (labels: string, each: number) => ({
  [`corebanking_gateway_security_activity_total{${labels}}`]: counter(each),
});

/** The series that make each alert true. */
export const troubles: Record<string, Record<string, string>> = {
  BankAvailabilityBurnsFast: burning,
  BankAvailabilityBurnsSlowly: burning,
  BankLatencyBurnsFast: slow,
  BankLatencyBurnsSlowly: slow,
  BankServiceDown: Object.fromEntries([
    up('gateway'),
    up('ledger'),
    up('accounts'),
    ['corebanking_build_info{service="webhooks"}', gone],
  ]),
  BankProcessNotReady: { 'corebanking_ready{service="ledger",instance="b"}': gauge(1, 0) },
  BankBreakerOpen: { 'corebanking_gateway_breaker_open{target="ledger"}': gauge(0, 1) },
  BankShedsLoad: { 'corebanking_gateway_shed_requests_total{reason="queue"}': counter(30) },
  BankEventLoopBlocked: { 'nodejs_eventloop_lag_max_seconds{service="gateway",instance="a"}': gauge(0.01, 2) },
  BankClockWrong: { 'corebanking_clock_skew_seconds{service="gateway",instance="a"}': gauge(0.1, -3) },
  BankKafkaAway: Object.fromEntries([
    up('gateway'),
    ['corebanking_consumer_lag_messages{group="ledger"}', '0x20 stale'],
  ]),
  BankConsumerLag: { 'corebanking_consumer_lag_messages{group="ledger",topic="t",partition="0"}': gauge(10, 2001) },
  BankCommandsStuck: {
    'corebanking_consumer_lag_messages{group="ledger",topic="t",partition="0"}': gauge(0, 5),
    'corebanking_commands_total{service="ledger"}': '0+10x20 200x300',
  },
  BankExecutionFailing: { 'corebanking_execution_failing{service="ledger"}': gauge(0, 1) },
  BankDeadLetters: { corebanking_dead_letters_open: gauge(0, 1) },
  BankForgedMessages: { 'corebanking_dead_letters_total{code="not_authentic"}': counter(1) },
  BankPostgresAway: Object.fromEntries([up('ledger'), ['corebanking_outbox_rows{service="ledger"}', '0x20 stale']]),
  // A p99 of half a second is tested with a running bank (alerts.ts).
  BankLockWaits: {
    corebanking_ledger_lock_wait_seconds_sum: '0+0.5x20 610+600x300',
    corebanking_ledger_lock_wait_seconds_count: '0+300x320',
    corebanking_ledger_batch_duration_seconds_sum: '0+15x320',
  },
  BankOutboxStuck: { 'corebanking_outbox_oldest_age_seconds{service="ledger"}': gauge(0, 16) },
  BankNoRelay: { 'corebanking_outbox_relay_active{service="ledger"}': gauge(1, 0) },
  BankSagasStuck: { corebanking_accounts_saga_oldest_age_seconds: gauge(0, 16) },
  BankBooksDiffer: { 'corebanking_books_difference_minor{currency="USD"}': gauge(0, -7) },
  BankBooksBroken: { corebanking_books_findings: gauge(0, 1) },
  BankBooksUnchecked: { corebanking_books_verified_age_seconds: gauge(60, 36 * 3600 + 1) },
  BankDayWithoutTotals: { corebanking_books_day_without_totals_seconds: gauge(0, 1801) },
  BankCredentialStuffing: activity('outcome="invalid_credentials"', 150),
  BankScopeProbing: activity('outcome="insufficient_scope"', 20),
  BankDestinationRefusals: { corebanking_gateway_destination_refusals: gauge(0, 21) },
  BankKeysCreated: activity('action="create_api_key",outcome="success"', 1),
  BankExports: activity('action="export",outcome="success"', 5),
  BankWebhooksLate: { corebanking_webhook_late_seconds: gauge(0, 301) },
  BankWebhookBlocked: { corebanking_webhook_oldest_undelivered_seconds: gauge(0, 3_601) },
  BankWebhookDisabled: { corebanking_webhooks_disabled_total: counter(1) },
  BankEventsUnreadable: { corebanking_webhooks_unreadable_events_total: counter(1) },
};

/** Returns the `for` of each alert in seconds. */
export function waits(): Map<string, number> {
  const units: Record<string, number> = { s: 1, m: 60, h: 3600 };
  const { groups } = parse(readFileSync(rulesFile, 'utf8')) as {
    groups: { rules: { alert?: string; for?: string }[] }[];
  };
  const rules = groups
    .flatMap((group) => group.rules)
    .flatMap(({ alert, for: wait = '0s' }) => (alert ? [{ alert, wait }] : []));
  return new Map(
    rules.map(({ alert, wait }) => [alert, Number.parseInt(wait, 10) * (units[wait.at(-1) ?? ''] ?? Number.NaN)]),
  );
}

/**
 * Alerts whose series would trigger others are tested separately. All others are tested at the same time, because each
 * has its own series.
 */
const apart = [['BankServiceDown', 'BankCommandsStuck'], ['BankKafkaAway']];

/** Returns the document for `promtool test rules`. `early` shortens the expected times, so that the tests must fail. */
export function alertTests(early = 0): object {
  const together = [...waits().keys()].filter((alert) => !apart.flat().includes(alert));
  const tests = [together, ...apart].map((group) => ({
    interval: `${tickSeconds}s`,
    input_series: group
      .flatMap((alert) => Object.entries(troubles[alert] ?? {}))
      .filter(([name], i, all) => all.findIndex(([other]) => other === name) === i)
      .map(([series, values]) => ({ series, values })),
    promql_expr_test: group.flatMap((alert) => expectations(alert, (waits().get(alert) ?? 0) - early)),
  }));
  return { rule_files: [rulesFile], evaluation_interval: `${tickSeconds}s`, tests };
}

function expectations(alert: string, wait: number): object[] {
  const end = `${20 + Math.ceil(wait / 60)}m`;
  const since = (state: string) =>
    `min(min_over_time(timestamp(ALERTS{alertname="${alert}",alertstate="${state}"})[${end}:${tickSeconds}s]))`;
  const expected = (expr: string, eval_time: string, values: number[]) => ({
    expr,
    eval_time,
    exp_samples: values.map((value) => ({ labels: '{}', value })),
  });
  const fired = `count(count_over_time(ALERTS{alertname="${alert}",alertstate="firing"}[${end}])) > bool 0`;
  return [
    expected(`ALERTS{alertname="${alert}"}`, '5m', []),
    expected(fired, end, [1]),
    wait === 0
      ? expected(since('pending'), end, [])
      : expected(`${since('firing')} - ${since('pending')}`, end, [wait]),
  ];
}
