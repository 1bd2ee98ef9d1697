import { afterEach, expect, test } from 'vitest';
import { testDashboard } from '../../dashboard/test/test-dashboard.ts';
import { type RouteGroup, routeGroups } from '../access/gate.ts';
import { ids, ok, samples } from '../test/test-app.ts';

/**
 * Tests the parts that a gateway serves (the API, /admin, and the docs). It uses the network, because calls of the
 * dashboard come from inside the process.
 */
let close: () => Promise<void> = async () => undefined;
afterEach(() => close());

async function start(routes: readonly RouteGroup[]) {
  const made = await testDashboard(
    ({ name }) =>
      name === 'get_ledger_accounts'
        ? ok([samples.ledger])
        : name === 'list_accounts'
          ? ok({ items: [samples.master] })
          : ok([]),
    { routes },
  );
  close = () => made.app.close();
  const address = await made.app.listen({ host: '127.0.0.1', port: 0 });
  const key = made.keyHeader();
  const session = made.signedIn('accounts:read').cookie;
  const status = async (method: string, path: string, headers: Record<string, string> = key) =>
    (await fetch(`${address}${path}`, { method, headers, redirect: 'manual' })).status;
  return { status, session, address };
}

const paths = {
  api: ['/', '/accounts'],
  admin: ['/admin/trial-balance', '/admin/login', '/admin/login/start'],
  docs: ['/docs', '/openapi.json'],
};

test.each<[RouteGroup[]]>([[['api']], [['admin']], [['docs']], [['api', 'admin', 'docs']]])(
  '%j and nothing else is served',
  async (routes) => {
    const { status } = await start(routes);
    for (const group of routeGroups) {
      for (const path of paths[group].slice(0, 2))
        expect([path, await status('GET', path)]).toEqual([path, routes.includes(group) ? 200 : 404]);
    }
    // Parts that are not served behave as if they did not exist: without credentials they respond like unknown paths,
    // for every method.
    if (!routes.includes('admin'))
      expect([
        await status('GET', '/admin/trial-balance', {}),
        await status('DELETE', '/admin/api-keys'),
        await status('GET', '/%61dmin/trial-balance'),
        await status('GET', '/admin/ui'),
      ]).toEqual([401, 404, 404, 404]);
    if (!routes.includes('api'))
      expect([
        await status('GET', '/accounts', {}),
        await status('POST', '/clients/x'),
        await status('GET', `/%61ccounts/${ids.account}`),
      ]).toEqual([401, 404, 404]);
  },
);

test('the dashboard works although the API is not served', async () => {
  const { address, session, status } = await start(['admin']);
  const page = await fetch(`${address}/admin/ui/accounts`, { headers: { cookie: session } });
  expect([page.status, (await page.text()).includes(samples.master.account_number)]).toEqual([200, true]);
  expect(await status('GET', '/accounts', { cookie: session })).toBe(401);
});
