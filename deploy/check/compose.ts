import { setTimeout as sleep } from 'node:timers/promises';
import { freePort } from '../../tools/local/ports.ts';
import { Callers, call, make } from './callers.ts';
import { type Check, expect, type Part, run } from './check.ts';
import { type Composed, faults } from './compose-faults.ts';
import { tag } from './image.ts';
import { signIn } from './sign-in.ts';

const upMs = 60 * 60_000;

/**
 * The time for which `up` may fail, because a container may count as unhealthy before a busy machine has started it.
 */
const healthyMs = 20 * 60_000;

/** Tests docker-compose.yml: it is started, used, scaled, exposed to faults, stopped, and started again. */
export const compose: Part = {
  name: 'compose',
  needsEngine: true,
  planted: {
    defect: 'a balance of the Vault that was changed by hand',
    foundBy: 'verify-books',
    says: /rules are broken/,
  },
  async run(check) {
    const composed = await start(check);
    const { password, issuer } = await smoke(check, composed);
    await check.step('the dashboard redirects to the sign-in', async () => {
      const response = await fetch(`${composed.dashboardUrl}/admin/ui`, { redirect: 'manual' });
      const location = response.headers.get('location');
      expect(
        response.status === 303 && location?.startsWith('/admin/login?') === true,
        `GET /admin/ui led to ${location}, ${response.status}`,
      );
    });
    await signIn(check, { dashboardUrl: composed.dashboardUrl, issuer, password });
    const callers = await Callers.create(composed.baseUrl, composed.apiKey);
    await scale(check, composed, callers);
    await faults(check, composed, callers);
    await stopAndStart(check, composed, callers);
  },
};

async function start(check: Check): Promise<Composed> {
  const [port, dashboard, identity] = [await freePort(), await freePort(), await freePort()];
  const [kafka, postgres] = [await freePort(), await freePort()];
  const ports = {
    PORT: String(port),
    DASHBOARD_PORT: String(dashboard),
    IDENTITY_PORT: String(identity),
    KAFKA_PORT: String(kafka),
    POSTGRES_PORT: String(postgres),
  };
  const env = { ...check.env, ...ports, COMPOSE_PROJECT_NAME: 'core-banking-check', VERSION: 'check' };
  const docker = (args: string[]) => run('docker', args, { env });
  const dockerCompose = (args: string[], codes?: number[]) =>
    run('docker', ['compose', ...args], { env, timeoutMs: upMs, codes });
  const up = async (...args: string[]): Promise<void> => {
    const giveUpAt = performance.now() + healthyMs;
    for (;;) {
      const codes = performance.now() < giveUpAt ? [0, 1] : [0];
      const { code } = await dockerCompose(['up', '--detach', '--wait', '--wait-timeout', '900', ...args], codes);
      if (code === 0) return;
      await sleep(10_000);
    }
  };
  check.onEnd(async () => {
    await dockerCompose(['--profile', '*', 'down', '--volumes', '--timeout', '20', '--remove-orphans']);
    await docker(['image', 'rm', '--force', tag, 'core-banking-development:check']);
  });
  await check.step('docker compose config', () => dockerCompose(['--profile', '*', 'config', '--quiet']));
  await check.step('built by BuildKit', async () => void (await dockerCompose(['build'])));
  await check.step('up --wait from nothing', up);
  const { stdout } = await dockerCompose(['logs', '--no-log-prefix', 'api-key']);
  const apiKey = /API key +(\S+)/.exec(stdout)?.[1];
  expect(apiKey !== undefined, `no key was printed: ${stdout}`);
  return {
    baseUrl: `http://127.0.0.1:${port}`,
    dashboardUrl: `http://127.0.0.1:${dashboard}`,
    apiKey,
    compose: dockerCompose,
    up,
    docker,
    containers: async (service) =>
      (await dockerCompose(['ps', '--quiet', service])).stdout
        .trim()
        .split('\n')
        .filter((id) => id !== ''),
    verifyBooks: async () => void (await dockerCompose(['run', '--rm', '--no-deps', 'verify-books'])),
  };
}

async function smoke(
  check: Check,
  { baseUrl, apiKey, compose: dockerCompose, verifyBooks, docker, containers }: Composed,
): Promise<{ password: string; issuer: string }> {
  const printed = (await dockerCompose(['run', '--rm', '--no-deps', 'api-key'])).stdout;
  const [password = '', issuer = ''] = [/password (\S+)/.exec(printed)?.[1], /(http:\S+)\/token/.exec(printed)?.[1]];
  await check.step(
    'the printed key opens a client and two accounts, deposits, transfers, and reads the balances',
    async () => {
      const post = (path: string, body: unknown) => make(baseUrl, apiKey, path, body);
      const client = await post('/clients', {
        client_type: 'Retail',
        first_name: 'Grace',
        last_name: 'Hopper',
        email: 'grace@example.com',
        contact_number: '+254700000002',
      });
      const open = (type: string) =>
        post('/accounts', { client_id: client['client_id'], account_type: type, currency: 'USD' });
      const [from, to] = [(await open('Savings'))['account_id'], (await open('Checking'))['account_id']];
      await post('/transactions', { account_id: from, transaction_type: 'Deposit', amount: 100.5 });
      await post('/transfers', { from_account_id: from, to_account_id: to, amount: 40.25 });
      const balances = await Promise.all(
        [from, to].map(async (id) => (await call(baseUrl, apiKey, `/accounts/${String(id)}`)).body.data?.['balance']),
      );
      expect(balances.join() === '60.25,40.25', `the balances are ${balances.join()}`);
    },
  );
  await check.step('the key is printed again and is the same', async () =>
    expect(printed.includes(apiKey), 'another key was printed'),
  );
  if (check.selfTest) {
    const change =
      "update ledger.accounts set balance_minor = balance_minor + 7 where account_number = (select min(account_number) from ledger.accounts where account_type = 'Vault')";
    await dockerCompose([
      'exec',
      '--user',
      'postgres',
      'postgres',
      'psql',
      '--dbname',
      'core_banking',
      '--command',
      change,
    ]);
  }
  await check.step('verify-books', verifyBooks);
  await check.step(
    'no process runs as root, may write its image, or has rights of the kernel; a gateway has no way to the database',
    async () => {
      for (const service of [
        'gateway',
        'ledger',
        'accounts',
        'webhooks',
        'identity-provider',
        'postgres',
        'kafka',
        'proxy',
      ]) {
        for (const id of await containers(service)) {
          const { stdout } = await docker([
            'inspect',
            '-f',
            '{{.HostConfig.ReadonlyRootfs}} {{.HostConfig.CapDrop}} {{.HostConfig.SecurityOpt}}',
            id,
          ]);
          const uid = (await docker(['exec', id, 'id', '-u'])).stdout.trim();
          expect(
            stdout.includes('[ALL] [no-new-privileges:true]') && uid !== '0',
            `${service}: ${stdout.trim()}, uid ${uid}`,
          );
          // Kafka's image writes its settings when it starts.
          expect(stdout.startsWith('true') || service === 'kafka', `${service} may write its image`);
        }
      }
      const lookUp = await dockerCompose([
        'exec',
        'gateway',
        'node',
        '-e',
        "require('dns').lookup('postgres', (error) => console.log(error?.code))",
      ]);
      expect(lookUp.stdout.trim() === 'ENOTFOUND', 'a gateway finds postgres');
    },
  );
  return { password, issuer };
}

async function scale(check: Check, { up, verifyBooks, containers, docker }: Composed, callers: Callers): Promise<void> {
  const scaled = (...counts: string[]) => up('--no-recreate', ...counts.flatMap((count) => ['--scale', count]));
  await check.step('ledgers scaled from 1 to 3 and gateways from 2 to 4 under load share the work', async () => {
    callers.start();
    await scaled('ledger=3', 'gateway=4');
    await callers.calm();
    const before = callers.operations;
    for (let waits = 0; callers.operations < before + 300 && waits < 600; waits++) await sleep(100);
    const told = await callers.stop();
    const batches = await Promise.all(
      (await containers('ledger')).map(async (id) => {
        const script =
          "fetch('http://127.0.0.1:9090/metrics').then((response) => response.text()).then((text) => console.log(/ledger_batch_commands_count(?:\\{[^}]*\\})? (\\d+)/.exec(text)?.[1]))";
        return Number((await docker(['exec', id, 'node', '-e', script])).stdout);
      }),
    );
    expect(
      batches.length === 3 && batches.every((count) => count > 0),
      `batches of each ledger: ${batches.join(', ')}`,
    );
    return `${told}; batches of each ledger: ${batches.join(', ')}`;
  });
  await check.step('gateways scaled from 4 back to 2 under load answer every request', async () => {
    callers.start();
    await scaled('ledger=3', 'gateway=2');
    const told = await callers.stop();
    expect(callers.refusals === 0, told);
    return told;
  });
  await check.step('no operation was lost or posted twice', () => callers.expectPosted());
  await check.step('verify-books', verifyBooks);
}

async function stopAndStart(
  check: Check,
  { compose: dockerCompose, up, verifyBooks, containers, docker }: Composed,
  callers: Callers,
): Promise<void> {
  await check.step(
    'stop: every process of ours, Postgres and the proxy end by themselves, with exit code 0',
    async () => {
      const services = [
        'gateway',
        'dashboard',
        'ledger',
        'accounts',
        'webhooks',
        'identity-provider',
        'postgres',
        'proxy',
      ];
      const ids = await Promise.all(services.map(containers));
      await dockerCompose(['stop']);
      for (const [i, service] of services.entries()) {
        for (const id of ids[i] ?? []) {
          const { stdout } = await docker(['inspect', '-f', '{{.State.ExitCode}} {{.State.OOMKilled}}', id]);
          expect(stdout.trim() === '0 false', `${service} ended with ${stdout.trim()}`);
        }
      }
    },
  );
  await check.step('stopped and started again with its data', async () => {
    await dockerCompose(['down']);
    await up();
  });
  await check.step('no operation was lost or posted twice', () => callers.expectPosted());
  await check.step('verify-books', verifyBooks);
}
