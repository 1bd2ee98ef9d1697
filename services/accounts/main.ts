import { createSigner } from '#libs/contracts/signature.ts';
import { lookupPlans } from '#libs/postgres/pool.ts';
import { loadConfig } from '#libs/service/config.ts';
import { measurePools, onDuty } from '#libs/service/measures.ts';
import { outboxHours } from '#libs/service/publishing.ts';
import { run } from '#libs/service/run.ts';
import { connectDatabase, createBasics, createPoolFactory, serve, watching } from '#libs/service/service.ts';
import { macKeys } from '#libs/service/signing.ts';
import { createVerifier } from '#libs/service/verifications.ts';
import { createHeadPublisher } from './audit/audit-heads.ts';
import { ofAudit } from './audit/verify-audit.ts';
import { createSweeper } from './commands/sweeper.ts';
import { accountsConfig } from './config.ts';
import { commandConcurrency, createConsumers } from './consumers.ts';
import { measureBacklogs, observeHandled } from './measure.ts';
import { createAccountsPublishing } from './publishing.ts';
import { migrations } from './schema.ts';

/** Starts accounts. It stops in reverse order: readiness, consumers, probes, sweeper, relay, publishers, pools. */
run('accounts', async (context) => {
  const { logger, onStop } = context;
  const config = loadConfig(accountsConfig);
  const prefix = config.TOPIC_PREFIX;
  const { metrics, tracing, kafka, checkBrokers } = await createBasics('accounts', config, context);
  // There is a pool per purpose, so that a busy service cannot delay the relay, and a check of the audit, which takes
  // minutes, cannot delay reads. Commands look up rows by their ids, so each of their statements is planned once.
  const newPool = createPoolFactory(config, migrations, logger);
  const pool = newPool('accounts', { max: 10 });
  // One connection is for recognizing repeats.
  const commandPool = newPool('accounts-commands', { max: commandConcurrency + 1, options: lookupPlans });
  const relayPool = newPool('accounts-relay', { max: 3, options: lookupPlans });
  // One connection for the lock and one for the check. The name is of this process alone, because stop ends its sessions.
  const verifyPool = newPool(`accounts ${context.instance} verifies`, { max: 2 });
  const watch = newPool('accounts-watch', watching);
  const clock = await connectDatabase(watch, [pool, commandPool, relayPool, verifyPool], context);
  await checkBrokers();

  const keys = macKeys(config);
  const { publishers, replies, deadLetters, relay } = createAccountsPublishing(kafka, config, {
    keys,
    pool,
    relayPool,
    metrics,
    tracing,
    now: Date.now,
    logger,
    onStop,
  });
  const wakeRelay = () => relay.wake();
  const sweeper = createSweeper({ pool, prefix, wakeRelay, logger });
  onStop('sweeper', () => sweeper.stop());
  const auditVerifier = createVerifier(ofAudit, { pool: verifyPool, reads: pool, now: Date.now, logger });
  onStop('audit verifier', () => auditVerifier.stop());
  const heads = createHeadPublisher({ pool, wakeRelay, logger });
  onStop('audit heads', () => heads.stop());

  const { commands, queries, execution } = createConsumers(kafka, config, {
    pool,
    commandPool,
    clock,
    prefix,
    keys,
    logger,
    replies,
    deadLetters,
    signForGateways: createSigner(config.API_KEY_SIGNING_KEY),
    retention: {
      years: config.RETENTION_YEARS,
      eventsDays: config.EVENTS_RETENTION_DAYS,
      outboxHours,
    },
    auditVerifier,
    wakeRelay,
    now: () => new Date(),
    observe: observeHandled(metrics, tracing),
  });
  measureBacklogs(
    onDuty(metrics, () => relay.active()),
    pool,
  );
  measurePools(metrics, { pool, commands: commandPool });
  const consumers = { commands, queries };
  const ready = { replies: () => publishers.replies.health(), events: () => publishers.events.health() };
  const parts = { kafka, pool, watch, clock, consumers, execution, publishers, relay, metrics, ready };
  await serve(config, parts, context);
  sweeper.start();
  heads.start();
});
