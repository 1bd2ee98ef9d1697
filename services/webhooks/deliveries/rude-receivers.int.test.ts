import { describe, expect, it } from 'vitest';
import { type RudeName, rudeServers, startRudeServer } from '#libs/service/test/rude-servers.ts';
import { allowedAddresses } from './addresses.ts';
import { createSender } from './send.ts';

const delivered = { response_status: 200, error: null };
const error = expect.stringMatching(/^(the connection |no answer within|the response has no HTTP status$)/);
const unanswered = { response_status: null, error };
/** These have answered with 200, which is a delivery, whatever becomes of the rest. */
const answered: RudeName[] = [
  'closes within the body',
  'closes within a chunk',
  'resets within the body',
  'is silent within the body',
  'sends a body in drops',
];

describe('a request to a receiver that', () => {
  it.concurrent.each(Object.keys(rudeServers) as RudeName[])('%s ends, and leaves no connection open', async (name) => {
    // contract: webhooks-17, webhooks-18
    const server = await startRudeServer(name);
    const sender = createSender(allowedAddresses(['127.0.0.0/8']), 2_000);
    const sent = await sender.post(server.url, {}, '{}');
    expect(sent).toMatchObject(
      answered.includes(name)
        ? delivered
        : name === 'responds with 101'
          ? { ...delivered, response_status: 101 }
          : unanswered,
    );
    sender.stop();
    await server.stop();
  });
});
