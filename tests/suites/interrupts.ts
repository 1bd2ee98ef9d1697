import { beforeEach } from 'vitest';
import { stopAllChildren } from '../../tools/local/child.ts';

const graceMs = 30_000;

/** Ctrl-C reaches every process of a terminal. run.ts ends the run in order, so a worker must not die of it. */
process.on('SIGINT', () => undefined);

/** A test that is cancelled or out of time ends with the programs that it waits for. */
beforeEach(({ signal }) => {
  const end = () => void stopAllChildren(graceMs);
  signal.addEventListener('abort', end);
  return () => signal.removeEventListener('abort', end);
});
