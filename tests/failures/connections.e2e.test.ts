import { expect, it } from 'vitest';
import { knock, knockUntil } from '../support/knock.ts';
import { eventually, useBank } from '../support/world.ts';

/** Tests that clients never see a reset connection when a process that answers HTTP requests stops. */
const world = useBank({ dashboards: 1 });

it.each(['gateway', 'dashboard'])(
  'of the %s: each new connection is answered or refused while it stops',
  async (kind) => {
    // contract: envelope-36
    const [url = ''] = kind === 'gateway' ? world.bank.base_urls : world.bank.dashboard_urls;
    const port = Number(new URL(url).port);
    const headers = kind === 'gateway' ? `x-api-key: ${world.bank.api_key}\r\n` : '';
    const answer = kind === 'gateway' ? 'HTTP/1.1 200' : await knock(port);
    expect(answer).toMatch(/^HTTP\/1\.1 [23]/);
    for (let round = 0; round < 5; round++) {
      const answers = await knockUntil(port, () => world.bank.process(kind).stop(), headers);
      expect(Object.keys(answers).sort()).toEqual([answer, 'refused']);
      await world.bank.process(kind).restart();
      await eventually(async () => (await knock(port, 0, headers)) === answer);
    }
  },
);
