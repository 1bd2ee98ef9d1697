/** A process for serving.int.test.ts: a server that stops as the gateway and the dashboard do. It sends its port. */
import type { AddressInfo } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { fastify } from 'fastify';
import { run } from '../run.ts';
import { createServing } from '../serving.ts';

run('fixture', async (context) => {
  const serving = createServing(
    'fixture',
    { PORT: { host: '127.0.0.1', port: 0 }, BANK_MODE: 'trial', TRUST_PROXY: [] },
    context,
  );
  const app = fastify({ forceCloseConnections: 'idle', return503OnClosing: false });
  app.addHook('onRequest', async (_request, reply) => {
    if (serving.isDraining()) reply.header('connection', 'close');
  });
  app.get('/', async () => {
    await sleep(3);
    return 'answered';
  });
  await serving.listen(app, { drain: () => undefined });
  process.send?.((app.server.address() as AddressInfo).port);
});
