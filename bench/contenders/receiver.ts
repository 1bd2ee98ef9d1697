import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { serveHelper } from '../helper.ts';

/** The receiver of a webhook. It responds with 204 as soon as a request has arrived, without verifying it. */

export interface ReceiverPlan {
  seconds: number;
  warmUpSeconds: number;
}

export interface ReceiverResult {
  completed: number;
  /** The receiver's own CPU use, 0 to 1 core. */
  cores: number;
}

let received = 0;
const server = createServer((request, response) => {
  request.resume().on('end', () => {
    received++;
    response.writeHead(204).end();
  });
});

const pause = (seconds: number) => new Promise((resolve) => setTimeout(resolve, seconds * 1000));

/**
 * Counts the requests of the measured time. The warm-up starts with the first request, and the measured time after it.
 */
serveHelper<ReceiverPlan, ReceiverResult>(async ({ seconds, warmUpSeconds }, tell) => {
  received = 0;
  while (received === 0) await pause(0.01);
  await pause(warmUpSeconds);
  const [before, used] = [received, process.cpuUsage()];
  tell('measuring');
  await pause(seconds);
  tell('measured');
  const cpu = process.cpuUsage(used);
  return { completed: received - before, cores: (cpu.user + cpu.system) / 1e6 / seconds };
});
server.listen(Number(process.env['PORT']), '127.0.0.1', () =>
  process.send?.({ result: server.address() as AddressInfo }),
);
