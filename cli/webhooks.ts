import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { Command } from 'commander';
import type { CloudEvent } from '#libs/contracts/event-feed.ts';
import { parseJson } from '#libs/contracts/exchange.ts';
import { Failure, jsonOption, openBank, print, say, wholeNumber } from './api.ts';
import { eventLine } from './tail.ts';

interface ListenOptions {
  port: number;
  types: string;
  url?: string;
  count?: number;
  json?: true;
}

/** `bank webhooks listen`: receives a webhook's events on this machine. */
export function addWebhooks(group: Command): void {
  group
    .command('listen')
    .description('Create a webhook to this machine, show its events until Ctrl-C, and delete it')
    .option('--port <number>', 'port on this machine; 0 lets the system choose', wholeNumber(0, 65_535), 4000)
    .option('--types <types>', 'event types, separated by commas', '*')
    .option('--url <url>', 'URL by which the bank reaches that port, if it is not on this machine (a tunnel)')
    .option('--count <number>', 'stop after this many events', wholeNumber(1, 999_999_999))
    .addOption(jsonOption())
    .action(listen);
}

async function listen({ port, types, url, count = Infinity, json }: ListenOptions): Promise<void> {
  const enough = Promise.withResolvers<void>();
  let shown = 0;
  const server = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('end', () => {
      const event = parseJson(Buffer.concat(chunks)) as CloudEvent | undefined;
      // Further events are acknowledged, too, because the webhook is being deleted.
      response.writeHead(204).end();
      if (event === undefined || shown >= count) return;
      shown += 1;
      show(event, json === true);
      if (shown >= count) enough.resolve();
    });
  });
  await new Promise<void>((resolve, reject) => {
    server.once('error', (error) => reject(new Failure(2, `cannot listen on port ${port}: ${error.message}`)));
    server.listen(port, '127.0.0.1', resolve);
  });
  const bank = openBank();
  try {
    const here = `http://127.0.0.1:${(server.address() as AddressInfo).port}/`;
    const { webhook_id } = await bank.createWebhook({
      url: url ?? here,
      event_types: types.split(','),
      description: 'bank webhooks listen',
    });
    say(`${webhook_id} leads to ${url ?? here}; its signatures are not checked here …`);
    for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => enough.resolve());
    try {
      await enough.promise;
    } finally {
      await bank.deleteWebhook({ webhook_id });
    }
  } finally {
    server.close();
    server.closeAllConnections();
  }
}

function show(event: CloudEvent, asJson: boolean): void {
  if (asJson) return void process.stdout.write(`${JSON.stringify(event)}\n`);
  print(
    eventLine({
      topic: '',
      partition: 0,
      offset: 0,
      key: event.subject,
      headers: { ce_time: event.time, ce_type: event.type },
      data: event.data,
    }),
  );
}
