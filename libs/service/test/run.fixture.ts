/** A process for run.int.test.ts: starts two components and behaves as its argument says. */
import { setTimeout as sleep } from 'node:timers/promises';
import { z } from 'zod';
import { loadConfig, wholeNumber } from '../config.ts';
import { run } from '../run.ts';

const behaviour = process.argv[2] ?? '';

run(
  'fixture',
  async ({ logger, onStop }) => {
    const timer = setInterval(() => undefined, 1000);
    onStop('first', () => {
      clearInterval(timer);
      logger.info('first stopped');
    });
    onStop('second', async () => {
      if (behaviour === 'hang') await new Promise(() => undefined);
      if (behaviour === 'slow') await sleep(500);
      if (behaviour === 'stop-fails') throw new Error('cannot stop');
      logger.info('second stopped');
    });
    if (behaviour === 'bad-config') loadConfig(z.object({ RATE: wholeNumber(0, 1), OTHER: z.string() }), { RATE: 'x' });
    if (behaviour === 'start-fails') throw new AggregateError([new Error('connect ECONNREFUSED 127.0.0.1:1')], '');
    if (behaviour === 'logs') setTimeout(() => process.stderr.write('still running'), 1000);
    if (behaviour === 'uncaught')
      setTimeout(() => {
        throw new Error('boom');
      }, 50);
    if (behaviour === 'unhandled') setTimeout(() => void Promise.reject(new Error('boom')), 50);
  },
  { stopStepMs: 3000, stopMs: 10_000 },
);
