import { topicTable } from '#libs/contracts/topics.ts';
import { requireSafeTopics } from '#libs/kafka/topics.ts';
import { setFormats } from '#libs/service/bank-config.ts';
import { createClock } from '#libs/service/clock.ts';
import { loadConfig } from '#libs/service/config.ts';
import { firstFailure } from '#libs/service/faults.ts';
import { createHealthServer } from '#libs/service/health.ts';
import { measureClock } from '#libs/service/measures.ts';
import { run } from '#libs/service/run.ts';
import { createBasics } from '#libs/service/service.ts';
import { createServing } from '#libs/service/serving.ts';
import { sweeping } from '#libs/service/sweeping.ts';
import { switchedOff } from './access/four-eyes.ts';
import { createTimeReader } from './api/bank-time.ts';
import { createForwarder } from './api/forward.ts';
import { createApp } from './app.ts';
import { createAuditRecords } from './audit/audit-records.ts';
import { appSettings, gatewayConfig } from './config.ts';
import { createMessaging } from './messaging.ts';
import { createConsumerLag } from './observe/consumer-lag.ts';
import { createGatewayMetrics, measureGateway } from './observe/gateway-metrics.ts';
import { createHistory, sampleMs } from './observe/history.ts';
import { createLoadShedding } from './overload/load-shedding.ts';

/**
 * Starts the gateway. It stops in reverse order: readiness, HTTP server, breakers, requester, followers,
 * publisher, probes.
 */
run(
  'gateway',
  async (context) => {
    const { logger, instance, onStop } = context;
    const config = loadConfig(gatewayConfig);
    const prefix = config.TOPIC_PREFIX;
    setFormats(config);
    const { metrics: registry, tracing, kafka, checkBrokers } = await createBasics('gateway', config, context);
    const metrics = createGatewayMetrics(registry);
    await checkBrokers();

    const now = Date.now;
    const check = () => firstFailure(clock.check(), bankTime.zone(), keyFollower.health(), tokenFollower.health());
    const loadShedding = createLoadShedding({ check }, metrics);
    const messaging = createMessaging(kafka, config, { logger, instance, metrics, loadShedding, now });
    const { publisher, requester, apiKeys, keyFollower, keyFloor, endedTokens, tokenFollower } = messaging;
    const bankTime = createTimeReader((...request) => requester.request(...request), prefix, config.BANK_TIME_ZONE);
    const clock = createClock({ read: bankTime.read, logger });
    const forwarder = createForwarder({
      request: (...request) => requester.request(...request),
      loadShedding,
      now,
      prefix,
      logger,
      metrics,
      tracing,
    });
    const consumerLag = createConsumerLag(kafka, prefix);
    measureGateway(registry, { requester, publisher, consumerLag, forwarder });
    measureClock(registry, clock);

    const serving = createServing('gateway', config, context);
    const health = createHealthServer({
      ...config.HEALTH_PORT,
      ready: {
        http: serving.ready,
        api_keys: () => keyFloor.health(),
        clock: () => clock.check(),
        time_zone: () => bankTime.zone(),
      },
      // A gateway that is ready answers 503 at once without the brokers; if none were ready, callers would get no answer.
      shared: {
        requests: () => publisher.health(),
        replies: () => requester.health(),
        key_changes: () => keyFollower.health(),
        ended_tokens: () => tokenFollower.health(),
      },
      metrics: registry,
      logger,
    });
    onStop('health server', () => health.stop());
    await health.start();

    onStop('publisher', () => publisher.stop());
    await publisher.start();
    onStop('key follower', () => keyFollower.stop());
    onStop('token follower', () => tokenFollower.stop());
    onStop('requester', () => requester.stop());
    if (config.BANK_MODE === 'production') await requireSafeTopics(kafka, topicTable(config.TOPIC_PREFIX));
    await Promise.all([keyFollower.start(), tokenFollower.start(), requester.start()]);
    onStop('key floor', () => keyFloor.stop());
    onStop('clock', () => clock.stop());
    await Promise.all([keyFloor.start(), clock.start()]);

    onStop('breakers', () => forwarder.stop());
    const auditRecords = createAuditRecords({
      publisher,
      prefix,
      logger,
      now,
      metrics,
      // In a trial, people look at once.
      summaryMs: config.BANK_MODE === 'trial' ? 1_000 : 60_000,
    });
    onStop('audit records', () => auditRecords.stop());
    auditRecords.start();
    const settings = appSettings(config, logger);
    const fourEyes = switchedOff(settings.fourEyes);
    if (fourEyes.off.length > 0 && fourEyes.reason !== null)
      logger.warn(fourEyes, 'no second person must approve these actions');
    const history = createHistory({ consumerLag, recent: metrics.recent, now });
    const sampling = sweeping('sampling operations', () => history.sample().then(() => false), sampleMs, logger);
    onStop('history', () => sampling.stop());
    sampling.start();
    const app = await createApp({
      ...settings,
      tokens: { ...settings.tokens, isEnded: endedTokens.isEnded },
      endedTokens,
      loadShedding,
      now,
      forwarder,
      consumerLag,
      history,
      apiKeys,
      auditRecords,
      logger,
      metrics,
      tracing,
      isDraining: serving.isDraining,
    });
    await serving.listen(app, health);
  },
  { stopStepMs: 21_000, stopMs: 28_000 },
);
