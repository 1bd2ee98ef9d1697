import { setFormats } from '#libs/service/bank-config.ts';
import { loadConfig } from '#libs/service/config.ts';
import { createHealthServer } from '#libs/service/health.ts';
import { createMetrics } from '#libs/service/metrics.ts';
import { run } from '#libs/service/run.ts';
import { createServing } from '#libs/service/serving.ts';
import { createApp } from './app.ts';
import { dashboardConfig } from './config.ts';
import { setBrand } from './html/assets.ts';
import { createDashboardMetrics } from './metrics.ts';

/**
 * Starts the dashboard, which needs the REST API and the identity provider, but neither to start. It stops in reverse
 * order: readiness, HTTP server, probes.
 */
run(
  'dashboard',
  async ({ logger, onStop }) => {
    const config = loadConfig(dashboardConfig);
    setFormats(config);
    setBrand({ logo: config.BANK_LOGO, accent: config.BANK_ACCENT });
    const registry = createMetrics('dashboard');
    const serving = createServing('dashboard', config, { logger, onStop });
    const health = createHealthServer({
      ...config.HEALTH_PORT,
      // A page says that the API is away; without the dashboard there would be no page.
      ready: { http: serving.ready },
      metrics: registry,
      logger,
    });
    onStop('health server', () => health.stop());
    await health.start();
    const app = await createApp({
      api: { url: config.API_URL },
      issuer: config.JWT_ISSUER,
      clientId: config.DASHBOARD_CLIENT.id,
      clientSecret: config.DASHBOARD_CLIENT.secret,
      scope: config.DASHBOARD_SCOPES,
      sessionSecrets: config.SESSION_SECRET,
      publicUrl: config.PUBLIC_URL,
      trustProxy: config.TRUST_PROXY,
      now: Date.now,
      logger,
      metrics: createDashboardMetrics(registry),
      isDraining: serving.isDraining,
    });
    await serving.listen(app, health);
  },
  { stopStepMs: 21_000, stopMs: 28_000 },
);
